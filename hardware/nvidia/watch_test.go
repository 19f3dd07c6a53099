package nvidia

import (
	"bytes"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"

	"github.com/kilter-dev/kilter/device"
)

// logbook keeps what is logged.
type logbook struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logbook) count(what string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), what)
}

func allHealthy(n int) func([]device.Device) bool {
	return func(devices []device.Device) bool {
		for _, d := range devices {
			if !d.Health.OK() {
				return false
			}
		}
		return len(devices) == n
	}
}

func allSick(n int, reason string) func([]device.Device) bool {
	return func(devices []device.Device) bool {
		for _, d := range devices {
			if d.Health.OK() || !strings.Contains(d.Health.Reason, reason) {
				return false
			}
		}
		return len(devices) == n
	}
}

// The driver is loaded, fails and comes back, twice; every change of state is
// logged once, however often NVML is tried meanwhile.
func TestNVMLComesAndGoes(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	m.initFail = nvml.ERROR_DRIVER_NOT_LOADED
	c := m.config(t)
	logged := &logbook{}
	c.Logger = slog.New(slog.NewTextHandler(logged, nil))
	tries := make(chan struct{})
	c.NVML = func() (nvml.Interface, error) {
		select {
		case tries <- struct{}{}:
		default:
		}
		return m.server, nil
	}
	w := watch(t, newDriver(t, c))
	if devices := w.first(); len(devices) != 0 {
		t.Fatalf("found %d GPUs without a driver", len(devices))
	}
	for range 2 {
		m.change(func() { m.initFail = nvml.SUCCESS })
		w.until("8 healthy GPUs", allHealthy(8))
		m.change(func() { m.initFail = nvml.ERROR_DRIVER_NOT_LOADED })
		w.until("8 sick GPUs", allSick(8, "DRIVER_NOT_LOADED"))
		for range 5 {
			select {
			case <-tries:
			case <-time.After(10 * time.Second):
				t.Fatal("NVML is not tried again")
			}
		}
	}
	if n := logged.count("NVML works"); n != 2 {
		t.Errorf("logged %d times that NVML works, want 2", n)
	}
	if n := logged.count("NVML does not work"); n != 3 {
		t.Errorf("logged %d times that NVML does not work, want 3", n)
	}
	if logged.count("modprobe nvidia") == 0 {
		t.Error("the log does not say what to do")
	}
}

func TestGPUIsAdded(t *testing.T) {
	m := newMachine(t, dgxa100.NewWithGPUs(), a100)
	w := watch(t, m.driver(t))
	if devices := w.first(); len(devices) != 0 {
		t.Fatalf("found %d GPUs on a machine that has none", len(devices))
	}
	for i := range 3 {
		m.plug(t, dgxa100.NewDevice(i), i, a100)
		w.until("one more GPU", allHealthy(i+1))
	}
}

func TestGPUIsLost(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	w := watch(t, m.driver(t))
	before := w.first()

	m.change(func() { m.gpus[3].lost = true })
	devices := w.until("a lost GPU", func(now []device.Device) bool { return !now[3].Health.OK() })
	for i, d := range devices {
		if d.ID != before[i].ID {
			t.Fatalf("device %d is %s, was %s", i, d.ID, before[i].ID)
		}
		if d.Health.OK() != (i != 3) {
			t.Errorf("device %d: health %+v", i, d.Health)
		}
	}
	if reason := devices[3].Health.Reason; !strings.Contains(reason, "GPU_IS_LOST") {
		t.Errorf("the reason does not say what happened: %q", reason)
	}

	// It is still the same device when the driver has given it up, so that NVML
	// does not list it and the indices of those behind it have moved up.
	m.change(func() { m.gpus = append(m.gpus[:3:3], m.gpus[4:]...) })
	m.remove(t, filepath.Join(pciDriver, before[3].PCIAddress))
	w.until("a GPU that is not listed", func(now []device.Device) bool {
		return len(now) == 8 && strings.Contains(healthOf(now, before[3].ID).Reason, "no longer lists")
	})

	// Pulled out of the machine, it is no device any more.
	m.remove(t, filepath.Join(pciDevices, before[3].PCIAddress))
	w.until("7 healthy GPUs", allHealthy(7))
}

// One GPU that keeps NVML from returning hides no other, and is asked again
// only after its answer has come.
func TestGPUIsStuck(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	c.Patience = 20 * time.Millisecond
	clock := slow(&c)
	w := watch(t, newDriver(t, c))
	before := w.first()

	stuck := make(chan struct{})
	m.change(func() { m.gpus[5].stuck = stuck })
	w.until("a GPU that does not answer", func(now []device.Device) bool {
		h := healthOf(now, before[5].ID)
		return h.State == device.Suspect && strings.Contains(h.Reason, "does not answer")
	})
	clock.advance(time.Minute)
	w.until("that GPU as unhealthy", func(now []device.Device) bool {
		return healthOf(now, before[5].ID).State == device.Unhealthy
	})
	m.change(func() { m.gpus[2].lost = true })
	w.until("another fault", func(now []device.Device) bool { return !healthOf(now, before[2].ID).OK() })

	m.change(func() { m.gpus[2].lost, m.gpus[5].stuck = false, nil })
	close(stuck)
	w.until("both on trial", func(now []device.Device) bool {
		return healthOf(now, before[2].ID).State == device.Recovering && healthOf(now, before[5].ID).State == device.Recovering
	})
	clock.advance(time.Hour)
	w.until("8 healthy GPUs", allHealthy(8))
}

// A GPU that is broken from the start has no name to be reported under.
func TestGPUCanNotBeOpened(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	m.gpus[3].lost = true
	c := m.config(t)
	logged := &logbook{}
	c.Logger = slog.New(slog.NewTextHandler(logged, nil))
	w := watch(t, newDriver(t, c))
	w.until("the 7 others", allHealthy(7))
	m.looked(t)
	if n := logged.count("can not open it"); n != 1 {
		t.Errorf("logged %d times that a GPU can not be opened, want 1", n)
	}
	m.change(func() { m.gpus[3].lost = false })
	w.until("all 8", allHealthy(8))
}

// Watch ends also while NVML does not return, and does not shut it down then.
func TestEndWhileStuck(t *testing.T) {
	for _, what := range []string{"a GPU", "the start"} {
		t.Run(what, func(t *testing.T) {
			m := newMachine(t, dgxh200.New(), h100)
			stuck := make(chan struct{})
			defer close(stuck)
			if what == "a GPU" {
				m.gpus[5].stuck = stuck
			} else {
				m.server.InitFunc = func() nvml.Return { <-stuck; return nvml.SUCCESS }
			}
			c := m.config(t)
			c.Patience = 10 * time.Millisecond
			w := watch(t, newDriver(t, c))
			w.first()
			w.cancel()
			select {
			case err := <-w.ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(10 * time.Second):
				t.Error("Watch does not end")
			}
			if n := len(m.server.ShutdownCalls()); n != 0 {
				t.Errorf("NVML was shut down %d times while it was busy", n)
			}
		})
	}
}

func TestDriverIsReplaced(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	var replaced error
	c.NVML = func() (nvml.Interface, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.server, replaced
	}
	w := watch(t, newDriver(t, c))
	w.first()
	m.change(func() { replaced, m.initFail = ErrDriverReplaced, nvml.ERROR_LIB_RM_VERSION_MISMATCH })
	w.until("8 sick GPUs", allSick(8, "start this process again"))
	select {
	case err := <-w.ended:
		if !errors.Is(err, ErrDriverReplaced) {
			t.Errorf("Watch ended with %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Error("Watch goes on, and can not")
	}
}

func TestSecondWatchIsRefused(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	d := m.driver(t)
	watch(t, d).first()
	if err := d.Watch(t.Context(), func([]device.Device) { t.Error("it reports") }); err == nil {
		t.Error("a second Watch ended without an error")
	}
}
