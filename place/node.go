package place

import (
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/place/internal/mix"
)

// node is a node and what is free on it.
type node struct {
	name    string
	slot    int
	host    Host
	devices []Device // in the order of index and id
	version uint64

	free     Host
	room     []Amount // by device
	kinds    []int    // by device
	topology *topology
	matches  map[string][]bool // by selector, by device
	used     int               // how many holdings are on it

	shape int
	row   *mix.Row
}

// kindKey is what makes devices of one kind for the mix.
type kindKey struct {
	vendor, kind, model string
	capacity            device.Capacity
	attributes          [len(kindAttributes)]device.Attribute
}

var kindAttributes = [...]string{
	device.AttributeArchitecture, device.AttributeComputeCapability,
	device.AttributeDriverVersion, device.AttributeCUDAVersion,
}

// describe finds out what the node is like when nothing is held on it.
func (c *Cluster) describe(n *node) {
	n.free = n.host
	n.matches = map[string][]bool{}
	n.room = make([]Amount, len(n.devices))
	n.kinds = make([]int, len(n.devices))
	empty := mix.State{CPUMilli: n.host.CPUMilli, MemoryBytes: n.host.MemoryBytes, Pods: n.host.Pods}
	var shape strings.Builder
	fmt.Fprint(&shape, n.host)
	for i := range n.devices {
		d := &n.devices[i]
		n.room[i] = d.capacity().plus(d.Taken, -1)
		n.kinds[i] = c.kindOf(d.Device)
		empty.Rooms = append(empty.Rooms, mix.Room{Kind: n.kinds[i], Amount: mix.Amount(d.capacity()), Devices: 1})
		fmt.Fprint(&shape, " ", n.kinds[i])
	}
	known, ok := c.shapes[shape.String()]
	if !ok {
		known = c.mix.AddShape(empty)
		c.shapes[shape.String()] = known
	}
	n.shape = known
	n.topology = c.topologyOf(n.devices)
}

func (c *Cluster) kindOf(d device.Device) int {
	key := kindKey{vendor: d.Vendor, kind: d.Kind, model: d.Model, capacity: d.Capacity}
	for i, name := range kindAttributes {
		key.attributes[i] = d.Attributes[name]
	}
	kind, ok := c.kinds[key]
	if !ok {
		kind = c.mix.AddKind(d.Capacity.MemoryBytes)
		c.kinds[key] = kind
		c.examples = append(c.examples, d)
	}
	return kind
}

// take takes a holding's share, or gives it back with times = -1. Parts of
// devices that are gone count nowhere.
func (n *node) take(h Holding, times int64) {
	n.free = n.free.plus(h.Host, -times)
	n.used += int(times)
	for _, part := range h.Parts {
		if i := n.find(part.Device); i >= 0 {
			n.room[i] = n.room[i].plus(part.Amount, -times)
		}
	}
}

func (n *node) find(id device.ID) int {
	for i := range n.devices {
		if n.devices[i].ID == id {
			return i
		}
	}
	return -1
}

// state is what the node's worth depends on.
func (n *node) state() mix.State { return n.stateWith(n.free, n.room) }

func (n *node) stateWith(free Host, room []Amount) mix.State {
	s := mix.State{
		CPUMilli: free.CPUMilli, MemoryBytes: free.MemoryBytes, Pods: free.Pods,
		Rooms: make([]mix.Room, 0, len(room)),
	}
	for i := range room {
		if n.devices[i].Health.OK() {
			s.Rooms = append(s.Rooms, mix.Room{Kind: n.kinds[i], Amount: mix.Amount(room[i]), Devices: 1})
		}
	}
	return s
}

// matching says which devices the selector matches.
func (n *node) matching(s Selector) []bool {
	if found, ok := n.matches[s.Name]; ok {
		return found
	}
	found := make([]bool, len(n.devices))
	for i := range n.devices {
		found[i] = s.Match == nil || s.Match(n.devices[i].Device)
	}
	n.matches[s.Name] = found
	return found
}
