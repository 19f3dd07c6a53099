package trace

import (
	"fmt"
	"slices"
	"strings"
)

// maxPods is how many Pods a machine takes.
const maxPods = 1001

// State is the cluster of a run: what is left on each machine.
type State struct {
	Nodes []*Node // in the order that breaks ties
}

// Node is a machine and what is left on it.
type Node struct {
	Machine
	Index   int // in State.Nodes
	CPU     int64
	Memory  int64
	Slots   int
	GPU     []int64 // what is left of each GPU
	Version int     // counts the changes

	affinities map[string]int // how many Pods of each size of request are here
}

func newState(machines []Machine) *State {
	s := &State{}
	for i, m := range machines {
		n := &Node{
			Machine: m, Index: i, CPU: m.CPUMilli, Memory: m.MemoryMiB, Slots: maxPods,
			GPU: make([]int64, m.GPUs), affinities: map[string]int{},
		}
		for g := range n.GPU {
			n.GPU[g] = WholeGPU
		}
		s.Nodes = append(s.Nodes, n)
	}
	return s
}

// Left is what is left of all the machine's GPUs.
func (n *Node) Left() int64 {
	var sum int64
	for _, left := range n.GPU {
		sum += left
	}
	return sum
}

// Free counts the GPUs that nobody uses.
func (n *Node) Free() int {
	free := 0
	for _, left := range n.GPU {
		if left == WholeGPU {
			free++
		}
	}
	return free
}

// Fits reports whether the Pod can run here.
func (n *Node) Fits(p *Pod) bool {
	if n.CPU < p.CPUMilli || n.Memory < p.MemoryMiB || n.Slots < 1 {
		return false
	}
	if p.GPUs == 0 {
		return true
	}
	if !accepts(p.Models, n.Model) {
		return false
	}
	enough := 0
	for _, left := range n.GPU {
		if left >= p.GPUMilli {
			enough++
		}
	}
	return enough >= p.GPUs
}

// accepts reports whether a model is among those that will do.
func accepts(models, model string) bool {
	if models == "" {
		return true
	}
	for one := range strings.SplitSeq(models, "|") {
		if one == model {
			return true
		}
	}
	return false
}

// wholeGPUs are the first GPUs nobody uses, as many as the Pod needs.
func (n *Node) wholeGPUs(p *Pod) []int {
	var gpus []int
	for g, left := range n.GPU {
		if len(gpus) == p.GPUs {
			break
		}
		if left == WholeGPU {
			gpus = append(gpus, g)
		}
	}
	return gpus
}

// fullestGPU is the one with the least left that the Pod fits on.
func (n *Node) fullestGPU(p *Pod) int {
	best := -1
	for g, left := range n.GPU {
		if left >= p.GPUMilli && (best < 0 || left < n.GPU[best]) {
			best = g
		}
	}
	return best
}

// Placement is where a Pod goes.
type Placement struct {
	Node  *Node
	GPUs  []int
	Moves []Move // of other Pods, which make room for it
}

// Move is a Pod that is restarted elsewhere.
type Move struct {
	Pod      *Pod
	From, To Placement
}

// put takes what the Pod needs. It checks everything, because a policy that
// cheats would look good.
func (s *State) put(p *Pod, at Placement) error {
	for _, move := range at.Moves {
		s.remove(move.Pod, move.From)
	}
	if err := s.putOne(p, at); err != nil {
		return err
	}
	for _, move := range at.Moves {
		if err := s.putOne(move.Pod, move.To); err != nil {
			return err
		}
	}
	return nil
}

func (s *State) putOne(p *Pod, at Placement) error {
	n := at.Node
	if !n.Fits(p) || len(at.GPUs) != p.GPUs {
		return fmt.Errorf("pod %s does not fit on %s with GPUs %v", p.Name, n.Name, at.GPUs)
	}
	for i, g := range at.GPUs {
		if n.GPU[g] < p.GPUMilli || slices.Contains(at.GPUs[:i], g) {
			return fmt.Errorf("pod %s does not fit on GPUs %v of %s", p.Name, at.GPUs, n.Name)
		}
	}
	s.change(p, at, 1)
	return nil
}

// remove gives back what the Pod had.
func (s *State) remove(p *Pod, at Placement) { s.change(p, at, -1) }

func (s *State) change(p *Pod, at Placement, sign int64) {
	n := at.Node
	n.CPU -= sign * p.CPUMilli
	n.Memory -= sign * p.MemoryMiB
	n.Slots -= int(sign)
	n.Version++
	for _, g := range at.GPUs {
		n.GPU[g] -= sign * p.GPUMilli
	}
	if p.GPUs > 0 {
		kind := affinity(p)
		n.affinities[kind] += int(sign)
		if n.affinities[kind] == 0 {
			delete(n.affinities, kind)
		}
	}
}

// affinity is the size of request that GpuClustering keeps together.
func affinity(p *Pod) string {
	if p.GPUMilli < WholeGPU {
		return "share"
	}
	return fmt.Sprint(p.GPUs)
}
