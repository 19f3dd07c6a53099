package deviceplugin

import (
	"sync"
	"time"
)

// streams counts the kubelet's open streams on one socket.
type streams struct {
	mu sync.Mutex
	n  int
	// since is when the last one ended, or when counting began.
	since time.Time
	// changed is closed, and made anew, at every change.
	changed chan struct{}
}

func newStreams() *streams {
	return &streams{since: time.Now(), changed: make(chan struct{})}
}

func (s *streams) add(delta int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += delta
	s.since = time.Now()
	close(s.changed)
	s.changed = make(chan struct{})
}

// open says whether there is a stream, and if not, since when.
func (s *streams) open() (open bool, since time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.n > 0, s.since
}

func (s *streams) change() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}
