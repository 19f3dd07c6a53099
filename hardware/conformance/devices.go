package conformance

import (
	"errors"
	"fmt"
	"regexp"

	"github.com/kilter-dev/kilter/device"
)

var (
	vendorForm = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)+$`)
	kindForm   = regexp.MustCompile(`^[a-z0-9]([-_.a-z0-9]*[a-z0-9])?$`)

	// The form that the kernel writes under /sys/bus/pci/devices: a domain of
	// four digits, more only where they are needed.
	pciForm = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
)

// Devices checks a list of devices as a driver reports it. It returns all
// that is wrong with it.
func Devices(devices []device.Device) error {
	var errs []error
	byID := map[device.ID]device.Device{}
	for i, d := range devices {
		if d.ID == "" {
			errs = append(errs, fmt.Errorf("device number %d has no id", i))
			continue
		}
		if _, twice := byID[d.ID]; twice {
			errs = append(errs, fmt.Errorf("device %s is reported twice", d.ID))
			continue
		}
		byID[d.ID] = d
	}
	for _, d := range devices {
		errs = append(errs, facts(d), links(d, byID))
	}
	return errors.Join(errs...)
}

func facts(d device.Device) error {
	var errs []error
	wrong := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("device %s: "+format, append([]any{d.ID}, args...)...))
	}
	if !vendorForm.MatchString(d.Vendor) {
		wrong("vendor %q is not a domain such as nvidia.com", d.Vendor)
	}
	if !kindForm.MatchString(d.Kind) {
		wrong("kind %q is not a name such as gpu", d.Kind)
	}
	if d.Index < 0 {
		wrong("index %d is negative", d.Index)
	}
	if d.NUMANode < device.UnknownNUMANode {
		wrong("NUMA node %d is neither a node nor UnknownNUMANode", d.NUMANode)
	}
	if d.PCIAddress != "" && !pciForm.MatchString(d.PCIAddress) {
		wrong("PCI address %q does not have the kernel's form, such as 0000:3b:00.0", d.PCIAddress)
	}
	if d.Capacity.MemoryBytes < 0 || d.Capacity.Multiprocessors < 0 {
		wrong("capacity %+v is negative", d.Capacity)
	}
	switch d.Health.State {
	case device.Healthy:
		if d.Health.Reason != "" {
			wrong("healthy, but with the reason %q", d.Health.Reason)
		}
	case device.Suspect, device.Unhealthy, device.Recovering:
		if d.Health.Reason == "" {
			wrong("%s without a reason", d.Health.State)
		}
	default:
		wrong("health state %q is not known", d.Health.State)
	}
	for name, value := range d.Attributes {
		if err := attribute(name, value); err != nil {
			wrong("%w", err)
		}
	}
	return errors.Join(errs...)
}

// attribute checks that a name known to several rooms has the type that they
// expect.
func attribute(name string, value device.Attribute) error {
	if name == "" || value == nil {
		return fmt.Errorf("attribute %q = %v lacks a name or a value", name, value)
	}
	switch name {
	case device.AttributeArchitecture:
		if _, ok := value.(device.String); !ok {
			return fmt.Errorf("attribute %s is a %T, not a String", name, value)
		}
	case device.AttributeComputeCapability, device.AttributeDriverVersion, device.AttributeCUDAVersion:
		if _, ok := value.(device.Version); !ok {
			return fmt.Errorf("attribute %s is a %T, not a Version", name, value)
		}
	}
	return nil
}

func links(d device.Device, byID map[device.ID]device.Device) error {
	var errs []error
	wrong := func(l device.Link, what string) {
		errs = append(errs, fmt.Errorf("device %s: link to %s (%s) %s", d.ID, l.Peer, l.Kind, what))
	}
	type end struct {
		peer device.ID
		kind device.LinkKind
	}
	seen := map[end]bool{}
	for _, l := range d.Links {
		if l.Kind == "" {
			wrong(l, "has no kind")
		}
		if l.Lanes < 0 || l.BandwidthMBps < 0 {
			wrong(l, "has a negative number of lanes or bandwidth")
		}
		if seen[end{l.Peer, l.Kind}] {
			wrong(l, "is reported twice")
			continue
		}
		seen[end{l.Peer, l.Kind}] = true
		peer, known := byID[l.Peer]
		switch {
		case l.Peer == d.ID:
			wrong(l, "leads to itself")
		case !known:
			wrong(l, "leads to a device that is not reported")
		case !hasReturn(peer, d.ID, l):
			wrong(l, "is not reported the same by its peer")
		}
	}
	return errors.Join(errs...)
}

func hasReturn(peer device.Device, to device.ID, l device.Link) bool {
	l.Peer = to
	for _, back := range peer.Links {
		if back == l {
			return true
		}
	}
	return false
}
