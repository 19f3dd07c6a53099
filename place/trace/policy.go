package trace

import "math/rand"

// Policy decides where a Pod goes. It is made anew for every run.
type Policy interface {
	// Place chooses a node that the Pod fits on, and GPUs of it. It returns
	// false when the Pod is refused.
	Place(s *State, p *Pod) (Placement, bool)
}

// Batcher is a Policy that places several Pods at once.
type Batcher interface {
	Policy
	// Batch is how many Pods it wants.
	Batch() int
	// PlaceAll places the Pods together. A Pod that is refused has no node.
	PlaceAll(s *State, pods []*Pod) []Placement
}

// Learner is a Policy that wants to know of every Pod when it arrives, before
// it is asked for a place.
type Learner interface {
	Learn(s *State, p *Pod)
}

// Leaver is a Policy that wants to know when a Pod leaves.
type Leaver interface {
	Leave(p *Pod, at Placement)
}

// Scorer rates a node that the Pod fits on: the higher, the better. The score
// may depend on nothing but the node and what the Pod asks for. It also says
// which GPU a Pod that shares one should get; Pods with whole GPUs get the
// first free ones.
type Scorer interface {
	Score(n *Node, p *Pod) (score int64, gpu int)
}

// byScore is the policy that takes the node with the highest score, and of
// equals the first one.
type byScore struct {
	scorer Scorer
	cache  map[ask][]rating
}

// ask is what a Pod asks for, without its name.
type ask struct {
	cpu, memory, milli int64
	gpus               int
	models             string
}

func (p *Pod) ask() ask { return ask{p.CPUMilli, p.MemoryMiB, p.GPUMilli, p.GPUs, p.Models} }

// rating is a cached score: a node's score changes only with the node.
type rating struct {
	version int // of the node, plus one
	fits    bool
	gpu     int16
	score   int64
}

func newByScore(scorer Scorer) *byScore {
	return &byScore{scorer: scorer, cache: map[ask][]rating{}}
}

func (b *byScore) Place(s *State, p *Pod) (Placement, bool) {
	key := p.ask()
	ratings := b.cache[key]
	if ratings == nil {
		ratings = make([]rating, len(s.Nodes))
		b.cache[key] = ratings
	}
	best := -1
	for i, n := range s.Nodes {
		r := &ratings[i]
		if r.version != n.Version+1 {
			*r = rating{version: n.Version + 1, fits: n.Fits(p)}
			if r.fits {
				score, gpu := b.scorer.Score(n, p)
				r.score, r.gpu = score, int16(gpu)
			}
		}
		if r.fits && (best < 0 || r.score > ratings[best].score) {
			best = i
		}
	}
	if best < 0 {
		return Placement{}, false
	}
	n := s.Nodes[best]
	return Placement{Node: n, GPUs: gpusFor(n, p, int(ratings[best].gpu))}, true
}

// gpusFor is the given GPU for a Pod that shares one, or whole ones.
func gpusFor(n *Node, p *Pod, gpu int) []int {
	switch {
	case p.GPUs == 0:
		return nil
	case p.GPUMilli < WholeGPU:
		return []int{gpu}
	}
	return n.wholeGPUs(p)
}

// random takes any node the Pod fits on, and any GPU of it.
type random struct{ source *rand.Rand }

func (r random) Place(s *State, p *Pod) (Placement, bool) {
	var fitting []*Node
	for _, n := range s.Nodes {
		if n.Fits(p) {
			fitting = append(fitting, n)
		}
	}
	if len(fitting) == 0 {
		return Placement{}, false
	}
	n := fitting[0]
	if len(fitting) > 1 {
		n = fitting[r.source.Intn(len(fitting))]
	}
	gpu, candidates := -1, 0
	if p.GPUs == 1 && p.GPUMilli < WholeGPU {
		for g, left := range n.GPU {
			if left >= p.GPUMilli {
				if candidates++; r.source.Intn(candidates) == 0 {
					gpu = g
				}
			}
		}
	}
	return Placement{Node: n, GPUs: gpusFor(n, p, gpu)}, true
}
