package process

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"
)

const (
	probeEvery   = 50 * time.Millisecond
	probeTimeout = 2 * time.Second
	// A process that has lived this long is no longer taken for one that
	// dies at start, and is started again at once.
	settled      = 30 * time.Second
	firstBackoff = 250 * time.Millisecond
	lastBackoff  = 10 * time.Second
)

// Supervisor runs a list of processes until it is told to stop.
type Supervisor struct {
	Specs  []Spec
	Logger *slog.Logger
	// LogFile is where a process' output goes.
	LogFile func(name string) string
	// StatusFile is kept up to date with the state of all processes.
	StatusFile string
	// Launcher is the command put before a process' own to take it into its
	// cgroup and namespace.
	Launcher func(Spec) []string
	// StopTimeout is how long a process may take to stop by itself.
	StopTimeout time.Duration

	mu       sync.Mutex
	statuses []Status
	ready    map[string]chan struct{}
	starts   chan func()
}

// Run starts the processes and keeps them running until ctx ends; then it
// stops them, last started first, and returns.
func (s *Supervisor) Run(ctx context.Context) error {
	s.ready = make(map[string]chan struct{}, len(s.Specs))
	s.statuses = make([]Status, len(s.Specs))
	for i, spec := range s.Specs {
		s.ready[spec.Name] = make(chan struct{})
		s.statuses[i] = Status{Name: spec.Name, State: Waiting, Since: time.Now()}
	}
	s.starts = make(chan func())
	go startFromOneThread(s.starts)
	defer close(s.starts)
	var tidying sync.WaitGroup
	tidying.Go(func() { s.keepLogsSmall(ctx) })
	defer tidying.Wait()

	stops := make([]chan struct{}, len(s.Specs))
	stopped := make([]chan struct{}, len(s.Specs))
	for i := range s.Specs {
		stops[i], stopped[i] = make(chan struct{}), make(chan struct{})
		go func() {
			defer close(stopped[i])
			s.keep(i, stops[i])
		}()
	}
	<-ctx.Done()
	for i := len(s.Specs) - 1; i >= 0; i-- {
		close(stops[i])
		<-stopped[i]
	}
	return nil
}

// keep runs one process, again and again, until stop is closed.
func (s *Supervisor) keep(i int, stop <-chan struct{}) {
	spec := s.Specs[i]
	for _, name := range spec.After {
		select {
		case <-s.ready[name]:
		case <-stop:
			return
		}
	}
	backoff := firstBackoff
	for restarts := 0; ; restarts++ {
		started := time.Now()
		reason, told := s.once(i, restarts, stop)
		if told {
			s.update(i, func(st *Status) { *st = Status{Name: spec.Name, State: Stopped, Since: time.Now()} })
			return
		}
		if time.Since(started) > settled {
			backoff = firstBackoff
		}
		s.Logger.Warn("process ended and is started again", "process", spec.Name, "reason", reason, "in", backoff)
		s.update(i, func(st *Status) {
			*st = Status{Name: spec.Name, State: Failed, Restarts: restarts + 1, Since: time.Now(), LastExit: reason}
		})
		select {
		case <-time.After(backoff):
		case <-stop:
			return
		}
		backoff = min(2*backoff, lastBackoff)
	}
}

// once runs the process until it ends, and says why it did; told means that
// it ended because stop was closed.
func (s *Supervisor) once(i, restarts int, stop <-chan struct{}) (reason string, told bool) {
	spec := s.Specs[i]
	child, err := s.start(spec)
	if err != nil {
		return err.Error(), false
	}
	s.update(i, func(st *Status) {
		st.State, st.PID, st.Restarts, st.Since = Starting, child.pid, restarts, time.Now()
	})
	// What waits for readiness ends with this life of the process.
	ctx, cancel := context.WithCancel(context.Background())
	var probing sync.WaitGroup
	probing.Go(func() {
		if waitReady(ctx, spec.Ready) {
			s.update(i, func(st *Status) { st.State, st.Since = Ready, time.Now() })
			s.markReady(spec.Name)
		}
	})
	defer probing.Wait()
	defer cancel()
	select {
	case <-child.ended:
		return child.reason(), false
	case <-stop:
		child.stop(s.StopTimeout)
		return "", true
	}
}

func waitReady(ctx context.Context, probe Probe) bool {
	if probe == nil {
		return ctx.Err() == nil
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, probeTimeout)
		err := probe.Check(attempt)
		cancel()
		if err == nil {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-time.After(probeEvery):
		}
	}
}

func (s *Supervisor) markReady(name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.ready[name]:
	default:
		close(s.ready[name])
	}
}

func (s *Supervisor) update(i int, change func(*Status)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(&s.statuses[i])
	data, err := json.MarshalIndent(s.statuses, "", "  ")
	if err == nil {
		err = WriteFile(s.StatusFile, data, 0o600)
	}
	if err != nil {
		s.Logger.Error("write the status of the processes", "error", err)
	}
}
