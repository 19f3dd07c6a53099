package nvidia

import (
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// clock is a time that passes when it is told to.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// slow gives a configuration the real policy and a clock that stands still.
func slow(c *Config) *clock {
	clock := &clock{now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}
	c.Health = health.DefaultPolicy
	c.Now = func() time.Time {
		clock.mu.Lock()
		defer clock.mu.Unlock()
		return clock.now
	}
	return clock
}

// only wants one GPU in a state, for a reason, and all others healthy.
func only(i int, state device.HealthState, reason string) func([]device.Device) bool {
	return func(devices []device.Device) bool {
		for j, d := range devices {
			switch {
			case j != i && !d.Health.OK():
				return false
			case j == i && (d.Health.State != state || !strings.Contains(d.Health.Reason, reason)):
				return false
			}
		}
		return len(devices) > i
	}
}

// Every source that can be looked at, from its appearance to its end.
func TestSourcesOfHealth(t *testing.T) {
	reset := func(action nvml.DeviceGpuRecoveryAction) func(*fakeGPU) {
		return func(g *fakeGPU) { g.recovery = action }
	}
	fabric := func(state uint8, status nvml.Return, summary uint8) func(*fakeGPU) {
		return func(g *fakeGPU) {
			g.fabric.State, g.fabric.Status, g.fabric.HealthSummary = state, uint32(status), summary
		}
	}
	for name, test := range map[string]struct {
		setUp    func(m *machine)
		fall     func(g *fakeGPU)
		state    device.HealthState
		reason   string
		rise     func(g *fakeGPU)
		wayBack  device.HealthState // when what was wrong is gone
		noReturn bool               // also after a long time
	}{
		"lost": {
			fall: func(g *fakeGPU) { g.lost = true }, state: device.Unhealthy, reason: "LOST",
			rise: func(g *fakeGPU) { g.lost = false }, wayBack: device.Recovering,
		},
		"a reset is due": {
			fall: reset(nvml.GPU_RECOVERY_ACTION_GPU_RESET), state: device.Unhealthy, reason: "needs a reset",
			rise: reset(nvml.GPU_RECOVERY_ACTION_NONE), wayBack: device.Recovering,
		},
		"a drain is due": {
			fall: reset(nvml.GPU_RECOVERY_ACTION_DRAIN_P2P), state: device.Unhealthy, reason: "peer-to-peer",
			rise: reset(nvml.GPU_RECOVERY_ACTION_NONE), wayBack: device.Recovering,
		},
		"something is due that came after us": {
			fall: reset(42), state: device.Unhealthy, reason: "recovery action 42",
			rise: reset(nvml.GPU_RECOVERY_ACTION_NONE), wayBack: device.Recovering,
		},
		"rows can not be replaced": {
			fall: func(g *fakeGPU) { g.remapFailed = true }, state: device.Unhealthy, reason: "exchanged",
			rise: func(g *fakeGPU) { g.remapFailed = false }, wayBack: device.Recovering,
		},
		"rows wait for a reset, and NVML says nothing of it": {
			setUp: withoutJudgement,
			fall:  func(g *fakeGPU) { g.remapPending = true }, state: device.Unhealthy, reason: "a reset, with which rows",
			rise: func(g *fakeGPU) { g.remapPending = false }, wayBack: device.Recovering,
		},
		"memory errors": {
			fall: func(g *fakeGPU) { g.uncorrected++ }, state: device.Suspect, reason: "memory errors",
			wayBack: device.Suspect,
		},
		"memory errors without a judge": {
			setUp: withoutJudgement,
			fall:  func(g *fakeGPU) { g.uncorrected++ }, state: device.Unhealthy, reason: "memory errors",
			wayBack: device.Unhealthy, noReturn: true,
		},
		"a probe fails": {
			fall: func(g *fakeGPU) { g.temperature = nvml.ERROR_UNKNOWN }, state: device.Suspect, reason: "temperature",
			rise: func(g *fakeGPU) { g.temperature = nvml.SUCCESS }, wayBack: device.Suspect,
		},
		"a probe finds it lost": {
			fall: func(g *fakeGPU) { g.temperature = nvml.ERROR_GPU_IS_LOST }, state: device.Unhealthy, reason: "temperature",
			rise: func(g *fakeGPU) { g.temperature = nvml.SUCCESS }, wayBack: device.Recovering,
		},
		"the fabric starts": {
			fall: fabric(nvml.GPU_FABRIC_STATE_IN_PROGRESS, 0, 0), state: device.Suspect, reason: "being set up",
			rise: fabric(nvml.GPU_FABRIC_STATE_COMPLETED, nvml.SUCCESS, nvml.GPU_FABRIC_HEALTH_SUMMARY_HEALTHY), wayBack: device.Suspect,
		},
		"the fabric manager is not there": {
			fall: fabric(nvml.GPU_FABRIC_STATE_NOT_STARTED, 0, 0), state: device.Suspect, reason: "is the fabric manager running?",
			rise: fabric(nvml.GPU_FABRIC_STATE_COMPLETED, nvml.SUCCESS, nvml.GPU_FABRIC_HEALTH_SUMMARY_LIMITED_CAPACITY), wayBack: device.Suspect,
		},
		"the fabric failed": {
			fall: fabric(nvml.GPU_FABRIC_STATE_COMPLETED, nvml.ERROR_UNKNOWN, 0), state: device.Unhealthy, reason: "could not be set up",
			rise: fabric(nvml.GPU_FABRIC_STATE_COMPLETED, nvml.SUCCESS, 0), wayBack: device.Recovering,
		},
		"the fabric is sick": {
			fall: fabric(nvml.GPU_FABRIC_STATE_COMPLETED, nvml.SUCCESS, nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY), state: device.Unhealthy, reason: "not healthy",
			rise: fabric(nvml.GPU_FABRIC_STATE_NOT_SUPPORTED, 0, 0), wayBack: device.Recovering,
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, dgxh200.New(), h100)
			if test.setUp != nil {
				test.setUp(m)
			}
			c := m.config(t)
			clock := slow(&c)
			w := watch(t, newDriver(t, c))
			w.until("8 healthy GPUs", allHealthy(8))

			m.change(func() { test.fall(m.gpus[3]) })
			fallen := w.until("the fall", only(3, test.state, test.reason))
			if since := fallen[3].Health.Since; !since.Equal(c.Now()) {
				t.Errorf("sick since %s, want %s", since, c.Now())
			}
			if test.rise != nil {
				m.change(func() { test.rise(m.gpus[3]) })
			}
			if test.wayBack != test.state {
				w.until("the way back", only(3, test.wayBack, test.reason))
			}

			for range 3 {
				m.looked(t)
				clock.advance(time.Hour)
			}
			m.looked(t)
			if !test.noReturn {
				w.until("8 healthy GPUs", allHealthy(8))
				return
			}
			select {
			case now := <-w.reports:
				t.Errorf("it changed: %+v", now[3].Health)
			default:
			}
		})
	}
}

// withoutJudgement makes the driver one that has no recovery action.
func withoutJudgement(m *machine) {
	for _, field := range []uint32{nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, nvml.FI_DEV_RESET_STATUS, nvml.FI_DEV_DRAIN_AND_RESET_STATUS} {
		m.noFields[field] = true
	}
}

func TestXID(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	clock := slow(&c)
	w := watch(t, newDriver(t, c))
	w.until("8 healthy GPUs", allHealthy(8))

	m.raise(1, 31) // a program's fault
	m.raise(3, 94)
	w.until("an error of one GPU", only(3, device.Suspect, "XID 94"))
	m.looked(t)
	clock.advance(time.Minute)
	w.until("8 healthy GPUs", allHealthy(8))

	m.raise(3, 79)
	w.until("another error of it", only(3, device.Suspect, "XID 79"))
	m.change(func() { m.gpus[3].recovery = nvml.GPU_RECOVERY_ACTION_GPU_RESET })
	w.until("it as unhealthy", only(3, device.Unhealthy, "needs a reset; XID 79"))
	m.change(func() { m.gpus[3].recovery = nvml.GPU_RECOVERY_ACTION_NONE })
	w.until("it on trial", only(3, device.Recovering, "XID 79"))
	m.looked(t)
	clock.advance(time.Hour)
	w.until("8 healthy GPUs", allHealthy(8))
}

// An error that takes the GPU away with it does not stand for ever: the judge
// is only absent.
func TestXIDOfAGPUThatIsLostWithIt(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	slow(&c)
	w := watch(t, newDriver(t, c))
	w.first()
	m.change(func() { m.gpus[3].lost = true })
	m.raise(3, 79)
	w.until("both", only(3, device.Unhealthy, "XID 79"))
	m.change(func() { m.gpus[3].lost = false })
	w.until("it on trial", only(3, device.Recovering, "XID 79"))
}

// NVML's judgement counts more than rows that wait to be replaced.
func TestRowsWaitAndNVMLDoesNotMind(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	m.gpus[3].remapPending = true
	if devices := watch(t, m.driver(t)).first(); !allHealthy(8)(devices) {
		t.Errorf("it is not offered: %+v", devices[3].Health)
	}
}

// What was counted before anybody looked did not happen now, and events are
// asked for once.
func TestFirstLook(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	m.gpus[3].uncorrected = 5
	w := watch(t, m.driver(t))
	if devices := w.first(); !allHealthy(8)(devices) {
		t.Errorf("it is not offered: %+v", devices[3].Health)
	}
	m.looked(t)
	if n := len(m.gpus[3].RegisterEventsCalls()); n != 1 {
		t.Errorf("events were asked for %d times", n)
	}
	m.change(func() {
		if m.gpus[3].reads["late registrations"] > 0 {
			t.Error("events were asked for in the middle of a wait, which NVML makes wait for its end")
		}
	})
}

// A driver without a judgement leaves an error standing, for every Watch,
// until it is loaded anew.
func TestXIDOfAnOldDriver(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	withoutJudgement(m)
	c := m.config(t)
	clock := slow(&c)
	d := newDriver(t, c)
	w := watch(t, d)
	w.first()
	m.raise(3, 94)
	w.until("it as unhealthy", only(3, device.Unhealthy, "XID 94; this driver can not say"))
	w.cancel()
	if err := <-w.ended; err != nil {
		t.Fatal(err)
	}

	clock.advance(24 * time.Hour)
	w = watch(t, d)
	if again := w.first(); !only(3, device.Unhealthy, "XID 94")(again) {
		t.Errorf("it was forgotten: %+v", again[3].Health)
	}
	m.change(func() { m.initFail = nvml.ERROR_DRIVER_NOT_LOADED })
	w.until("no driver", allSick(8, "modprobe"))
	m.change(func() { m.initFail = nvml.SUCCESS })
	w.until("it on trial", func(now []device.Device) bool { return now[3].Health.State == device.Recovering })
	clock.advance(time.Hour)
	w.until("8 healthy GPUs", allHealthy(8))
}

// A lost GPU makes its set of events fail; the others are heard all the same.
func TestEventsAfterALoss(t *testing.T) {
	m := newMachine(t, dgxb200.New(), b200)
	c := m.config(t)
	slow(&c)
	w := watch(t, newDriver(t, c))
	w.first()
	m.change(func() {
		m.gpus[2].lost = true
		close(m.sets[0].failed)
	})
	w.until("a lost GPU", only(2, device.Unhealthy, "LOST"))
	// The new set may not be there at once, and an error is told once only.
	heard := func(now []device.Device) bool {
		m.raise(5, 94)
		return now[5].Health.State == device.Suspect
	}
	deadline := time.After(10 * time.Second)
	for done := false; !done; {
		select {
		case now := <-w.reports:
			done = heard(now)
		case <-time.After(5 * time.Millisecond):
			m.raise(5, 94)
		case <-deadline:
			t.Fatal("no GPU is heard any more")
		}
	}
	m.change(func() {
		last := m.sets[len(m.sets)-1]
		if last.gpus[m.gpus[2].Device] || len(last.gpus) != 7 {
			t.Errorf("the new set has %d GPUs, the lost one among them: %v", len(last.gpus), last.gpus[m.gpus[2].Device])
		}
		if !m.sets[0].freed {
			t.Error("the old set was not freed")
		}
	})
}

// Without events, errors are found by looking, and the log says so once.
func TestNoEvents(t *testing.T) {
	m := newMachine(t, dgxb200.New(), b200)
	m.server.EventSetCreateFunc = func() (nvml.EventSet, nvml.Return) { return nil, nvml.ERROR_NOT_SUPPORTED }
	c := m.config(t)
	logged := &logbook{}
	c.Logger = slog.New(slog.NewTextHandler(logged, nil))
	w := watch(t, newDriver(t, c))
	w.until("8 healthy GPUs", allHealthy(8))
	m.change(func() { m.gpus[3].recovery = nvml.GPU_RECOVERY_ACTION_NODE_REBOOT })
	w.until("it as unhealthy", only(3, device.Unhealthy, "a restart of the node"))
	if n := logged.count("gives no events"); n != 1 {
		t.Errorf("logged %d times that there are no events, want 1", n)
	}
}

func TestStormOfEvents(t *testing.T) {
	m := newMachine(t, dgxb200.New(), b200)
	c := m.config(t)
	slow(&c)
	w := watch(t, newDriver(t, c))
	w.first()
	for i := range 90 {
		m.raise(4, uint64(200+i))
	}
	w.until("the storm", only(4, device.Suspect, "XID 200"))
}

// A GPU can not be reset while somebody holds NVML open.
func TestNVMLIsLetGoForAReset(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	slow(&c)
	closed := make(chan bool)
	shutdown := m.server.ShutdownFunc
	m.server.ShutdownFunc = func() nvml.Return {
		ret := shutdown()
		select {
		case closed <- true:
		default:
		}
		return ret
	}
	w := watch(t, newDriver(t, c))
	w.first()
	m.change(func() { m.gpus[3].recovery = nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET })
	w.until("it as unhealthy", only(3, device.Unhealthy, "a reset"))
	for range 3 {
		select {
		case <-closed:
		case <-time.After(10 * time.Second):
			t.Fatal("NVML is held open")
		}
	}
	m.change(func() {
		if m.open > 1 {
			t.Errorf("NVML was started %d times more than shut down", m.open)
		}
		if links := m.gpus[5].reads["links"]; links != 19 {
			t.Errorf("links were read again: %d", links)
		}
		m.gpus[3].recovery = nvml.GPU_RECOVERY_ACTION_NONE
	})
	w.until("it on trial", only(3, device.Recovering, "a reset"))
	m.raise(6, 94)
	w.until("events again", func(now []device.Device) bool { return now[6].Health.State == device.Suspect })
}

func TestChecksOff(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	slow(&c)
	checks, err := health.ParseChecks("all", "")
	if err != nil {
		t.Fatal(err)
	}
	c.Checks = checks
	w := watch(t, newDriver(t, c))
	w.first()
	m.change(func() { m.gpus[1].recovery, m.gpus[2].remapFailed = nvml.GPU_RECOVERY_ACTION_GPU_RESET, true })
	m.raise(4, 79)
	m.change(func() { m.gpus[3].lost = true })
	w.until("only what can not be reached", only(3, device.Unhealthy, "LOST"))
}
