package device

import (
	"cmp"
	"slices"
)

// ID names a device on its node. It stays the same over restarts and reboots:
// a GPU's UUID, a PCI address, the path of a node under /dev.
type ID string

// UnknownNUMANode is the NUMA node of a device whose machine does not say.
const UnknownNUMANode = -1

// Device is one piece of hardware as a driver reports it.
type Device struct {
	ID ID `json:"id"`

	// Vendor is the vendor's domain and Kind what the device is: together
	// they are what users ask for, as in "nvidia.com/gpu".
	Vendor string `json:"vendor"`
	Kind   string `json:"kind"`

	// Model is the vendor's own name for it, such as "NVIDIA H100 80GB HBM3".
	Model string `json:"model"`

	// Index is the number under which the vendor's tools show the device on
	// this node. People use it to talk about a device; it may change over a
	// reboot, so nothing is keyed by it.
	Index int `json:"index"`

	// NUMANode is the node of the machine's memory that the device hangs on,
	// or UnknownNUMANode.
	NUMANode int `json:"numaNode"`

	// PCIAddress is domain:bus:device.function, empty for what is not on PCI.
	PCIAddress string `json:"pciAddress,omitempty"`

	Capacity   Capacity             `json:"capacity"`
	Attributes map[string]Attribute `json:"attributes,omitempty"`

	// Links are the direct connections to other devices of the same node.
	// Both ends report a link.
	Links []Link `json:"links,omitempty"`

	Health Health `json:"health"`
}

// Capacity is how much of a device there is to give.
type Capacity struct {
	MemoryBytes     int64 `json:"memoryBytes,omitempty"`
	Multiprocessors int   `json:"multiprocessors,omitempty"`
}

// Link is a connection from one device to a peer that is faster than the way
// over the host's bus, or the quality of that way.
type Link struct {
	Peer ID       `json:"peer"`
	Kind LinkKind `json:"kind"`

	// Lanes counts the parallel connections: an NVLink pair "NV4" has four.
	Lanes int `json:"lanes,omitempty"`

	// BandwidthMBps is the sum over the lanes in one direction, in 10^6 bytes
	// a second.
	BandwidthMBps int64 `json:"bandwidthMBps,omitempty"`
}

// LinkKind says what a link is made of.
type LinkKind string

const (
	// NVLink connects two GPUs directly.
	NVLink LinkKind = "nvlink"
	// NVSwitch connects every GPU on it with every other at full bandwidth.
	NVSwitch LinkKind = "nvswitch"
)

// Clone returns a copy that shares nothing with d.
func (d Device) Clone() Device {
	d.Links = slices.Clone(d.Links)
	if d.Attributes != nil {
		attributes := make(map[string]Attribute, len(d.Attributes))
		for name, value := range d.Attributes {
			attributes[name] = value
		}
		d.Attributes = attributes
	}
	return d
}

// Sort orders devices as people expect to see them: by vendor and kind, then
// by index, then by id.
func Sort(devices []Device) {
	slices.SortFunc(devices, func(a, b Device) int {
		return cmp.Or(
			cmp.Compare(a.Vendor, b.Vendor),
			cmp.Compare(a.Kind, b.Kind),
			cmp.Compare(a.Index, b.Index),
			cmp.Compare(a.ID, b.ID),
		)
	})
}
