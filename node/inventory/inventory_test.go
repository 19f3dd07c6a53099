package inventory

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

// fake is a driver whose watch is the given function.
type fake struct {
	hardware.Driver
	name  string
	watch func(ctx context.Context, report func([]device.Device)) error
}

func (f *fake) Name() string { return f.name }
func (f *fake) Watch(ctx context.Context, report func([]device.Device)) error {
	return f.watch(ctx, report)
}

// fed is a driver that reports whatever is sent to it.
func fed(name string) (*fake, chan []device.Device) {
	lists := make(chan []device.Device)
	return &fake{name: name, watch: func(ctx context.Context, report func([]device.Device)) error {
		for {
			select {
			case <-ctx.Done():
				return nil
			case devices := <-lists:
				report(devices)
			}
		}
	}}, lists
}

func well(ids ...device.ID) []device.Device {
	devices := make([]device.Device, len(ids))
	for i, id := range ids {
		devices[i] = device.Device{ID: id, Vendor: "example.com", Kind: "gpu", Index: i, Health: device.Health{State: device.Healthy}}
	}
	return devices
}

func ids(s Snapshot) []device.ID {
	var found []device.ID
	for _, d := range s.Devices {
		found = append(found, d.ID)
	}
	return found
}

// start runs an inventory inside a synctest bubble.
func start(t *testing.T, log *bytes.Buffer, drivers ...hardware.Driver) *Inventory {
	t.Helper()
	inventory := New(drivers, slog.New(slog.NewTextHandler(log, nil)))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- inventory.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return inventory
}

func TestMergesDriversAndSeesChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a, aLists := fed("a")
		b, bLists := fed("b")
		inventory := start(t, &log, a, b)

		changed := inventory.Changed()
		aLists <- well("a0", "a1")
		<-changed
		first := inventory.Snapshot()
		if diff := cmp.Diff([]device.ID{"a0", "a1"}, ids(first)); diff != "" {
			t.Error(diff)
		}
		if first.Complete {
			t.Error("complete although one driver has not reported")
		}

		changed = inventory.Changed()
		bLists <- nil
		<-changed
		if second := inventory.Snapshot(); !second.Complete || second.Version <= first.Version {
			t.Errorf("after both drivers reported: %+v", second)
		}

		changed = inventory.Changed()
		bLists <- well("b0")
		<-changed
		if diff := cmp.Diff([]device.ID{"a0", "b0", "a1"}, ids(inventory.Snapshot())); diff != "" {
			t.Errorf("not sorted by index and id: %s", diff)
		}
		for id, want := range map[device.ID]hardware.Driver{"a1": a, "b0": b} {
			if got, found := inventory.Driver(id); !found || got != want {
				t.Errorf("driver of %s: %v, %v", id, got, found)
			}
		}
		if _, found := inventory.Driver("c0"); found {
			t.Error("a device that nobody reported has a driver")
		}
		if got, found := inventory.DriverNamed("b"); !found || got != b {
			t.Errorf("driver b: %v, %v", got, found)
		}
		if _, found := inventory.DriverNamed("c"); found {
			t.Error("there is a driver c")
		}

		before := inventory.Snapshot()
		aLists <- well("a0", "a1")
		synctest.Wait()
		if after := inventory.Snapshot(); after.Version != before.Version {
			t.Error("the same report again counts as a change")
		}
	})
}

func TestSnapshotIsACopy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a, lists := fed("a")
		inventory := start(t, &log, a)
		given := well("a0")
		given[0].Attributes = map[string]device.Attribute{"x": device.Int(1)}
		lists <- given
		synctest.Wait()
		given[0].Attributes["x"] = device.Int(2)
		taken := inventory.Snapshot()
		taken.Devices[0].Attributes["x"] = device.Int(3)
		if got := inventory.Snapshot().Devices[0].Attributes["x"]; got != device.Int(1) {
			t.Errorf("attribute is %v: somebody outside wrote to the list", got)
		}
	})
}

func TestFailedDriverIsStartedAgainAndItsDevicesStay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var starts []time.Time
		failing := &fake{name: "failing", watch: func(ctx context.Context, report func([]device.Device)) error {
			starts = append(starts, time.Now())
			if len(starts) == 1 {
				report(well("a0"))
			}
			return errors.New("the library went away")
		}}
		inventory := start(t, &log, failing)
		time.Sleep(2 * time.Minute)
		synctest.Wait()

		if diff := cmp.Diff([]device.ID{"a0"}, ids(inventory.Snapshot())); diff != "" {
			t.Errorf("devices after the driver failed: %s", diff)
		}
		var pauses []time.Duration
		for i := 1; i < len(starts); i++ {
			pauses = append(pauses, starts[i].Sub(starts[i-1]))
		}
		want := []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9, 30e9, 30e9}
		if diff := cmp.Diff(want, pauses); diff != "" {
			t.Errorf("pauses between the starts: %s", diff)
		}
		if !strings.Contains(log.String(), "the library went away") {
			t.Error("the reason is not in the log")
		}
	})
}

func TestSecondDriverWithTheSameDeviceIsRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		a, aLists := fed("a")
		b, bLists := fed("b")
		inventory := start(t, &log, a, b)

		// b was first, although a stands before it in the configuration.
		bLists <- well("x")
		aLists <- well("x", "y")
		aLists <- well("x", "y", "y")
		synctest.Wait()
		if diff := cmp.Diff([]device.ID{"x", "y"}, ids(inventory.Snapshot())); diff != "" {
			t.Error(diff)
		}
		if owner, _ := inventory.Driver("x"); owner != b {
			t.Errorf("x belongs to %s", owner.Name())
		}
		if n := strings.Count(log.String(), "another driver reports"); n != 1 {
			t.Errorf("the refusal of x was logged %d times:\n%s", n, &log)
		}
		if n := strings.Count(log.String(), "reports the id twice"); n != 1 {
			t.Errorf("the refusal of the second y was logged %d times:\n%s", n, &log)
		}

		bLists <- nil
		synctest.Wait()
		if owner, found := inventory.Driver("x"); !found || owner != a {
			t.Error("x did not pass to the driver that still reports it")
		}
	})
}

func TestTransitions(t *testing.T) {
	sick := func(devices []device.Device, reason string) []device.Device {
		for i := range devices {
			devices[i].Health = device.Health{State: device.Unhealthy, Reason: reason}
		}
		return devices
	}
	tests := map[string]struct {
		before, after []device.Device
		want          map[device.ID]Change
	}{
		"nothing":             {well("a"), well("a"), nil},
		"new and well":        {nil, well("a"), nil},
		"new and sick":        {nil, sick(well("a"), "x"), map[device.ID]Change{"a": FellSick}},
		"fell sick":           {well("a", "b"), append(sick(well("a"), "x"), well("b")...), map[device.ID]Change{"a": FellSick}},
		"sick, other reason":  {sick(well("a"), "x"), sick(well("a"), "y"), nil},
		"recovered":           {sick(well("a"), "x"), well("a"), map[device.ID]Change{"a": Recovered}},
		"vanished":            {well("a", "b"), well("b"), map[device.ID]Change{"a": Vanished}},
		"vanished while sick": {sick(well("a"), "x"), nil, map[device.ID]Change{"a": Vanished}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			var got map[device.ID]Change
			for _, transition := range Transitions(Snapshot{Devices: test.before}, Snapshot{Devices: test.after}) {
				if got == nil {
					got = make(map[device.ID]Change)
				}
				got[transition.Device.ID] = transition.Change
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
