package place

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kilter-dev/kilter/device"
)

// Node is a node of the cluster and what there is to give on it.
type Node struct {
	Name string
	// Host is what Pods can have of it, less what is taken by those that hold
	// no Holding here.
	Host    Host
	Devices []Device
}

// Device is a device and how much of it is taken by somebody who holds no
// Holding here.
type Device struct {
	device.Device
	Taken Amount
}

// capacity is all of the device.
func (d *Device) capacity() Amount {
	return Amount{MemoryBytes: d.Capacity.MemoryBytes, ComputeMilli: WholeCompute}
}

// Part is a device, or a part of one, that was given or is offered.
type Part struct {
	Group  string    `json:"group,omitempty"`
	Device device.ID `json:"device"`
	Amount Amount    `json:"amount"`
}

// Holding is what somebody was given on a node.
type Holding struct {
	ID    string `json:"id"`
	Node  string `json:"node"`
	Host  Host   `json:"host"`
	Parts []Part `json:"parts,omitempty"`
}

// Snapshot is the cluster as data: nodes, and who holds what on them.
type Snapshot struct {
	Version  uint64
	Nodes    []Node
	Holdings []Holding
}

// Offer is an answer to a request: a node, and the devices on it. It holds as
// long as the node does not change.
type Offer struct {
	Node  string `json:"node"`
	Parts []Part `json:"parts,omitempty"`
	// Gain is how the worth of the cluster changes with it; mostly it is a
	// loss. Offers to different requests can be compared by it as long as
	// nothing is learnt in between.
	Gain float64 `json:"gain"`

	host    Host
	version uint64
}

var (
	// ErrStale says that the node changed after the offer was made. Ask again.
	ErrStale = errors.New("the node has changed since the offer was made")
	// ErrUnknown says that there is no such node or holding.
	ErrUnknown = errors.New("unknown")
	// ErrExists says that a holding of that name exists.
	ErrExists = errors.New("exists already")
)

// FromSnapshot makes a cluster of a snapshot. The order of its lists does not
// matter.
func FromSnapshot(s Snapshot) (*Cluster, error) {
	c := NewCluster()
	nodes := slices.Clone(s.Nodes)
	slices.SortFunc(nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	for _, n := range nodes {
		if err := c.SetNode(n); err != nil {
			return nil, err
		}
	}
	for _, h := range s.Holdings {
		if err := c.Hold(h); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// Snapshot is the cluster as it is now, in the order of names.
func (c *Cluster) Snapshot() Snapshot {
	s := Snapshot{Version: c.version}
	for _, n := range c.nodes {
		if n != nil {
			s.Nodes = append(s.Nodes, Node{n.name, n.host, slices.Clone(n.devices)})
		}
	}
	for _, h := range c.holdings {
		s.Holdings = append(s.Holdings, h)
	}
	slices.SortFunc(s.Nodes, func(a, b Node) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.Holdings, func(a, b Holding) int { return cmp.Compare(a.ID, b.ID) })
	return s
}
