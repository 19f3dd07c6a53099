// Package machines holds recorded machines: which accelerators they have,
// where those sit and how they are linked. The simulated driver replays them,
// and so can anything that wants to think about hardware without having it.
//
// A machine is a YAML file that a person can write; README.md explains it.
package machines

import (
	"crypto/sha256"
	"fmt"

	"github.com/kilter-dev/kilter/device"
)

// Vendor and Kind are what the devices of every recorded machine are.
const (
	Vendor = "nvidia.com"
	Kind   = "gpu"
)

// Machine is a recorded machine. One that comes from Parse or Load is sound:
// its models exist, its addresses are unique, its links have two ends.
type Machine struct {
	// Name is the file's name without its ending, as in "h100x8".
	Name        string
	Description string

	// DriverVersion and CUDAVersion are those of the vendor's driver that the
	// machine was recorded with.
	DriverVersion string
	CUDAVersion   string

	// Devices are in the order in which the vendor's tools number them.
	Devices []Device

	// Links connect two devices each; no pair occurs twice.
	Links []Link
}

// Device is a place in the machine and what is in it.
type Device struct {
	Model      Model
	PCIAddress string
	// NUMANode is device.UnknownNUMANode where the recording does not say.
	NUMANode int
}

// Model is what devices of the same product have in common.
type Model struct {
	Name              string
	Architecture      string
	ComputeCapability string
	MemoryBytes       int64
	Multiprocessors   int
}

// Link connects the devices numbered A and B, A being the lower number.
type Link struct {
	A, B  int
	Kind  device.LinkKind
	Lanes int
	// BandwidthMBps is the sum over the lanes in one direction.
	BandwidthMBps int64
}

// On returns the devices that a node of this name has when it is such a
// machine. The ids depend on the node, the machine and the device's number
// only: they survive a restart and differ between nodes.
func (m Machine) On(node string) []device.Device {
	devices := make([]device.Device, len(m.Devices))
	for i, d := range m.Devices {
		devices[i] = device.Device{
			ID:         m.id(node, i),
			Vendor:     Vendor,
			Kind:       Kind,
			Model:      d.Model.Name,
			Index:      i,
			NUMANode:   d.NUMANode,
			PCIAddress: d.PCIAddress,
			Capacity: device.Capacity{
				MemoryBytes:     d.Model.MemoryBytes,
				Multiprocessors: d.Model.Multiprocessors,
			},
			Attributes: map[string]device.Attribute{
				device.AttributeArchitecture:      device.String(d.Model.Architecture),
				device.AttributeComputeCapability: device.Version(d.Model.ComputeCapability),
				device.AttributeDriverVersion:     device.Version(m.DriverVersion),
				device.AttributeCUDAVersion:       device.Version(m.CUDAVersion),
			},
			Health: device.Health{State: device.Healthy},
		}
	}
	for _, l := range m.Links {
		connect := func(from, to int) {
			devices[from].Links = append(devices[from].Links, device.Link{
				Peer:          devices[to].ID,
				Kind:          l.Kind,
				Lanes:         l.Lanes,
				BandwidthMBps: l.BandwidthMBps,
			})
		}
		connect(l.A, l.B)
		connect(l.B, l.A)
	}
	return devices
}

// id has the form of the vendor's own ids, since that is what the tools and
// images around a GPU expect to see.
func (m Machine) id(node string, index int) device.ID {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d", node, m.Name, index))
	return device.ID(fmt.Sprintf("GPU-%x-%x-%x-%x-%x", sum[0:4], sum[4:6], sum[6:8], sum[8:10], sum[10:16]))
}
