package onemachine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
)

// The commands by which this program calls itself.
const (
	SuperviseCommand = "supervise"
	LaunchCommand    = "launch"
	MountCommand     = "mount-in-namespace"
)

const supervisorCgroup = layout.Cgroup + "/supervisor"

// Supervise runs the processes of the cluster in the data folder until ctx
// ends.
func Supervise(ctx context.Context, files layout.Files, logger *slog.Logger) error {
	s, err := readState(files)
	if err != nil {
		return err
	}
	lock, err := holdLock(files.Lock())
	if err != nil {
		return err
	}
	defer lock.Close()
	c := s.cluster(files)
	if err := layGround(c); err != nil {
		return err
	}
	supervisor := &process.Supervisor{
		Specs:      c.Processes(),
		Logger:     logger,
		LogFile:    files.Log,
		StatusFile: files.Status(),
		Launcher: func(spec process.Spec) []string {
			return []string{c.Program("kilter-cluster"), LaunchCommand, spec.Cgroup, spec.MountNamespace, "--"}
		},
		StopTimeout: 5 * time.Second,
	}
	logger.Info("supervising", "processes", len(supervisor.Specs))
	return supervisor.Run(ctx)
}

// Launch takes this process into a cgroup and, unless it is empty, a mount
// namespace, and turns it into the program.
func Launch(cgroup, mountNamespace string, args []string) error {
	cgroups, err := host.FindCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Enter(cgroup); err != nil {
		return fmt.Errorf("enter the cgroup %s: %w", cgroup, err)
	}
	if mountNamespace != "" {
		if err := host.EnterMountNamespace(mountNamespace); err != nil {
			return err
		}
	}
	return fmt.Errorf("run %s: %w", args[0], syscall.Exec(args[0], args, os.Environ()))
}

// holdLock takes the lock for as long as the file is open, and writes this
// process' id into it.
func holdLock(path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	// Whoever asks supervisorPID holds the lock for a moment.
	for deadline := time.Now().Add(time.Second); ; time.Sleep(10 * time.Millisecond) {
		err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) || time.Now().After(deadline) {
			file.Close()
			return nil, fmt.Errorf("lock %s, which another supervisor holds: %w", path, err)
		}
	}
	if err := file.Truncate(0); err != nil {
		file.Close()
		return nil, err
	}
	_, err = file.WriteAt([]byte(strconv.Itoa(os.Getpid())), 0)
	return file, err
}

// supervisorPID is the process that holds the lock, or 0 when nobody does. A
// file that a dead supervisor has left says nothing: only the lock counts.
func supervisorPID(path string) int {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return 0
	}
	defer file.Close()
	if unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB) == nil {
		return 0
	}
	data, _ := os.ReadFile(path)
	pid, _ := strconv.Atoi(strings.TrimSpace(string(data)))
	return pid
}
