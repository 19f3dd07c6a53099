package deviceplugin

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/deviceplugin/kubelettest"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
)

const gpu = "nvidia.com/gpu"

// fakeDriver has the devices that the test says.
type fakeDriver struct {
	name string

	mu       sync.Mutex
	devices  []device.Device
	changed  chan struct{}
	prepared map[string][]device.ID
	failure  func(device.Grant) error
}

func newFakeDriver(name string, devices ...device.Device) *fakeDriver {
	return &fakeDriver{name: name, devices: devices, changed: make(chan struct{}), prepared: make(map[string][]device.ID)}
}

func (f *fakeDriver) Name() string { return f.name }

func (f *fakeDriver) Watch(ctx context.Context, report func([]device.Device)) error {
	for {
		f.mu.Lock()
		devices, changed := slices.Clone(f.devices), f.changed
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
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, id := range grant.Devices {
		if !slices.ContainsFunc(f.devices, func(d device.Device) bool { return d.ID == id }) {
			return device.Edits{}, &hardware.UnknownDeviceError{Driver: f.name, IDs: []device.ID{id}}
		}
	}
	if f.failure != nil {
		if err := f.failure(grant); err != nil {
			return device.Edits{}, err
		}
	}
	f.prepared[grant.ID] = grant.Devices
	edits := device.Edits{
		Mounts: []device.Mount{{HostPath: "/opt/" + f.name, ContainerPath: "/usr/local/" + f.name, ReadOnly: true}},
		Env:    map[string]string{strings.ToUpper(f.name) + "_VISIBLE": fmt.Sprint(grant.Devices)},
	}
	for _, id := range grant.Devices {
		edits.DeviceNodes = append(edits.DeviceNodes, device.DeviceNode{HostPath: "/dev/" + string(id), ContainerPath: "/dev/" + string(id), Permissions: "rw"})
	}
	return edits, nil
}

func (f *fakeDriver) Unprepare(_ context.Context, grantID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.prepared, grantID)
	return nil
}

// change changes the devices and reports them.
func (f *fakeDriver) change(change func(devices []device.Device) []device.Device) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.devices = change(slices.Clone(f.devices))
	close(f.changed)
	f.changed = make(chan struct{})
}

// setHealth makes one device sick for a reason, or well with none.
func (f *fakeDriver) setHealth(id device.ID, reason string) {
	f.change(func(devices []device.Device) []device.Device {
		for i := range devices {
			if devices[i].ID == id && reason == "" {
				devices[i].Health = device.Health{State: device.Healthy}
			} else if devices[i].ID == id {
				devices[i].Health = device.Health{State: device.Unhealthy, Reason: reason}
			}
		}
		return devices
	})
}

func (f *fakeDriver) grants() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.prepared)
}

// gpus are count healthy devices gpu0, gpu1, … on two NUMA nodes.
func gpus(count int) []device.Device {
	devices := make([]device.Device, count)
	for i := range devices {
		devices[i] = device.Device{
			ID: device.ID(fmt.Sprintf("gpu%d", i)), Vendor: "nvidia.com", Kind: "gpu", Model: "Test GPU",
			Index: i, NUMANode: i * 2 / count, Health: device.Health{State: device.Healthy},
		}
	}
	return devices
}

// first prefers what comes first.
func first(_ []device.Device, available, must []device.ID, count int) ([]device.ID, error) {
	return unique(slices.Concat(must, available))[:count], nil
}

// syncBuffer is a log that can be read while it is written.
type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

func (b *syncBuffer) count(text string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.Count(b.String(), text)
}

// rig is a door with everything around it.
type rig struct {
	*kubelettest.Kubelet
	tb        testing.TB
	api       *kubelettest.API
	driver    *fakeDriver
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	terms     *terms.Terms
	door      *Door
	log       *syncBuffer
	file      string // the ledger's
	// stop ends the agent and waits for its end.
	stop func()
	// ended has the error of the door once it has ended.
	ended chan error
}

// newRig makes a node with the devices of the driver. The kubelet is not
// started.
func newRig(tb testing.TB, drivers ...*fakeDriver) *rig {
	tb.Helper()
	return newRigWith(tb, nil, drivers...)
}

// newRigWith is newRig with a configuration.
func newRigWith(tb testing.TB, c *config.Config, drivers ...*fakeDriver) *rig {
	tb.Helper()
	// The path of a socket must be short, and tb.TempDir's is not.
	root, err := os.MkdirTemp("", "kilter")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(root) })
	r := &rig{
		Kubelet: kubelettest.New(tb, root),
		tb:      tb,
		api:     kubelettest.NewAPI(),
		driver:  drivers[0],
		log:     &syncBuffer{},
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("the agent's log:\n%s", r.log.Bytes())
		}
	})
	r.file = filepath.Join(root, "ledger.json")
	r.configure(c)
	r.open(r.file, r.PluginFolder, drivers...)
	return r
}

// configure sets the configuration of the agents that are opened next.
func (r *rig) configure(c *config.Config) {
	r.tb.Helper()
	r.terms = nil
	if c == nil {
		return
	}
	var err error
	if r.terms, err = terms.New(*c, slog.New(slog.NewTextHandler(r.log, nil))); err != nil {
		r.tb.Fatal(err)
	}
}

// open starts an agent's inventory, ledger and door.
func (r *rig) open(file, folder string, drivers ...*fakeDriver) {
	r.tb.Helper()
	logger := slog.New(slog.NewTextHandler(r.log, nil))
	var all []hardware.Driver
	for _, d := range drivers {
		all = append(all, d)
	}
	podResources := NewPodResources(r.PodResourcesSocket)
	r.inventory = inventory.New(all, logger)
	var known func(device.ID) bool
	if r.terms != nil {
		known = r.inventory.Has
	}
	r.ledger = ledger.New(ledger.Config{
		File: file, BootID: "boot", Kubelet: podResources, Pods: r.api,
		Ours:   func(resource string) bool { return r.door.Serves(resource) },
		Known:  known,
		Logger: logger,
	})
	if err := r.ledger.Load(); err != nil {
		r.tb.Fatal(err)
	}
	r.door = New(Config{Folder: folder, Inventory: r.inventory, Ledger: r.ledger, Prefer: first, Terms: r.terms, Logger: logger})

	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	var running sync.WaitGroup
	running.Go(func() { ended <- r.door.Run(ctx) })
	for _, run := range []func(context.Context) error{r.inventory.Run, r.ledger.Run} {
		running.Go(func() {
			if err := run(ctx); err != nil {
				r.tb.Error(err)
			}
		})
	}
	r.ended = ended
	r.stop = func() {
		cancel()
		running.Wait()
		_ = podResources.Close()
	}
	r.tb.Cleanup(r.stop)
}

// ready waits until the kubelet has count healthy devices of the resource and
// the door says so too.
func (r *rig) ready(resource string, count int) {
	r.tb.Helper()
	r.Eventually(fmt.Sprintf("%d healthy %s are there", count, resource), func() bool {
		return r.Healthy(resource) == count && len(r.door.Waiting()) == 0
	})
}

// registered waits until a new kubelet has been told of count devices, whether
// offered or not.
func (r *rig) registered(count int) {
	r.tb.Helper()
	r.Eventually("the door is registered again", func() bool { return r.Capacity(gpu) == count && len(r.door.Waiting()) == 0 })
}

func (r *rig) podNamed(name, uid string) kubelettest.Pod {
	pod := kubelettest.Pod{Namespace: "default", Name: name, UID: uid, Containers: []string{"main"}}
	r.api.Create(pod)
	return pod
}

// admit gives a new Pod one device and waits until the ledger knows.
func (r *rig) admit(name, uid string) (kubelettest.Pod, string) {
	r.tb.Helper()
	pod := r.podNamed(name, uid)
	ids, _, err := r.Admit(r.context(), pod, gpu, 1)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.known(ids[0], uid)
	return pod, ids[0]
}

// known waits until the ledger has the holder of the device; none is empty.
func (r *rig) known(id, uid string) {
	r.tb.Helper()
	r.Eventually(fmt.Sprintf("%s is known to be held by %q", id, uid), func() bool {
		for _, hold := range r.ledger.Holds() {
			if hold.Device == device.ID(id) {
				return hold.Holder.UID == uid
			}
		}
		return uid == ""
	})
}

func (r *rig) context() context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	r.tb.Cleanup(cancel)
	return ctx
}
