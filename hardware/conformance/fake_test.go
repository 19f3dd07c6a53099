package conformance

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

// fake is a driver that keeps the contract. The tests spoil it in one place
// at a time, by the functions that stand before its answers.
type fake struct {
	mu      sync.Mutex
	devices []device.Device
	grants  map[string]bool
	changed chan struct{} // closed and replaced with every change

	spoilReport  func([]device.Device) []device.Device
	spoilEdits   func(device.Grant, *device.Edits)
	spoilUnknown func(*hardware.UnknownDeviceError) error
	spoilWatch   func(ctx context.Context, report func([]device.Device), watch func() error) error
	spoilGrant   func(device.Grant) // before the devices are looked at
	spoilFail    func(id device.ID, reason string) (string, bool)
	keepGrants   bool
	unprepareErr error
}

func newFake(count int) *fake {
	f := &fake{grants: map[string]bool{}, changed: make(chan struct{})}
	for i := range count {
		d := device.Device{
			ID: device.ID(fmt.Sprintf("card-%d", i)), Vendor: "example.com", Kind: "card", Index: i,
			PCIAddress: fmt.Sprintf("0000:%02x:00.0", i+1),
			Attributes: map[string]device.Attribute{device.AttributeArchitecture: device.String("Paper")},
			Health:     device.Health{State: device.Healthy},
		}
		for peer := range count {
			if peer != i {
				d.Links = append(d.Links, device.Link{Peer: device.ID(fmt.Sprintf("card-%d", peer)), Kind: device.NVLink, Lanes: 2})
			}
		}
		f.devices = append(f.devices, d)
	}
	return f
}

func (f *fake) Name() string { return "fake" }

func (f *fake) Watch(ctx context.Context, report func([]device.Device)) error {
	watch := func() error {
		for {
			f.mu.Lock()
			devices, changed := clone(f.devices), f.changed
			f.mu.Unlock()
			if f.spoilReport != nil {
				devices = f.spoilReport(devices)
			}
			report(devices)
			select {
			case <-ctx.Done():
				return nil
			case <-changed:
			}
		}
	}
	if f.spoilWatch != nil {
		return f.spoilWatch(ctx, report, watch)
	}
	return watch()
}

func (f *fake) Prepare(_ context.Context, grant device.Grant) (device.Edits, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.spoilGrant != nil {
		f.spoilGrant(grant)
	}
	unknown := &hardware.UnknownDeviceError{Driver: "fake"}
	edits := device.Edits{
		DeviceNodes: []device.DeviceNode{{HostPath: "/dev/control", ContainerPath: "/dev/control", Permissions: "rw"}},
		Mounts:      []device.Mount{{HostPath: "/opt/card", ContainerPath: "/opt/card", ReadOnly: true}},
		Env:         map[string]string{"CARDS": fmt.Sprint(grant.Devices)},
	}
	for _, id := range grant.Devices {
		if _, ok := find(f.devices, id); !ok {
			unknown.IDs = append(unknown.IDs, id)
			continue
		}
		node := "/dev/" + string(id)
		edits.DeviceNodes = append(edits.DeviceNodes, device.DeviceNode{HostPath: node, ContainerPath: node, Permissions: "rwm"})
	}
	if len(unknown.IDs) > 0 {
		if f.spoilUnknown != nil {
			return device.Edits{}, f.spoilUnknown(unknown)
		}
		return device.Edits{}, unknown
	}
	f.grants[grant.ID] = true
	if f.spoilEdits != nil {
		f.spoilEdits(grant, &edits)
	}
	return edits, nil
}

func (f *fake) Unprepare(_ context.Context, grantID string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.grants[grantID] {
		return f.unprepareErr
	}
	if !f.keepGrants {
		delete(f.grants, grantID)
	}
	return nil
}

func (f *fake) Fail(id device.ID, reason string) error {
	if f.spoilFail != nil {
		changed, ok := f.spoilFail(id, reason)
		if !ok {
			return nil
		}
		reason = changed
	}
	return f.setHealth(id, device.Health{State: device.Unhealthy, Reason: reason})
}

func (f *fake) Heal(id device.ID) error {
	return f.setHealth(id, device.Health{State: device.Healthy})
}

func (f *fake) setHealth(id device.ID, health device.Health) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.devices, func(d device.Device) bool { return d.ID == id })
	if i < 0 {
		return &hardware.UnknownDeviceError{Driver: "fake", IDs: []device.ID{id}}
	}
	f.devices[i].Health = health
	close(f.changed)
	f.changed = make(chan struct{})
	return nil
}

// heal forgets all faults without a word.
func (f *fake) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := range f.devices {
		f.devices[i].Health = device.Health{State: device.Healthy}
	}
}

func (f *fake) footprint() (string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fmt.Sprint(f.grants), nil
}
