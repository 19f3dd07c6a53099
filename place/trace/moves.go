package trace

import (
	"cmp"
	"math/rand"
	"slices"
)

// KilterMoves is Kilter with moves: for a Pod with GPUs that fits nowhere, up
// to two Pods of one node may be restarted elsewhere.
var KilterMoves Make = func(*Trace, *rand.Rand) Policy {
	return &mover{on: map[*Node][]resident{}, hopeless: map[ask]bool{}}
}

const (
	// maxMoved is how many Pods may be moved for one.
	maxMoved = 2
	// maxTried is how many ways are tried for one Pod, those that move the
	// least GPU first.
	maxTried = 12
)

// mover keeps book of who is where, to know who could move.
type mover struct {
	kilter
	on map[*Node][]resident
	// hopeless is what found no place even with moves. Until a Pod leaves,
	// there is only less room.
	hopeless map[ask]bool
}

// resident is a Pod in its place.
type resident struct {
	pod *Pod
	at  Placement
}

// eviction is a way to make room on a node.
type eviction struct {
	node    *Node
	victims []resident
	milli   int64 // the GPU that would move
	cpu     int64
}

func (m *mover) Place(s *State, p *Pod) (Placement, bool) {
	at, ok := m.kilter.Place(s, p)
	if !ok && p.GPUs > 0 && !m.hopeless[p.ask()] {
		at, ok = m.makeRoom(s, p)
		m.hopeless[p.ask()] = !ok
	}
	if ok {
		m.on[at.Node] = append(m.on[at.Node], resident{p, at})
	}
	return at, ok
}

// Leave gives back what a Pod had.
func (m *mover) Leave(p *Pod, at Placement) {
	clear(m.hopeless)
	m.forget(resident{p, at})
	m.kilter.Leave(p, at)
}

// makeRoom moves Pods out of the way, if they fit elsewhere.
func (m *mover) makeRoom(s *State, p *Pod) (Placement, bool) {
	for victims := 1; victims <= maxMoved; victims++ {
		for _, way := range m.evictions(s, p, victims) {
			if at, ok := m.try(s, p, way); ok {
				return at, true
			}
		}
	}
	return Placement{}, false
}

// evictions are the ways to make room by moving so many Pods of one node, the
// cheapest first.
func (m *mover) evictions(s *State, p *Pod, victims int) []eviction {
	var ways []eviction
	for _, n := range s.Nodes {
		if len(n.GPU) < p.GPUs || n.CPUMilli < p.CPUMilli || !accepts(p.Models, n.Model) {
			continue
		}
		residents := m.on[n]
		for i, first := range residents {
			if victims == 1 {
				if fitsWithout(n, p, first) {
					ways = append(ways, eviction{n, []resident{first}, first.pod.Milli(), first.pod.CPUMilli})
				}
				continue
			}
			for _, second := range residents[:i] {
				if fitsWithout(n, p, first, second) {
					ways = append(ways, eviction{n, []resident{first, second},
						first.pod.Milli() + second.pod.Milli(), first.pod.CPUMilli + second.pod.CPUMilli})
				}
			}
		}
	}
	slices.SortStableFunc(ways, func(a, b eviction) int {
		return cmp.Or(cmp.Compare(a.milli, b.milli), cmp.Compare(a.cpu, b.cpu))
	})
	return ways[:min(len(ways), maxTried)]
}

// fitsWithout reports whether the Pod would fit if others left.
func fitsWithout(n *Node, p *Pod, leaving ...resident) bool {
	cpu, memory := n.CPU, n.Memory
	var gpus [16]int64
	left := append(gpus[:0], n.GPU...)
	for _, r := range leaving {
		cpu += r.pod.CPUMilli
		memory += r.pod.MemoryMiB
		for _, g := range r.at.GPUs {
			left[g] += r.pod.GPUMilli
		}
	}
	if cpu < p.CPUMilli || memory < p.MemoryMiB {
		return false
	}
	enough := 0
	for _, milli := range left {
		if milli >= p.GPUMilli {
			enough++
		}
	}
	return enough >= p.GPUs
}

// try moves the victims if all of them find a place besides the Pod.
func (m *mover) try(s *State, p *Pod, way eviction) (Placement, bool) {
	for _, v := range way.victims {
		m.kilter.Leave(v.pod, v.at)
	}
	at, ok := m.kilter.Place(s, p)
	var moves []Move
	for _, v := range way.victims {
		if !ok {
			break
		}
		var to Placement
		if to, ok = m.kilter.Place(s, v.pod); ok {
			moves = append(moves, Move{v.pod, v.at, to})
		}
	}
	if !ok {
		for _, moved := range moves {
			m.kilter.Leave(moved.Pod, moved.To)
		}
		if at.Node != nil {
			m.kilter.Leave(p, at)
		}
		for _, v := range way.victims {
			m.put(v.pod, v.at)
		}
		return Placement{}, false
	}
	for i, v := range way.victims {
		m.forget(v)
		to := moves[i].To
		m.on[to.Node] = append(m.on[to.Node], resident{v.pod, to})
	}
	at.Moves = moves
	return at, true
}

// forget takes a Pod from the books.
func (m *mover) forget(r resident) {
	residents := m.on[r.at.Node]
	i := slices.IndexFunc(residents, func(other resident) bool {
		return other.pod == r.pod && slices.Equal(other.at.GPUs, r.at.GPUs)
	})
	m.on[r.at.Node] = slices.Delete(residents, i, i+1)
}
