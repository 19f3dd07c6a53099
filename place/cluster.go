package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/place/internal/mix"
)

// Cluster chooses nodes and devices for requests. It is an index that follows
// the cluster change by change: what one Pod changes, it looks at again, and
// nothing else. It is not safe for concurrent use.
type Cluster struct {
	version uint64
	nodes   []*node // a removed node leaves a gap, which is used again
	byName  map[string]*node

	holdings map[string]Holding
	heldOn   map[string]map[string]bool // the ids of the holdings on a node

	mix        *mix.Mix
	kinds      map[kindKey]int
	examples   []device.Device // one of each kind
	shapes     map[string]int
	topologies map[string]*topology
	selectors  map[string]Selector

	columns map[string]*column
	asked   uint64 // counts the questions, to know which column is oldest
}

// NewCluster makes a cluster without nodes.
func NewCluster() *Cluster {
	c := &Cluster{
		byName:     map[string]*node{},
		holdings:   map[string]Holding{},
		heldOn:     map[string]map[string]bool{},
		kinds:      map[kindKey]int{},
		shapes:     map[string]int{},
		topologies: map[string]*topology{},
		selectors:  map[string]Selector{},
		columns:    map[string]*column{},
	}
	c.mix = mix.New(func(selector string, kind int) bool {
		s, ok := c.selectors[selector]
		return !ok || s.Match == nil || s.Match(c.examples[kind])
	})
	return c
}

// Version counts the changes of the cluster.
func (c *Cluster) Version() uint64 { return c.version }

// SetNode adds a node, or replaces what is known of it. Holdings on it stay.
func (c *Cluster) SetNode(n Node) error {
	seen := make(map[device.ID]bool, len(n.Devices))
	for i := range n.Devices {
		id := n.Devices[i].ID
		if seen[id] {
			return fmt.Errorf("set node %s: device %q is listed twice", n.Name, id)
		}
		seen[id] = true
	}
	slot := slices.Index(c.nodes, nil)
	if old := c.byName[n.Name]; old != nil {
		slot = old.slot
		c.mix.Remove(old.row, old.shape)
	} else if slot < 0 {
		slot = len(c.nodes)
		c.nodes = append(c.nodes, nil)
	}
	devices := slices.Clone(n.Devices)
	slices.SortFunc(devices, func(a, b Device) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.ID, b.ID))
	})
	c.version++
	added := &node{name: n.Name, slot: slot, host: n.Host, devices: devices, version: c.version}
	c.describe(added)
	for id := range c.heldOn[n.Name] {
		added.take(c.holdings[id], 1)
	}
	added.row = c.mix.Row(added.state())
	c.mix.Add(added.row, added.shape)
	c.nodes[slot], c.byName[n.Name] = added, added
	return nil
}

// RemoveNode forgets a node. Holdings on it are kept until they are released,
// because the node may come back.
func (c *Cluster) RemoveNode(name string) error {
	n := c.byName[name]
	if n == nil {
		return fmt.Errorf("remove node %q: %w", name, ErrUnknown)
	}
	c.version++
	c.mix.Remove(n.row, n.shape)
	c.nodes[n.slot] = nil
	delete(c.byName, name)
	return nil
}

// Hold records what somebody has been given, be there room for it or not: it
// is a fact, for example of the time before a restart.
func (c *Cluster) Hold(h Holding) error {
	if _, ok := c.holdings[h.ID]; ok {
		return fmt.Errorf("record the holding %q: %w", h.ID, ErrExists)
	}
	h.Parts = slices.Clone(h.Parts)
	c.holdings[h.ID] = h
	if c.heldOn[h.Node] == nil {
		c.heldOn[h.Node] = map[string]bool{}
	}
	c.heldOn[h.Node][h.ID] = true
	c.apply(h, 1)
	return nil
}

// Commit takes what was offered. It fails with ErrStale when the node has
// changed since, and then nothing is taken.
func (c *Cluster) Commit(id string, o Offer) error {
	n := c.byName[o.Node]
	if n == nil {
		return fmt.Errorf("commit %q on node %q: %w", id, o.Node, ErrUnknown)
	}
	if n.version != o.version {
		return fmt.Errorf("commit %q on node %q: %w", id, o.Node, ErrStale)
	}
	return c.Hold(Holding{ID: id, Node: o.Node, Host: o.host, Parts: o.Parts})
}

// Release gives back what a holding has.
func (c *Cluster) Release(id string) error {
	h, ok := c.holdings[id]
	if !ok {
		return fmt.Errorf("release the holding %q: %w", id, ErrUnknown)
	}
	delete(c.holdings, id)
	delete(c.heldOn[h.Node], id)
	if len(c.heldOn[h.Node]) == 0 {
		delete(c.heldOn, h.Node)
	}
	c.apply(h, -1)
	return nil
}

// apply changes the one node of the holding.
func (c *Cluster) apply(h Holding, times int64) {
	c.version++
	n := c.byName[h.Node]
	if n == nil {
		return
	}
	n.take(h, times)
	n.version = c.version
	c.mix.Remove(n.row, n.shape)
	n.row = c.mix.Row(n.state())
	c.mix.Add(n.row, n.shape)
}

// Learn counts a request towards the mix that the cluster is kept ready for.
// Tell each request once, when it arrives, whether it can be placed or not.
func (c *Cluster) Learn(r Request) error {
	if err := r.Validate(); err != nil {
		return fmt.Errorf("learn: %w", err)
	}
	class := mix.Class{CPUMilli: r.Host.CPUMilli}
	for i := range r.Groups {
		// Of several groups the largest stands for the request.
		if g := &r.Groups[i]; g.Count > class.Devices {
			class.Devices, class.Selector = g.Count, g.Selector.Name
			class.Each = mix.Amount(g.Each)
			c.selectors[g.Selector.Name] = g.Selector
		}
	}
	c.mix.Learn(class, r.Host.MemoryBytes)
	return nil
}
