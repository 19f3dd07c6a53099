package nvidia

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"

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
	listed   []*fakeGPU // those that there were when NVML was started
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
	m.mkdir(t, pciDevices)
	m.mkdir(t, pciDriver)
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
	m.change(func() { m.gpus = append(m.gpus, g) })
	m.link(t, "sys/bus/pci/drivers/nvidia/"+g.address, "../../../../"+root+"/"+g.address)
	return g
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
