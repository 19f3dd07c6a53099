package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// creator keeps events, or fails.
type creator struct {
	mu    sync.Mutex
	err   error
	calls int
	got   []PodEvent
}

func (c *creator) CreateEvent(_ context.Context, event PodEvent) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls++
	if c.err == nil {
		c.got = append(c.got, event)
	}
	return c.err
}

func (c *creator) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
}

func runRecorder(t *testing.T, c *creator) *Recorder {
	t.Helper()
	recorder := NewRecorder(c, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- recorder.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return recorder
}

func TestRecorderTriesAgainWhileTheServerIsAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &creator{err: errors.New("connection refused")}
		recorder := runRecorder(t, c)
		second := testEvent()
		second.Message = "still too hot"
		for range 3 {
			recorder.Record(testEvent())
			recorder.Record(second)
		}
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if c.calls < 10 || c.calls > 30 {
			t.Errorf("tried %d times in ten minutes", c.calls)
		}
		c.fail(nil)
		time.Sleep(longestPause)
		synctest.Wait()
		if len(c.got) != 2 || c.got[0] != testEvent() || c.got[1] != second {
			t.Errorf("written: %v; want each once, in order", c.got)
		}
	})
}

func TestRecorderGivesUpWhatIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &creator{err: fmt.Errorf("no such namespace: %w", ErrRefused)}
		recorder := runRecorder(t, c)
		recorder.Record(testEvent())
		synctest.Wait()
		c.fail(nil)
		second := testEvent()
		second.Message = "other"
		recorder.Record(second)
		synctest.Wait()
		if len(c.got) != 1 || c.got[0] != second {
			t.Errorf("written: %v; want the second alone", c.got)
		}
	})
}

func TestRecorderKeepsABoundedNumber(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &creator{err: errors.New("away")}
		recorder := runRecorder(t, c)
		for i := range mostWaiting + 10 {
			event := testEvent()
			event.Message = fmt.Sprint(i)
			recorder.Record(event)
		}
		c.fail(nil)
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(c.got) != mostWaiting || c.got[0].Message != "10" {
			t.Errorf("%d written, the first is %q", len(c.got), c.got[0].Message)
		}
	})
}
