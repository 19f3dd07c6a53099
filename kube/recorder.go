package kube

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

const (
	// mostWaiting bounds what is kept for an API server that is away.
	mostWaiting = 256

	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// EventCreator writes events; *Client is one.
type EventCreator interface {
	CreateEvent(ctx context.Context, event PodEvent) error
}

// Recorder writes events in the background, in their order, and tries again
// while the API server is away.
type Recorder struct {
	creator EventCreator
	logger  *slog.Logger

	mu      sync.Mutex
	waiting []PodEvent
	added   chan struct{}
}

// NewRecorder returns a recorder that writes nothing until Run.
func NewRecorder(creator EventCreator, logger *slog.Logger) *Recorder {
	return &Recorder{creator: creator, logger: logger, added: make(chan struct{}, 1)}
}

// Record has the event written. One that is waiting already is not added
// again; when too many are waiting, the oldest is given up.
func (r *Recorder) Record(event PodEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	name := event.name()
	if slices.ContainsFunc(r.waiting, func(other PodEvent) bool {
		return other.Namespace == event.Namespace && other.name() == name
	}) {
		return
	}
	if len(r.waiting) == mostWaiting {
		r.logger.Warn("too many events wait for the API server; the oldest is given up",
			"namespace", r.waiting[0].Namespace, "pod", r.waiting[0].Pod, "message", r.waiting[0].Message)
		r.waiting = r.waiting[1:]
	}
	r.waiting = append(r.waiting, event)
	select {
	case r.added <- struct{}{}:
	default:
	}
}

// Run writes events until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	pause := shortestPause
	for {
		event, found := r.next()
		if !found {
			select {
			case <-ctx.Done():
				return nil
			case <-r.added:
			}
			continue
		}
		err := r.creator.CreateEvent(ctx, event)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil || errors.Is(err, ErrRefused) {
			if err != nil {
				r.logger.Error("an event is given up", "error", err, "message", event.Message)
			}
			r.done(event)
			pause = shortestPause
			continue
		}
		r.logger.Warn("an event could not be written; it is tried again", "error", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

func (r *Recorder) next() (PodEvent, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waiting) == 0 {
		return PodEvent{}, false
	}
	return r.waiting[0], true
}

// done strikes the event out. It may have been given up meanwhile.
func (r *Recorder) done(event PodEvent) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting = slices.DeleteFunc(r.waiting, func(other PodEvent) bool { return other == event })
}
