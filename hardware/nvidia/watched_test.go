package nvidia

import (
	"context"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// watched is a running Watch.
type watched struct {
	t       *testing.T
	cancel  context.CancelFunc
	reports chan []device.Device
	ended   chan error
}

// watch starts a Watch that ends with the test.
func watch(t *testing.T, d *Driver) *watched {
	ctx, cancel := context.WithCancel(t.Context())
	w := &watched{t: t, cancel: cancel, reports: make(chan []device.Device, 1), ended: make(chan error, 1)}
	go func() {
		w.ended <- d.Watch(ctx, func(devices []device.Device) {
			select {
			case <-w.reports: // nobody took the last one, and this one is newer
			default:
			}
			w.reports <- devices
		})
		close(w.reports)
	}()
	t.Cleanup(func() {
		cancel()
		for range w.reports {
		}
	})
	return w
}

// until waits for a report that is as wanted.
func (w *watched) until(what string, wanted func([]device.Device) bool) []device.Device {
	w.t.Helper()
	deadline := time.After(20 * time.Second)
	var latest []device.Device
	for {
		select {
		case devices, ok := <-w.reports:
			if !ok {
				w.t.Fatalf("Watch ended before it reported %s", what)
			}
			if latest = devices; wanted(devices) {
				return devices
			}
		case <-deadline:
			var health []device.Health
			for _, d := range latest {
				health = append(health, d.Health)
			}
			w.t.Fatalf("Watch did not report %s; its latest report: %+v", what, health)
		}
	}
}

func (w *watched) first() []device.Device {
	w.t.Helper()
	return w.until("anything", func([]device.Device) bool { return true })
}

func healthOf(devices []device.Device, id device.ID) device.Health {
	for _, d := range devices {
		if d.ID == id {
			return d.Health
		}
	}
	return device.Health{}
}
