package process

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

// child is one life of a process.
type child struct {
	pid   int
	cmd   *exec.Cmd
	ended chan struct{}
	err   error
}

// startFromOneThread runs the functions it is sent on one thread that lives
// as long as the supervisor: the kernel sends a child's death signal when the
// thread that started it ends, not when the process does.
func startFromOneThread(functions <-chan func()) {
	runtime.LockOSThread()
	for f := range functions {
		f()
	}
}

func (s *Supervisor) start(spec Spec) (*child, error) {
	logFile := s.LogFile(spec.Name)
	if err := os.MkdirAll(filepath.Dir(logFile), 0o700); err != nil {
		return nil, err
	}
	log, err := os.OpenFile(logFile, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	args := append(s.Launcher(spec), spec.Args...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env = spec.Env
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{
		// A session of its own: a Ctrl-C in a terminal is not for it.
		Setsid: true,
		// Nothing is left unwatched when the supervisor is killed.
		Pdeathsig: syscall.SIGKILL,
	}
	started := make(chan error)
	s.starts <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", spec.Name, err)
	}
	c := &child{pid: cmd.Process.Pid, cmd: cmd, ended: make(chan struct{})}
	go func() {
		c.err = cmd.Wait()
		close(c.ended)
	}()
	return c, nil
}

func (c *child) reason() string {
	if c.err != nil {
		return c.err.Error()
	}
	return "ended by itself"
}

// stop asks the process to end, and ends it when it does not.
func (c *child) stop(timeout time.Duration) {
	_ = c.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-c.ended:
	case <-time.After(timeout):
		_ = c.cmd.Process.Kill()
		<-c.ended
	}
}
