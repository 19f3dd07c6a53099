// Package simulated is a driver without hardware: it replays a recorded
// machine. Its devices have nodes that the kernel guards like any other, a
// driver folder that a container can mount, and faults that can be had for
// the asking. It is for people who have no GPU at hand, and for rehearsals.
//
// All that it writes stays in one folder of the node:
//
//	dev/          device nodes, as under /dev of a machine with GPUs
//	driver/       what containers see at /usr/local/nvidia
//	faults.json   which devices are sick, kept over a restart
package simulated

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/machines"
)

const driverName = "simulated"

// AttributeSimulated is true on every device of this driver, so that nobody
// takes one for the real thing.
const AttributeSimulated = "simulated"

// Config says what to simulate and where.
type Config struct {
	// Machine is the machine that is replayed.
	Machine machines.Machine

	// NodeName is the node's name; the ids of the devices depend on it.
	NodeName string

	// Root is the driver's folder on the node, as the driver sees it. It
	// belongs to the driver alone and is made when it is missing.
	Root string

	// HostRoot is the same folder as the host sees it, where that is another
	// path because the driver runs in a container. Root when empty.
	HostRoot string

	// Logger is told of what people should know. Nobody is when nil.
	Logger *slog.Logger

	// Now is the clock. time.Now when nil.
	Now func() time.Time
}

// Driver replays a machine. It implements hardware.Driver and
// hardware.FaultInjector.
type Driver struct {
	config  Config
	devices []device.Device // as recorded: all healthy
	disk    *disk

	mu      sync.Mutex
	faults  map[device.ID]fault // nil until they were read from the disk
	changed chan struct{}       // closed and replaced when a fault comes or goes
}

var (
	_ hardware.Driver        = (*Driver)(nil)
	_ hardware.FaultInjector = (*Driver)(nil)
)

// New checks the configuration. Nothing is read or written before Watch.
func New(config Config) (*Driver, error) {
	if config.HostRoot == "" {
		config.HostRoot = config.Root
	}
	for name, path := range map[string]string{"Root": config.Root, "HostRoot": config.HostRoot} {
		if !filepath.IsAbs(path) || filepath.Clean(path) == "/" {
			return nil, fmt.Errorf("simulated driver: %s %q is not the absolute path of a folder for the driver alone", name, path)
		}
	}
	if config.NodeName == "" {
		return nil, errors.New("simulated driver: the node's name is missing; the ids of the devices depend on it")
	}
	if len(config.Machine.Devices) == 0 {
		return nil, errors.New("simulated driver: the machine has no devices; load one with the machines package")
	}
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	devices := config.Machine.On(config.NodeName)
	for i := range devices {
		devices[i].Attributes[AttributeSimulated] = device.Bool(true)
	}
	return &Driver{
		config:  config,
		devices: devices,
		disk:    &disk{path: filepath.Clean(config.Root), machine: config.Machine},
		changed: make(chan struct{}),
	}, nil
}

// Name returns "simulated".
func (d *Driver) Name() string { return driverName }

// Watch makes what is missing in the driver's folder and reports the devices,
// again whenever a fault comes or goes.
func (d *Driver) Watch(ctx context.Context, report func([]device.Device)) error {
	if err := d.disk.repair(); err != nil {
		return fmt.Errorf("simulate machine %s: %w", d.config.Machine.Name, err)
	}
	for {
		devices, changed, err := d.snapshot()
		if err != nil {
			return fmt.Errorf("simulate machine %s: %w", d.config.Machine.Name, err)
		}
		report(devices)
		select {
		case <-ctx.Done():
			return nil
		case <-changed:
		}
	}
}

// snapshot returns the devices as they are now, and a channel that closes
// when they are no longer so.
func (d *Driver) snapshot() ([]device.Device, <-chan struct{}, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.loadFaults(); err != nil {
		return nil, nil, err
	}
	devices := make([]device.Device, len(d.devices))
	for i, recorded := range d.devices {
		devices[i] = recorded.Clone()
		if f, sick := d.faults[recorded.ID]; sick {
			devices[i].Health = device.Health{State: device.Unhealthy, Reason: f.Reason, Since: f.Since}
		}
	}
	return devices, d.changed, nil
}

// Prepare returns the edits for the grant. The nodes are looked after once
// more, because a container whose node is missing does not start.
func (d *Driver) Prepare(_ context.Context, grant device.Grant) (device.Edits, error) {
	granted, err := d.granted(grant)
	if err != nil {
		return device.Edits{}, err
	}
	if err := d.disk.repair(); err != nil {
		return device.Edits{}, fmt.Errorf("prepare grant %s: %w", grant.ID, err)
	}
	return d.edits(granted), nil
}

// Unprepare has nothing to undo: the nodes belong to the devices, not to a
// grant.
func (d *Driver) Unprepare(context.Context, string) error { return nil }

// granted returns the devices of the grant in the order of their index, each
// once.
func (d *Driver) granted(grant device.Grant) ([]device.Device, error) {
	wanted := map[device.ID]bool{}
	for _, id := range grant.Devices {
		wanted[id] = true
	}
	if len(wanted) == 0 {
		return nil, fmt.Errorf("prepare grant %s: it names no device", grant.ID)
	}
	var granted []device.Device
	for _, known := range d.devices {
		if wanted[known.ID] {
			granted = append(granted, known)
			delete(wanted, known.ID)
		}
	}
	if len(wanted) > 0 {
		return nil, &hardware.UnknownDeviceError{Driver: driverName, IDs: slices.Sorted(maps.Keys(wanted))}
	}
	return granted, nil
}

// edits says what a container needs for the devices. The environment is what
// the vendor's images look for.
func (d *Driver) edits(granted []device.Device) device.Edits {
	nodes := slices.Clone(controlNodes)
	var ids []string
	for _, g := range granted {
		nodes = append(nodes, deviceNode(g.Index))
		ids = append(ids, string(g.ID))
	}
	edits := device.Edits{
		Mounts: []device.Mount{{
			HostPath:      filepath.Join(d.config.HostRoot, driverFolder),
			ContainerPath: "/usr/local/nvidia",
			ReadOnly:      true,
		}},
		Env: map[string]string{
			"NVIDIA_VISIBLE_DEVICES":     strings.Join(ids, ","),
			"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
		},
	}
	for _, n := range nodes {
		edits.DeviceNodes = append(edits.DeviceNodes, device.DeviceNode{
			HostPath:      filepath.Join(d.config.HostRoot, devFolder, n.name),
			ContainerPath: "/dev/" + n.name,
			Permissions:   "rw",
		})
	}
	return edits
}
