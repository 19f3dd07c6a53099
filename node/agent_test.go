package node

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/deviceplugin/kubelettest"
	"github.com/kilter-dev/kilter/node/local"
	"github.com/kilter-dev/kilter/place"
)

const gpu = "nvidia.com/gpu"

// fakeDriver has GPUs that can be made to fail.
type fakeDriver struct {
	mu      sync.Mutex
	devices []device.Device
	changed chan struct{}
}

func newFakeDriver(count int) *fakeDriver {
	f := &fakeDriver{changed: make(chan struct{})}
	for i := range count {
		f.devices = append(f.devices, device.Device{
			ID: device.ID(fmt.Sprintf("GPU-%d", i)), Vendor: "nvidia.com", Kind: "gpu", Model: "Test GPU", Index: i,
			Health: device.Health{State: device.Healthy},
		})
	}
	return f
}

func (f *fakeDriver) Name() string { return "fake" }

func (f *fakeDriver) Watch(ctx context.Context, report func([]device.Device)) error {
	for {
		f.mu.Lock()
		devices, changed := append([]device.Device(nil), f.devices...), f.changed
		f.mu.Unlock()
		report(devices)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

func (f *fakeDriver) Prepare(_ context.Context, grant device.Grant) (device.Edits, error) {
	return device.Edits{Env: map[string]string{"GRANT": grant.ID}}, nil
}

func (f *fakeDriver) Unprepare(context.Context, string) error { return nil }

func (f *fakeDriver) Fail(id device.ID, reason string) error {
	return f.set(id, device.Health{State: device.Unhealthy, Reason: reason})
}

func (f *fakeDriver) Heal(id device.ID) error {
	return f.set(id, device.Health{State: device.Healthy})
}

func (f *fakeDriver) set(id device.ID, health device.Health) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.devices {
		if f.devices[i].ID == id {
			f.devices[i].Health = health
			close(f.changed)
			f.changed = make(chan struct{})
			return nil
		}
	}
	return &hardware.UnknownDeviceError{Driver: "fake", IDs: []device.ID{id}}
}

// site is a node with a kubelet and room for agents.
type site struct {
	*kubelettest.Kubelet
	t    *testing.T
	root string
	api  *kubelettest.API
	// client talks to the agent.
	client *local.Client
}

func newSite(t *testing.T) *site {
	t.Helper()
	root, err := os.MkdirTemp("", "kilter") // short enough for sockets
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return &site{
		Kubelet: kubelettest.New(t, root), t: t, root: root, api: kubelettest.NewAPI(),
		client: local.NewClient(localSocket(root)),
	}
}

func localSocket(root string) string { return filepath.Join(root, "run", "agent.sock") }

// configuration is that of an agent under the root.
func configuration(root string, driver hardware.Driver) Config {
	return Config{
		Node:               "n1",
		Drivers:            []hardware.Driver{driver},
		Prefer:             place.Prefer,
		DevicePluginFolder: filepath.Join(root, "device-plugins"),
		PodResourcesSocket: filepath.Join(root, "pod-resources", "kubelet.sock"),
		StateFolder:        filepath.Join(root, "state"),
		LocalSocket:        localSocket(root),
		Logger:             slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}
}

// start runs an agent and returns what ends it and gives its error.
func (s *site) start(config Config) (stop func() error) {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- New(config).Run(ctx) }()
	stop = sync.OnceValue(func() error {
		cancel()
		return <-ended
	})
	s.t.Cleanup(func() { _ = stop() })
	return stop
}

// ready waits until the agent says that it is ready and the kubelet has count
// healthy devices.
func (s *site) ready(count int) {
	s.t.Helper()
	s.Eventually(fmt.Sprintf("the agent is ready with %d healthy devices", count), func() bool {
		health, err := s.client.Health(s.t.Context())
		return err == nil && health.Ready && s.Healthy(gpu) == count
	})
}

func (s *site) pod(name, uid string) kubelettest.Pod {
	pod := kubelettest.Pod{Namespace: "default", Name: name, UID: uid, Containers: []string{"main"}}
	s.api.Create(pod)
	return pod
}

// device is one line of the agent's report.
func (s *site) device(id device.ID) local.Device {
	s.t.Helper()
	report, err := s.client.Devices(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	for _, d := range report.Devices {
		if d.ID == id {
			return d
		}
	}
	s.t.Fatalf("the report has no %s: %+v", id, report)
	return local.Device{}
}

func TestSickDeviceInUse(t *testing.T) {
	s := newSite(t)
	s.Start()
	config := configuration(s.root, newFakeDriver(2))
	config.Kubernetes = s.api
	stop := s.start(config)
	s.ready(2)

	pod := s.pod("a", "u1")
	ids, _, err := s.Admit(t.Context(), pod, gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := device.ID(ids[0])
	if d := s.device(id); len(d.Holders) != 1 || d.Holders[0].String() != "default/a/main" || !d.Offered || d.Resource != gpu || d.Door != "device-plugin" {
		t.Errorf("in use: %+v", d)
	}

	// The API server is away at first: the event waits.
	s.api.Break(errors.New("away"))
	if got, err := s.client.Fail(t.Context(), strings.TrimPrefix(ids[0], "GPU-"), "XID 79: fallen off the bus"); err != nil || got != id {
		t.Fatalf("fail: %s, %v", got, err)
	}
	s.Eventually("the device is not offered", func() bool { return s.Healthy(gpu) == 1 })
	if d := s.device(id); d.Offered || len(d.Holders) != 1 || d.Note != "it is unhealthy: XID 79: fallen off the bus; default/a/main keeps it" {
		t.Errorf("sick and in use: %+v", d)
	}
	s.api.Break(nil)
	s.Eventually("the Pod is told", func() bool { return len(s.api.Events()) == 1 })

	if _, err := s.client.Heal(t.Context(), ids[0]); err != nil {
		t.Fatal(err)
	}
	s.ready(2)
	s.Eventually("the Pod is told again", func() bool { return len(s.api.Events()) == 2 })
	events := s.api.Events()
	for i, want := range []kube.PodEvent{
		{Type: kube.Warning, Reason: "DeviceUnhealthy", Message: "nvidia.com/gpu 0 (Test GPU, GPU-0): XID 79: fallen off the bus. The Pod keeps the device; nobody else is given it until it is well again."},
		{Type: kube.Normal, Reason: "DeviceRecovered", Message: "nvidia.com/gpu 0 (Test GPU, GPU-0) is well again."},
	} {
		want.Namespace, want.Pod, want.UID, want.Node, want.Time = "default", "a", "u1", "n1", events[i].Time
		if events[i] != want {
			t.Errorf("event %d:\n got %+v\nwant %+v", i, events[i], want)
		}
	}
	if _, err := s.client.Fail(t.Context(), "9", "x"); err == nil || !strings.Contains(err.Error(), `no simulated device "9"`) {
		t.Errorf("a fault on an unknown device: %v", err)
	}
	if err := stop(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
}

func TestWithoutAnAPIServer(t *testing.T) {
	s := newSite(t)
	s.Start()
	s.start(configuration(s.root, newFakeDriver(1)))
	s.ready(1)
	for _, name := range []string{"a", "b"} {
		pod := kubelettest.Pod{Namespace: "default", Name: name, UID: name, Containers: []string{"main"}}
		if _, _, err := s.Admit(t.Context(), pod, gpu, 1); err != nil {
			t.Fatalf("Pod %s: %v", name, err)
		}
		if d := s.device("GPU-0"); len(d.Holders) != 1 || d.Holders[0].Pod != name {
			t.Errorf("holders %v, want %s", d.Holders, name)
		}
		s.End(name)
	}
}

func TestSecondAgentRefuses(t *testing.T) {
	s := newSite(t)
	s.Start()
	config := configuration(s.root, newFakeDriver(1))
	s.start(config)
	s.ready(1)
	other := config
	other.LocalSocket = filepath.Join(s.root, "other.sock")
	err := New(other).Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) || !strings.Contains(err.Error(), "another agent runs on this node") {
		t.Errorf("the second agent: %v", err)
	}
	if s.Healthy(gpu) != 1 || s.Plugins(gpu) != 1 {
		t.Error("the second agent has disturbed the first")
	}
}

func TestNotReadyWithoutAKubelet(t *testing.T) {
	s := newSite(t)
	s.start(configuration(s.root, newFakeDriver(1)))
	s.Eventually("the agent says what it waits for", func() bool {
		health, err := s.client.Health(t.Context())
		return err == nil && !health.Ready && len(health.Waiting) == 1 && strings.Contains(health.Waiting[0], "the kubelet is not there yet")
	})
	s.Start()
	s.ready(1)
	s.Kill()
	s.Eventually("the agent is not ready", func() bool {
		health, err := s.client.Health(t.Context())
		return err == nil && !health.Ready
	})
}

func TestNodeWithoutDevicesIsReady(t *testing.T) {
	s := newSite(t)
	s.start(configuration(s.root, newFakeDriver(0)))
	s.ready(0)
	report, err := s.client.Devices(t.Context())
	if err != nil || report.Node != "n1" || len(report.Devices) != 0 {
		t.Errorf("%+v, %v", report, err)
	}
}

func TestConfigurationIsChecked(t *testing.T) {
	good := configuration(t.TempDir(), newFakeDriver(1))
	for what, change := range map[string]func(*Config){
		"no logger":                    func(c *Config) { c.Logger = nil },
		"name of the node is missing":  func(c *Config) { c.Node = "" },
		"nothing that chooses devices": func(c *Config) { c.Prefer = nil },
		`driver "fake" is there twice`: func(c *Config) { c.Drivers = append(c.Drivers, c.Drivers...) },
	} {
		config := good
		change(&config)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		if err := New(config).Run(ctx); err == nil || !strings.Contains(err.Error(), what) {
			t.Errorf("%s: %v", what, err)
		}
		cancel()
	}
	config := New(Config{}).config
	if config.DevicePluginFolder != "/var/lib/kubelet/device-plugins" || config.StateFolder != "/var/lib/kilter" ||
		config.LocalSocket != "/run/kilter/agent.sock" || config.PodResourcesSocket != "/var/lib/kubelet/pod-resources/kubelet.sock" {
		t.Errorf("defaults: %+v", config)
	}
}
