package conformance

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

var nameForm = regexp.MustCompile(`^[a-z][-a-z0-9]{0,30}$`)

func checkName(s Subject) error {
	name := s.Driver.Name()
	if !nameForm.MatchString(name) {
		return fmt.Errorf("name %q is not a short lower-case word", name)
	}
	if again := s.Driver.Name(); again != name {
		return fmt.Errorf("name was %q and then %q", name, again)
	}
	return nil
}

// whileWatching runs body beside a Watch that has reported all its devices.
func whileWatching(s Subject, body func(*watching, []device.Device) error) error {
	w := watch(s, nil)
	devices, err := w.first()
	if err == nil {
		err = body(w, devices)
	}
	return errors.Join(err, w.stop())
}

func checkFirstReport(s Subject) error {
	return whileWatching(s, func(*watching, []device.Device) error { return nil })
}

func checkWatchEnds(s Subject) error {
	before := goroutines()
	err := whileWatching(s, func(w *watching, _ []device.Device) error {
		select {
		case <-w.done:
			return fmt.Errorf("Watch returned %v while its context had not ended", w.err)
		default:
			return nil
		}
	})
	if err != nil {
		return err
	}
	if err := noneSince(before, s.Patience); err != nil {
		return fmt.Errorf("after Watch returned: %w", err)
	}

	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := watchUnder(ended, s, nil).stop(); err != nil {
		return fmt.Errorf("with a context that has already ended: %w", err)
	}
	return nil
}

// checkWatchAgain watches twice. In between it writes over the first report,
// as a receiver may whose list it is.
func checkWatchAgain(s Subject) error {
	var reports [2][]device.Device
	for i := range reports {
		var w *watching
		err := whileWatching(s, func(now *watching, devices []device.Device) error {
			w, reports[i] = now, devices
			return nil
		})
		if err != nil {
			return fmt.Errorf("call %d: %w", i+1, err)
		}
		w.scribble()
	}
	for _, d := range reports[0] {
		again, ok := find(reports[1], d.ID)
		if !ok {
			return fmt.Errorf("device %s was gone when the machine was watched again", d.ID)
		}
		if !reflect.DeepEqual(d.Attributes, again.Attributes) || !slices.Equal(d.Links, again.Links) {
			return fmt.Errorf("device %s was reported as %+v and, after the receiver wrote over that report, as %+v", d.ID, d, again)
		}
	}
	return nil
}

func checkChange(s Subject) error {
	return whileWatching(s, func(w *watching, before []device.Device) error {
		if err := change(s, before); err != nil {
			return err
		}
		_, err := w.until("the change", func(now []device.Device) bool { return !same(now, before) })
		return err
	})
}

// overlapWindow is how long a receiver holds its first report to see whether
// a second one comes meanwhile. A driver is found out within it, not
// acquitted by it: the race check looks at the same promise from another side.
const overlapWindow = 100 * time.Millisecond

func checkOverlap(s Subject) error {
	release := make(chan struct{})
	w := watch(s, func() { <-release })
	devices, err := w.first()
	changed := make(chan error, 1)
	if err == nil {
		go func() { changed <- change(s, devices) }()
		_, news, _ := w.latest()
		select {
		case <-news:
		case <-time.After(overlapWindow):
		}
	} else {
		changed <- nil
	}
	close(release)
	return errors.Join(err, <-changed, w.stop())
}

// change makes the machine change, by the subject's own means or by a fault.
func change(s Subject, devices []device.Device) error {
	if s.Change != nil {
		return s.Change()
	}
	if len(devices) == 0 {
		return errors.New("there is no device to change")
	}
	return s.Driver.(hardware.FaultInjector).Fail(devices[0].ID, "changed by the conformance suite")
}

func find(devices []device.Device, id device.ID) (device.Device, bool) {
	for _, d := range devices {
		if d.ID == id {
			return d, true
		}
	}
	return device.Device{}, false
}

// background is the context of calls that end by themselves.
func background(s Subject) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), s.Patience)
}
