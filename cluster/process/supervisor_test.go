package process

import (
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// start runs a supervisor of shell scripts, and returns its folder and what
// stops it.
func start(t *testing.T, specs ...Spec) (folder string, stop func()) {
	t.Helper()
	folder = t.TempDir()
	for i := range specs {
		specs[i].Args = []string{"/bin/sh", "-c", "cd " + folder + " && " + specs[i].Args[0]}
		if socket, ok := specs[i].Ready.(exists); ok {
			specs[i].Ready = exists(filepath.Join(folder, string(socket)))
		}
	}
	supervisor := &Supervisor{
		Specs:       specs,
		Logger:      slog.New(slog.NewTextHandler(io.Discard, nil)),
		LogFile:     func(name string) string { return filepath.Join(folder, "logs", name) },
		StatusFile:  filepath.Join(folder, "status"),
		Launcher:    func(Spec) []string { return nil },
		StopTimeout: 2 * time.Second,
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := supervisor.Run(ctx); err != nil {
			t.Error(err)
		}
	}()
	stop = func() { cancel(); <-done }
	t.Cleanup(stop)
	return folder, stop
}

// exists is ready when there is such a file.
type exists string

func (e exists) Check(context.Context) error {
	_, err := os.Stat(string(e))
	return err
}

func status(t *testing.T, folder, name string) Status {
	t.Helper()
	statuses, _ := ReadStatus(filepath.Join(folder, "status"))
	for _, s := range statuses {
		if s.Name == name {
			return s
		}
	}
	return Status{}
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !done(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("waited too long: %s", what)
		}
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

func TestStartsInOrderAndStopsInReverse(t *testing.T) {
	folder, stop := start(t,
		Spec{Name: "first", Args: []string{`trap 'echo first stops >> order; exit' TERM; sleep 0.2; echo first >> order; touch ready; while :; do sleep 0.02; done`}, Ready: exists("ready")},
		Spec{Name: "second", Args: []string{`trap 'echo second stops >> order; exit' TERM; echo second >> order; while :; do sleep 0.02; done`}, After: []string{"first"}},
	)
	waitFor(t, "the second runs", func() bool {
		order, _ := os.ReadFile(filepath.Join(folder, "order"))
		return status(t, folder, "second").State == Ready && strings.Contains(string(order), "second")
	})
	stop()
	order, _ := os.ReadFile(filepath.Join(folder, "order"))
	if want := "first\nsecond\nsecond stops\nfirst stops\n"; string(order) != want {
		t.Errorf("in this order: %q", order)
	}
	if s := status(t, folder, "first"); s.State != Stopped {
		t.Errorf("at the end it is %s", s.State)
	}
}

func TestStartsAgainWhatDies(t *testing.T) {
	folder, _ := start(t, Spec{Name: "mortal", Args: []string{"exec sleep 1000"}})
	waitFor(t, "it runs", func() bool { return status(t, folder, "mortal").State == Ready })
	first := status(t, folder, "mortal").PID
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "it runs again", func() bool {
		s := status(t, folder, "mortal")
		return s.State == Ready && s.PID != first && s.Restarts == 1
	})
}

func TestSaysWhyItFailed(t *testing.T) {
	folder, stop := start(t,
		Spec{Name: "broken", Args: []string{"echo it is broken; exit 7"}},
		Spec{Name: "waiting", Args: []string{"touch started"}, After: []string{"broken"}, Ready: exists("x")},
	)
	waitFor(t, "it failed", func() bool { return status(t, folder, "broken").LastExit == "exit status 7" })
	if log, _ := os.ReadFile(filepath.Join(folder, "logs/broken")); !strings.Contains(string(log), "it is broken") {
		t.Errorf("its log says %q", log)
	}
	stop()
}

func TestEndsWhatDoesNotStop(t *testing.T) {
	folder, stop := start(t, Spec{Name: "deaf", Args: []string{`trap '' TERM; touch deaf; while :; do sleep 0.05; done`}, Ready: exists("deaf")})
	waitFor(t, "it runs", func() bool { return status(t, folder, "deaf").State == Ready })
	pid := status(t, folder, "deaf").PID
	stop()
	if alive(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

func TestLongLogIsPutAside(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for i, line := range []string{"short", "and now it is longer than it may be", "the end"} {
		if _, err := log.WriteString(line); err != nil {
			t.Fatal(err)
		}
		if err := putAside(path, 20); err != nil {
			t.Fatal(err)
		}
		now, _ := os.ReadFile(path)
		if want := []string{"short", "", "the end"}[i]; string(now) != want {
			t.Errorf("after %q the log is %q", line, now)
		}
	}
	if before, _ := os.ReadFile(path + ".1"); string(before) != "shortand now it is longer than it may be" {
		t.Errorf("put aside was %q", before)
	}
	if err := putAside(path+"-missing", 20); err != nil {
		t.Error(err)
	}
}
