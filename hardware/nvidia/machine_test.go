package nvidia

import (
	"context"
	"encoding/binary"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// machine is a host with GPUs: one of go-nvml's mock servers, completed with
// what the driver asks beyond it, and a root file system. It can be changed
// while it is watched.
type machine struct {
	root    string
	server  *server.Server
	version string

	mu       sync.Mutex
	gpus     []*fakeGPU
	initFail nvml.Return
	without  map[string]bool // functions that the library does not have
	noFields map[uint32]bool // values that it does not know
	looks    chan struct{}   // receives when NVML is asked for its GPUs
	sets     []*fakeSet
	open     int // how often NVML was started and not shut down
}

// fakeSet is a set of events.
type fakeSet struct {
	mock.EventSet
	events chan nvml.EventData
	failed chan struct{} // closed when waiting fails
	gpus   map[nvml.Device]bool
	freed  bool
}

// fakeGPU is a GPU of the machine and what is wrong with it. Its fields are
// guarded by the machine's lock.
type fakeGPU struct {
	*server.Device
	cores   int
	address string
	ports   []port
	lost    bool
	stuck   chan struct{} // when set, calls wait for it to be closed
	reads   map[string]int

	recovery     nvml.DeviceGpuRecoveryAction
	remapPending bool
	remapFailed  bool
	uncorrected  uint64
	temperature  nvml.Return
	fabric       nvml.GpuFabricInfo_v4
	slices       []nvml.Device // of MIG; nil where a number has none
}

// hardwareOf is what the mock servers do not know about their GPUs.
type hardwareOf struct {
	cores, ports int
	mbps         int64
}

var (
	a100 = hardwareOf{cores: 6912, ports: 12, mbps: 25_000}
	h100 = hardwareOf{cores: 16896, ports: 18, mbps: 26_562}
	b200 = hardwareOf{cores: 18944, ports: 18, mbps: 53_125}
)

func newMachine(t *testing.T, s *server.Server, hw hardwareOf) *machine {
	t.Helper()
	m := &machine{root: t.TempDir(), server: s, version: s.DriverVersion, without: map[string]bool{}, noFields: map[uint32]bool{}, looks: make(chan struct{})}
	m.mkdir(t, "sys/bus/pci/devices")
	m.write(t, "usr/local/nvidia/lib64/libcuda.so."+m.version, "")
	m.link(t, "usr/local/nvidia/lib64/libcuda.so.1", "libcuda.so."+m.version)
	m.write(t, "usr/local/nvidia/bin/nvidia-smi", "")
	for _, node := range []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools", "nvidia-modeset"} {
		m.write(t, "dev/"+node, "")
	}
	for i, d := range s.Devices {
		m.plug(t, d.(*server.Device), i, hw)
	}
	m.complete()
	return m
}

// plug puts a GPU into the machine.
func (m *machine) plug(t *testing.T, d *server.Device, i int, hw hardwareOf) *fakeGPU {
	t.Helper()
	d.UUID = fmt.Sprintf("GPU-%08d-0000-0000-0000-%012d", i, i)
	d.Index, d.Minor = i, i
	g := &fakeGPU{Device: d, cores: hw.cores, address: fmt.Sprintf("0000:%02x:00.0", 0x1b+16*i), reads: map[string]int{}}
	for range hw.ports {
		g.ports = append(g.ports, port{toSwitch: true, mbps: hw.mbps})
	}
	root := fmt.Sprintf("devices/pci0000:%02x", 16*i)
	m.write(t, fmt.Sprintf("sys/%s/%s/numa_node", root, g.address), fmt.Sprintf("%d\n", i/4))
	m.link(t, "sys/bus/pci/devices/"+g.address, "../../../"+root+"/"+g.address)
	m.write(t, fmt.Sprintf("dev/nvidia%d", i), "")
	m.completeGPU(g)
	m.completeMIG(g)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.gpus = append(m.gpus, g)
	return g
}

// complete replaces what can change by functions that look at the machine.
func (m *machine) complete() {
	m.server.InitFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.initFail == nvml.SUCCESS {
			m.open++
		}
		return m.initFail
	}
	m.server.ShutdownFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
		return nvml.SUCCESS
	}
	m.server.EventSetCreateFunc = m.newSet
	m.server.LookupSymbolFunc = func(symbol string) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.without[symbol] {
			return fmt.Errorf("undefined symbol: %s", symbol)
		}
		return nil
	}
	m.server.DeviceGetCountFunc = func() (int, nvml.Return) {
		select {
		case m.looks <- struct{}{}:
		default:
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.gpus), m.initFail
	}
	m.server.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if i >= len(m.gpus) {
			return nil, nvml.ERROR_INVALID_ARGUMENT
		}
		if m.gpus[i].lost {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return m.gpus[i].Device, nvml.SUCCESS
	}
}

func (m *machine) completeGPU(g *fakeGPU) {
	g.GetUUIDFunc = func() (string, nvml.Return) {
		m.mu.Lock()
		stuck := g.stuck
		m.mu.Unlock()
		if stuck != nil {
			<-stuck
		}
		return g.UUID, nvml.SUCCESS
	}
	g.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pciInfo(g.address), nvml.SUCCESS }
	g.GetNumGpuCoresFunc = func() (int, nvml.Return) { return g.cores, nvml.SUCCESS }
	g.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		g.reads["links"]++
		if link >= len(g.ports) {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	g.GetNvLinkRemoteDeviceTypeFunc = func(link int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		if g.ports[link].toSwitch {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
		return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
	}
	g.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		return pciInfo(g.ports[link].peer), nvml.SUCCESS
	}
	g.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) { return 4, nvml.SUCCESS }
	g.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return 0, 0, g.remapPending, g.remapFailed, nvml.SUCCESS
	}
	g.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return g.uncorrected, nvml.SUCCESS
	}
	g.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return 40, g.temperature
	}
	g.GetGpuFabricInfo_v4Func = func() (nvml.GpuFabricInfo_v4, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return g.fabric, nvml.SUCCESS
	}
	g.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeAll, nvml.SUCCESS }
	g.RegisterEventsFunc = func(types uint64, set nvml.EventSet) nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		if types&nvml.EventTypeXidCriticalError == 0 || set.(*fakeSet).freed {
			return nvml.ERROR_INVALID_ARGUMENT
		}
		set.(*fakeSet).gpus[g.Device] = true
		return nvml.SUCCESS
	}
	g.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			m.fieldValue(g, &values[i])
		}
		return nvml.SUCCESS
	}
}

func (m *machine) fieldValue(g *fakeGPU, v *nvml.FieldValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, ret := uint64(0), nvml.ERROR_NOT_SUPPORTED
	switch v.FieldId {
	case nvml.FI_DEV_NVLINK_GET_SPEED:
		number, ret = uint64(g.ports[v.ScopeId].mbps), nvml.SUCCESS
	case nvml.FI_DEV_GET_GPU_RECOVERY_ACTION:
		number, ret = uint64(g.recovery), nvml.SUCCESS
	}
	if m.noFields[v.FieldId] {
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	v.NvmlReturn = uint32(ret)
	v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
	binary.NativeEndian.PutUint64(v.Value[:], number)
}

func (m *machine) newSet() (nvml.EventSet, nvml.Return) {
	s := &fakeSet{
		events: make(chan nvml.EventData, 100),
		failed: make(chan struct{}),
		gpus:   map[nvml.Device]bool{},
	}
	s.WaitFunc = func(milliseconds uint32) (nvml.EventData, nvml.Return) {
		select {
		case e := <-s.events:
			return e, nvml.SUCCESS
		case <-s.failed:
			return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST
		case <-time.After(time.Duration(milliseconds) * time.Millisecond / 100): // tests are in a hurry
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}
	s.FreeFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.freed = true
		return nvml.SUCCESS
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets = append(m.sets, s)
	return s, nvml.SUCCESS
}

// raise sends an event of a GPU to whoever asked for it.
func (m *machine) raise(i int, xid uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sets {
		if gpu := m.gpus[i].Device; s.gpus[gpu] && !s.freed {
			s.events <- nvml.EventData{Device: gpu, EventType: nvml.EventTypeXidCriticalError, EventData: xid}
		}
	}
}

func pciInfo(address string) nvml.PciInfo {
	var info nvml.PciInfo
	if address != "" {
		for i, c := range []byte(strings.ToUpper("0000" + address)) {
			info.BusId[i] = int8(c)
		}
	}
	return info
}

// change does something to the machine while it may be watched.
func (m *machine) change(f func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	f()
}

// looked waits until the driver has had a full look at the machine as it is.
func (m *machine) looked(t *testing.T) {
	t.Helper()
	for range 2 { // the first may have begun before the call
		select {
		case <-m.looks:
		case <-time.After(10 * time.Second):
			t.Fatal("nobody looks at the machine")
		}
	}
}

// brisk is a policy that takes no time.
var brisk = health.Policy{Confirm: time.Hour, Settle: 1, Trial: 1, Longest: 1, Memory: 1}

// config is a configuration that sees the machine, often.
func (m *machine) config(t *testing.T) Config {
	return Config{
		NVML:     func() (nvml.Interface, error) { return m.server, nil },
		HostRoot: m.root,
		Interval: time.Millisecond,
		Health:   brisk,
		Logger:   slog.New(slog.NewTextHandler(t.Output(), nil)),
	}
}

func (m *machine) driver(t *testing.T) *Driver {
	t.Helper()
	return newDriver(t, m.config(t))
}

func newDriver(t *testing.T, c Config) *Driver {
	t.Helper()
	d, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func (m *machine) mkdir(t *testing.T, name string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(m.root, name), 0o755); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) write(t *testing.T, name, content string) {
	t.Helper()
	m.mkdir(t, filepath.Dir(name))
	if err := os.WriteFile(filepath.Join(m.root, name), []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) link(t *testing.T, name, target string) {
	t.Helper()
	m.mkdir(t, filepath.Dir(name))
	if err := os.Symlink(target, filepath.Join(m.root, name)); err != nil {
		t.Fatal(err)
	}
}

func (m *machine) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(m.root, name)); err != nil {
		t.Fatal(err)
	}
}

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
