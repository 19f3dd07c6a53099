package deviceplugin

import (
	"sync"
	"time"
)

// counter counts what is open at the moment: the kubelet's streams, or calls.
type counter struct {
	mu sync.Mutex
	n  int
	// since is when the number changed last, or when counting began.
	since time.Time
	// changed is closed, and made anew, at every change.
	changed chan struct{}
}

func newCounter() *counter {
	return &counter{since: time.Now(), changed: make(chan struct{})}
}

func (c *counter) add(delta int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n += delta
	c.since = time.Now()
	close(c.changed)
	c.changed = make(chan struct{})
}

// open says whether there are any, and since when that is so.
func (c *counter) open() (open bool, since time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.n > 0, c.since
}

func (c *counter) change() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.changed
}

// wait returns when there are none, or after the patience.
func (c *counter) wait(patience time.Duration) {
	over := time.After(patience)
	for {
		changed := c.change()
		if open, _ := c.open(); !open {
			return
		}
		select {
		case <-changed:
		case <-over:
			return
		}
	}
}
