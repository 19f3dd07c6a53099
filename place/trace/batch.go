package trace

import (
	"cmp"
	"math/rand"
	"slices"
)

// batchSize is how many Pods wait for each other.
const batchSize = 16

// KilterBatch is Kilter with up to 16 waiting Pods placed jointly.
var KilterBatch Make = func(*Trace, *rand.Rand) Policy { return &batch{} }

// batch tries the Pods in two orders, largest first and as they came, keeps
// the better outcome, and then lets every Pod choose again twice while the
// others stay. The number of questions to place is fixed, at most six for each
// Pod, and with it the time.
type batch struct{ kilter }

// improvements is how often every Pod of a batch chooses again.
const improvements = 2

// Batch is how many Pods are wanted at once.
func (b *batch) Batch() int { return batchSize }

// PlaceAll places the Pods; those that are refused have no node.
func (b *batch) PlaceAll(s *State, pods []*Pod) []Placement {
	arrival := make([]int, len(pods))
	for i := range arrival {
		arrival[i] = i
	}
	largest := slices.Clone(arrival)
	slices.SortStableFunc(largest, func(x, y int) int {
		return cmp.Or(cmp.Compare(pods[y].Milli(), pods[x].Milli()), cmp.Compare(pods[y].CPUMilli, pods[x].CPUMilli))
	})
	chosen, score := b.try(s, pods, arrival)
	if !slices.Equal(arrival, largest) {
		b.undo(pods, chosen)
		var other outcome
		if chosen, other = b.try(s, pods, largest); !other.betterThan(score) {
			b.undo(pods, chosen)
			chosen, _ = b.try(s, pods, arrival)
		}
	}
	for range improvements {
		for i, p := range pods {
			if chosen[i].Node != nil {
				b.Leave(p, chosen[i])
			}
			if at, ok := b.Place(s, p); ok {
				chosen[i] = at
			}
		}
	}
	return chosen
}

// outcome is how well a batch went.
type outcome struct {
	milli int64   // the GPU that was placed
	gain  float64 // the worth that was gained
}

func (a outcome) betterThan(b outcome) bool {
	return a.milli > b.milli || a.milli == b.milli && a.gain > b.gain
}

func (b *batch) try(s *State, pods []*Pod, order []int) ([]Placement, outcome) {
	chosen := make([]Placement, len(pods))
	var result outcome
	for _, i := range order {
		if at, gain, ok := b.take(s, pods[i]); ok {
			chosen[i] = at
			result.milli += pods[i].Milli()
			result.gain += gain
		}
	}
	return chosen, result
}

func (b *batch) undo(pods []*Pod, chosen []Placement) {
	for i, at := range chosen {
		if at.Node != nil {
			b.Leave(pods[i], at)
		}
	}
}
