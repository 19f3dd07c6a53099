package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// watching is a running Watch and what it has reported.
type watching struct {
	devices  int // how many the machine has
	patience time.Duration
	cancel   context.CancelFunc
	done     chan struct{} // closed when Watch has returned, with err set
	err      error

	mu      sync.Mutex
	reports []report
	inside  int           // calls of report that have not returned
	over    bool          // Watch has returned
	faults  []error       // promises broken by the calls themselves
	news    chan struct{} // closed and replaced with every report or fault
}

// report is one call: the slice that was handed over, and what it said then.
type report struct{ kept, said []device.Device }

// watch starts Watch. The hold, where there is one, runs inside each report
// and so makes a slow receiver.
func watch(s Subject, hold func()) *watching {
	return watchUnder(context.Background(), s, hold)
}

func watchUnder(ctx context.Context, s Subject, hold func()) *watching {
	ctx, cancel := context.WithCancel(ctx)
	w := &watching{
		devices:  s.Devices,
		patience: s.Patience,
		cancel:   cancel,
		done:     make(chan struct{}),
		news:     make(chan struct{}),
	}
	go func() {
		defer close(w.done)
		w.err = s.Driver.Watch(ctx, func(devices []device.Device) {
			w.enter(devices)
			if hold != nil {
				hold()
			}
			w.leave()
		})
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over = true
	}()
	return w
}

func (w *watching) enter(devices []device.Device) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.inside++; w.inside > 1 {
		w.faults = append(w.faults, errors.New("Watch called report while another call of it had not returned"))
	}
	if w.over {
		w.faults = append(w.faults, errors.New("Watch called report after it had returned"))
	}
	w.reports = append(w.reports, report{kept: devices, said: clone(devices)})
	close(w.news)
	w.news = make(chan struct{})
}

func (w *watching) leave() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.inside--
}

// until waits for a report that holds what is wanted, and returns the latest
// one that does. It fails when a report is unsound, when Watch ends, and when
// patience does.
func (w *watching) until(wanted string, holds func([]device.Device) bool) ([]device.Device, error) {
	deadline := time.NewTimer(w.patience)
	defer deadline.Stop()
	for {
		latest, news, err := w.latest()
		if err != nil {
			return nil, err
		}
		if latest != nil && holds(latest) {
			return latest, nil
		}
		select {
		case <-news:
		case <-w.done:
			return nil, fmt.Errorf("Watch ended (%v) before it reported %s", w.err, wanted)
		case <-deadline.C:
			return nil, fmt.Errorf("Watch did not report %s within %s; its latest report: %+v", wanted, w.patience, latest)
		}
	}
}

// latest returns the newest report, nil when there was none, and a channel
// that closes when there is a newer one.
func (w *watching) latest() ([]device.Device, <-chan struct{}, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err := errors.Join(w.faults...); err != nil {
		return nil, nil, err
	}
	if len(w.reports) == 0 {
		return nil, w.news, nil
	}
	said := w.reports[len(w.reports)-1].said
	return said, w.news, Devices(said)
}

// first waits for the first report, which has to be the full list.
func (w *watching) first() ([]device.Device, error) {
	devices, err := w.until("its devices", func([]device.Device) bool { return true })
	if err == nil && len(devices) != w.devices {
		err = fmt.Errorf("the first report has %d devices, the machine %d: %+v", len(devices), w.devices, devices)
	}
	return devices, err
}

// stop ends Watch and checks how it ended and that no report was changed
// after it was handed over.
func (w *watching) stop() error {
	w.cancel()
	select {
	case <-w.done:
	case <-time.After(w.patience):
		return fmt.Errorf("Watch did not return within %s after its context ended", w.patience)
	}
	if w.err != nil {
		return fmt.Errorf("Watch returned %q when its context ended, not nil", w.err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	errs := w.faults
	for i, r := range w.reports {
		if err := Devices(r.said); err != nil {
			errs = append(errs, fmt.Errorf("report %d: %w", i, err))
		}
		if !same(r.kept, r.said) {
			errs = append(errs, fmt.Errorf("report %d was changed after it was handed over", i))
		}
	}
	return errors.Join(errs...)
}

// scribble writes over all that was handed over.
func (w *watching) scribble() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, r := range w.reports {
		for i, d := range r.kept {
			clear(d.Attributes)
			clear(d.Links)
			r.kept[i] = device.Device{}
		}
	}
}

func clone(devices []device.Device) []device.Device {
	copied := make([]device.Device, len(devices))
	for i, d := range devices {
		copied[i] = d.Clone()
	}
	return copied
}

// same compares two lists; nil and empty are the same.
func same(a, b []device.Device) bool {
	return len(a) == len(b) && (len(a) == 0 || reflect.DeepEqual(a, b))
}
