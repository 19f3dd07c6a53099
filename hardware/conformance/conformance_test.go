package conformance

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

func subject(f *fake) Subject {
	return Subject{
		Driver:      f,
		Devices:     len(f.devices),
		SharedNodes: []string{"/dev/control"},
		Footprint:   f.footprint,
	}
}

func TestSoundDriverPasses(t *testing.T) {
	for name, count := range map[string]int{"no device": 0, "one device": 1, "three devices": 3} {
		t.Run(name, func(t *testing.T) {
			Run(t, func(*testing.T) Subject { return subject(newFake(count)) })
		})
	}
}

func TestChecksFitTheSubject(t *testing.T) {
	plain := struct{ hardware.Driver }{newFake(2)} // hides the faults
	for _, test := range []struct {
		name    string
		subject Subject
		checks  int
	}{
		{"faults and devices", Subject{Driver: newFake(2), Devices: 2}, 17},
		{"one device", Subject{Driver: newFake(1), Devices: 1}, 16},
		{"empty machine", Subject{Driver: newFake(0)}, 7},
		{"no faults", Subject{Driver: plain, Devices: 2}, 12},
		{"no faults, a change", Subject{Driver: plain, Devices: 2, Change: func() error { return nil }}, 14},
	} {
		if got := len(checksFor(test.subject)); got != test.checks {
			t.Errorf("%s: %d checks, want %d", test.name, got, test.checks)
		}
	}
}

// TestBrokenDriversFail spoils the fake in one place and wants the suite to
// say so.
func TestBrokenDriversFail(t *testing.T) {
	leaked := make(chan struct{})
	t.Cleanup(func() { close(leaked) })

	for _, test := range []struct {
		name  string
		spoil func(*fake)
		says  string
	}{
		{"a device is missing", func(f *fake) {
			f.spoilReport = func(d []device.Device) []device.Device { return nil }
		}, "the first report has 0 devices, the machine 3"},
		{"nothing is reported", func(f *fake) {
			f.spoilWatch = func(ctx context.Context, _ func([]device.Device), _ func() error) error {
				<-ctx.Done()
				return nil
			}
		}, "Watch did not report its devices"},
		{"watch returns the context's error", func(f *fake) {
			f.spoilWatch = func(ctx context.Context, _ func([]device.Device), watch func() error) error {
				return errors.Join(watch(), ctx.Err())
			}
		}, `Watch returned "context canceled"`},
		{"watch gives up at once", func(f *fake) {
			f.spoilWatch = func(context.Context, func([]device.Device), func() error) error { return errors.New("no bus") }
		}, "Watch ended (no bus)"},
		{"watch does not return", func(f *fake) {
			f.spoilWatch = func(_ context.Context, _ func([]device.Device), watch func() error) error {
				defer func() { <-leaked }()
				return watch()
			}
		}, "Watch did not return within"},
		{"watch leaves a goroutine", func(f *fake) {
			f.spoilWatch = func(_ context.Context, _ func([]device.Device), watch func() error) error {
				go func() { <-leaked }()
				return watch()
			}
		}, "goroutines are left"},
		{"reports overlap", func(f *fake) {
			f.spoilWatch = func(ctx context.Context, report func([]device.Device), _ func() error) error {
				f.mu.Lock()
				first, changed := clone(f.devices), f.changed
				f.mu.Unlock()
				done := make(chan struct{})
				go func() {
					defer close(done)
					select {
					case <-ctx.Done():
					case <-changed:
						f.mu.Lock()
						now := clone(f.devices)
						f.mu.Unlock()
						report(now)
					}
				}()
				report(first)
				<-done
				<-ctx.Done()
				return nil
			}
		}, "another call of it had not returned"},
		{"a report is changed later", func(f *fake) {
			var last []device.Device
			f.spoilReport = func(d []device.Device) []device.Device {
				for i := range last {
					last[i].Model = "changed"
				}
				last = d
				return d
			}
		}, "was changed after it was handed over"},
		{"reports share what they hold", func(f *fake) {
			f.spoilReport = func(d []device.Device) []device.Device {
				for i := range d {
					d[i].Attributes = f.devices[i].Attributes
				}
				return d
			}
		}, "after the receiver wrote over that report"},
		{"a change is not reported", func(f *fake) {
			f.spoilWatch = func(ctx context.Context, report func([]device.Device), _ func() error) error {
				report(clone(newFake(3).devices))
				<-ctx.Done()
				return nil
			}
		}, "Watch did not report the change"},
		{"ids change", func(f *fake) {
			generation := ""
			f.spoilReport = func(d []device.Device) []device.Device {
				generation += "x"
				for i := range d {
					d[i].ID += device.ID(generation)
					d[i].Links = nil
				}
				return d
			}
		}, "was gone when the machine was watched again"},
		{"edits are unsound", func(f *fake) {
			f.spoilEdits = func(_ device.Grant, e *device.Edits) { e.Mounts[0].ReadOnly = false }
		}, "it can be written from the container"},
		{"a grant has no node", func(f *fake) {
			f.spoilEdits = func(_ device.Grant, e *device.Edits) { e.DeviceNodes = e.DeviceNodes[:1] }
		}, "has no node of its own"},
		{"prepare is not idempotent", func(f *fake) {
			f.spoilEdits = func(_ device.Grant, e *device.Edits) { e.Env["WHEN"] = time.Now().String() }
		}, "and, for the same grant,"},
		{"prepare shares its answer", func(f *fake) {
			answers := map[string]map[string]string{}
			f.spoilEdits = func(g device.Grant, e *device.Edits) {
				if answers[g.ID] == nil {
					answers[g.ID] = e.Env
				}
				e.Env = answers[g.ID]
			}
		}, "and, for the same grant,"},
		{"unknown devices get another error", func(f *fake) {
			f.spoilUnknown = func(e *hardware.UnknownDeviceError) error { return errors.New("no") }
		}, "wanted an UnknownDeviceError"},
		{"one unknown device is not named", func(f *fake) {
			f.spoilUnknown = func(e *hardware.UnknownDeviceError) error { e.IDs = e.IDs[:1]; return e }
		}, "unknown are"},
		{"a refused grant leaves something", func(f *fake) {
			f.spoilGrant = func(g device.Grant) { f.grants[g.ID] = true }
		}, "a grant that was refused left"},
		{"a neighbour's node is given", func(f *fake) {
			f.spoilEdits = func(_ device.Grant, e *device.Edits) {
				e.DeviceNodes = append(e.DeviceNodes[:1], device.DeviceNode{HostPath: "/dev/card-0", ContainerPath: "/dev/card", Permissions: "rw"})
			}
		}, "both hold the node /dev/card-0"},
		{"a larger grant gets all nodes", func(f *fake) {
			f.spoilEdits = func(g device.Grant, e *device.Edits) {
				if len(g.Devices) == 2 {
					e.DeviceNodes = append(e.DeviceNodes, device.DeviceNode{HostPath: "/dev/card-2", ContainerPath: "/dev/card-2", Permissions: "rw"})
				}
			}
		}, "holds the nodes"},
		{"unprepare leaves something", func(f *fake) { f.keepGrants = true }, "Unprepare left"},
		{"unprepare of a stranger fails", func(f *fake) { f.unprepareErr = errors.New("what grant?") }, "what grant?"},
		{"a fault loses its reason", func(f *fake) {
			f.spoilFail = func(device.ID, string) (string, bool) { return "sick", true }
		}, "Watch did not report the fault"},
		{"a fault hits the neighbour too", func(f *fake) {
			f.spoilReport = func(d []device.Device) []device.Device {
				if !d[2].Health.OK() {
					d[1].Health = d[2].Health
				}
				return d
			}
		}, "more changed than the health of"},
		{"a fault is forgotten", func(f *fake) {
			f.spoilWatch = func(_ context.Context, _ func([]device.Device), watch func() error) error {
				defer f.heal()
				return watch()
			}
		}, "was gone when the machine was watched again"},
		{"a stranger falls sick", func(f *fake) {
			f.spoilFail = func(id device.ID, reason string) (string, bool) { return reason, id != stranger }
		}, "Fail: got the error <nil>"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var said []string
			for _, c := range checksFor(subject(newFake(3))) {
				f := newFake(3)
				test.spoil(f)
				s := subject(f)
				s.Patience = 200 * time.Millisecond
				if err := c.run(s); err != nil {
					said = append(said, c.name+": "+err.Error())
					if strings.Contains(err.Error(), test.says) {
						return
					}
				}
			}
			t.Errorf("the suite does not say %q but %q", test.says, said)
		})
	}
}
