package place

import (
	"slices"

	"github.com/kilter-dev/kilter/place/internal/mix"
)

// option is one way to serve a request on a node.
type option struct {
	taken []taken
	row   *mix.Row // the node's state afterwards
	links int64    // the bandwidth within groups that wish for links
	rank  []rankKey
	left  float64 // what is left of CPU and devices, in parts of all
}

// taken is a part of a device, by its place on the node.
type taken struct {
	group, device int
	amount        Amount
}

// maxOptions bounds the ways that are compared on one node.
const maxOptions = 64

// options finds the ways to serve the request on the node that are worth
// comparing: none if there is no way.
func (c *Cluster) options(n *node, r *Request) []option {
	after := n.free.plus(r.Host, -1)
	if after.CPUMilli < 0 || after.MemoryBytes < 0 || after.Pods < 0 {
		return nil
	}
	a := assignment{node: n, groups: r.Groups, room: slices.Clone(n.room)}
	a.search(0)
	if len(a.found) == 0 && len(r.Groups) > 1 {
		a.exhaust(0)
	}
	options := make([]option, 0, len(a.found))
	for _, found := range a.found {
		room := slices.Clone(n.room)
		for _, t := range found {
			room[t.device] = room[t.device].plus(t.amount, -1)
		}
		o := option{taken: found, row: c.mix.Row(n.stateWith(after, room))}
		o.links, o.rank = n.linksOf(r.Groups, found), n.ranksOf(r.Groups, found)
		o.left = c.leftover(n, after, o.row)
		options = append(options, o)
	}
	return options
}

// leftover is what stays free, in parts of what there is: the less, the
// better packed.
func (c *Cluster) leftover(n *node, after Host, row *mix.Row) float64 {
	var left float64
	if n.host.CPUMilli > 0 {
		left = float64(after.CPUMilli) / float64(n.host.CPUMilli)
	}
	if len(n.devices) > 0 {
		left += row.Room() / float64(WholeCompute*len(n.devices))
	}
	return left
}

// assignment finds devices for groups, one group after the other.
type assignment struct {
	node   *node
	groups []Group
	room   []Amount // what is left after the groups so far
	taken  []taken
	found  [][]taken
	steps  int // of exhaust
}

// search tries the promising choices of each group.
func (a *assignment) search(group int) {
	if group == len(a.groups) {
		a.found = append(a.found, slices.Clone(a.taken))
		return
	}
	for _, members := range a.choices(&a.groups[group]) {
		if len(a.found) >= maxOptions {
			return
		}
		a.with(group, members, func() { a.search(group + 1) })
	}
}

// with runs do while the members are taken for the group.
func (a *assignment) with(group int, members []int, do func()) {
	g := &a.groups[group]
	for _, i := range members {
		amount := g.Each
		if g.whole() {
			amount = a.node.devices[i].capacity()
		}
		a.room[i] = a.room[i].plus(amount, -1)
		a.taken = append(a.taken, taken{group, i, amount})
	}
	do()
	for range members {
		last := a.taken[len(a.taken)-1]
		a.room[last.device] = a.room[last.device].plus(last.amount, 1)
		a.taken = a.taken[:len(a.taken)-1]
	}
}

// fits reports whether the group's amount is free on the device.
func (a *assignment) fits(g *Group, i int) bool {
	d := &a.node.devices[i]
	if !d.Health.OK() {
		return false
	}
	if g.whole() {
		return a.room[i] == d.capacity()
	}
	return a.room[i].holds(g.Each)
}

// candidates are the devices that would do for the group.
func (a *assignment) candidates(g *Group) []int {
	matching := a.node.matching(g.Selector)
	var pool []int
	for i := range a.node.devices {
		if matching[i] && a.fits(g, i) {
			pool = append(pool, i)
		}
	}
	return pool
}

// choices are the sets of devices that are worth comparing for a group.
// Devices of one kind with the same left make an alike set. One device comes
// from each alike set; of several, all come from one alike set, or from the
// sets that the rank puts first, or they are those with the best links.
func (a *assignment) choices(g *Group) [][]int {
	pool := a.candidates(g)
	if len(pool) < g.Count {
		return nil
	}
	linked := g.Links == LinksRequired && g.Count > 1
	var sets [][]int
	add := func(members []int) {
		if len(members) != g.Count {
			return
		}
		members = sorted(members)
		if !slices.ContainsFunc(sets, func(known []int) bool { return slices.Equal(known, members) }) {
			sets = append(sets, members)
		}
	}
	alike := a.alike(pool)
	for _, set := range alike {
		add(a.node.topology.choose(set, g.Count, linked).members)
	}
	if g.Count > 1 && len(alike) > 1 {
		add(a.node.topology.choose(pool, g.Count, linked).members)
		if !linked {
			add(a.firstOf(alike, g))
		}
	}
	return sets
}

// alike splits the pool by kind and room, the fullest first.
func (a *assignment) alike(pool []int) [][]int {
	var sets [][]int
	for _, i := range pool {
		at := slices.IndexFunc(sets, func(set []int) bool {
			return a.node.kinds[set[0]] == a.node.kinds[i] && a.room[set[0]] == a.room[i]
		})
		if at < 0 {
			sets = append(sets, []int{i})
		} else {
			sets[at] = append(sets[at], i)
		}
	}
	slices.SortStableFunc(sets, func(x, y []int) int {
		switch left := a.part(x[0]) - a.part(y[0]); {
		case left < 0:
			return -1
		case left > 0:
			return 1
		}
		return 0
	})
	return sets
}

// part is what is free of a device, in parts of all: the lesser of memory and
// compute.
func (a *assignment) part(i int) float64 { return a.node.part(i, a.room[i]) }

func (n *node) part(i int, room Amount) float64 {
	part := float64(room.ComputeMilli) / WholeCompute
	if memory := n.devices[i].Capacity.MemoryBytes; memory > 0 {
		part = min(part, float64(room.MemoryBytes)/float64(memory))
	}
	return part
}

// firstOf takes from the alike sets in the order of the group's rank: the
// fullest first for Pack, the least used first for Spread, or by power.
func (a *assignment) firstOf(alike [][]int, g *Group) []int {
	ordered := slices.Clone(alike) // the fullest first
	strength := func(set []int) rankKey { return power(&a.node.devices[set[0]].Device) }
	switch g.Rank {
	case Spread:
		slices.Reverse(ordered)
	case MostPowerful:
		slices.SortStableFunc(ordered, func(x, y []int) int { return strength(y).compare(strength(x)) })
	case SmallestFit:
		slices.SortStableFunc(ordered, func(x, y []int) int { return strength(x).compare(strength(y)) })
	}
	var members []int
	for _, set := range ordered {
		n := min(len(set), g.Count-len(members))
		members = append(members, a.node.topology.choose(set, n, false).members...)
	}
	return members
}

// maxExhaustSteps bounds the sets of devices that exhaust tries.
const maxExhaustSteps = 100_000

// exhaust tries every set of devices for every group until one way is found.
// It is for requests of several groups that get in each other's way.
func (a *assignment) exhaust(group int) {
	if group == len(a.groups) {
		a.found = append(a.found, slices.Clone(a.taken))
		return
	}
	g := &a.groups[group]
	a.subsets(g, a.candidates(g), nil, func(members []int) {
		a.with(group, members, func() { a.exhaust(group + 1) })
	})
}

func (a *assignment) subsets(g *Group, pool, members []int, do func([]int)) {
	if a.steps++; a.steps > maxExhaustSteps || len(a.found) > 0 {
		return
	}
	if len(members) == g.Count {
		do(members)
		return
	}
	for at, i := range pool {
		if len(members)+len(pool)-at < g.Count {
			return
		}
		if g.Links == LinksRequired && !a.node.topology.linkedToAll(i, members) {
			continue
		}
		a.subsets(g, pool[at+1:], append(slices.Clone(members), i), do)
	}
}
