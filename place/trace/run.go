package trace

import (
	"context"
	"errors"
	"math"
	"math/rand"
)

// Curve is how much of all GPU was allocated while the Pods arrived.
type Curve struct {
	// allocated sums, for each rounded percentage of the GPU that arrived, the
	// percentage that was allocated after each of the Pods that fell into it.
	allocated, pods [int(load*100) + 2]float64
}

// At is the mean allocation in percent while arrived percent of all GPU had
// been asked for.
func (c *Curve) At(arrived int) float64 {
	sum, pods := c.allocated[arrived], c.pods[arrived]
	if pods == 0 {
		// A large Pod can jump over a percentage.
		for at := max(0, arrived-1); at <= min(len(c.pods)-1, arrived+1); at++ {
			sum, pods = sum+c.allocated[at], pods+c.pods[at]
		}
	}
	return sum / pods
}

func (c *Curve) add(arrived, used, capacity int64) {
	percent := func(milli int64) float64 { return 100 * float64(milli) / float64(capacity) }
	at := int(math.RoundToEven(percent(arrived)))
	if at < len(c.pods) {
		c.allocated[at] += math.Round(percent(used)*100) / 100
		c.pods[at]++
	}
}

// Trace is a cluster and what was asked of it.
type Trace struct {
	Machines []Machine
	Pods     []Pod
}

// Make makes a policy for one run. It may draw from random, as the paper's
// Random does.
type Make func(t *Trace, random *rand.Rand) Policy

// Check says what is wrong with the trace.
func (t *Trace) Check() error {
	var gpus, asked int64
	for _, m := range t.Machines {
		gpus += int64(m.GPUs)
	}
	for i := range t.Pods {
		asked += t.Pods[i].Milli()
	}
	switch {
	case gpus == 0:
		return errors.New("no machine has a GPU")
	case asked == 0:
		return errors.New("no Pod asks for a GPU")
	}
	return nil
}

// Result is the outcome of a run.
type Result struct {
	Curve
	Pods  int
	Moves int // how many Pods were restarted elsewhere
}

// Run places the Pods as they arrive, never again what was refused, and nobody
// leaves.
func (t *Trace) Run(ctx context.Context, make Make, seed int64) (*Result, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewSource(seed))
	machines, arriving := arrivals(t.Machines, t.Pods, random)
	state := newState(machines)
	policy := make(t, random)
	var capacity, arrived, used int64
	for _, m := range machines {
		capacity += int64(m.GPUs) * WholeGPU
	}
	result := &Result{Pods: len(arriving)}
	for len(arriving) > 0 {
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		batch := 1
		batcher, batched := policy.(Batcher)
		if batched {
			batch = min(batcher.Batch(), len(arriving))
		}
		pods := arriving[:batch]
		arriving = arriving[batch:]
		if l, ok := policy.(Learner); ok {
			for _, p := range pods {
				l.Learn(state, p)
			}
		}
		var places []Placement
		if batched {
			places = batcher.PlaceAll(state, pods)
		} else {
			at, _ := policy.Place(state, pods[0])
			places = []Placement{at}
		}
		for i, p := range pods {
			arrived += p.Milli()
			if places[i].Node != nil {
				if err := state.put(p, places[i]); err != nil {
					return nil, err
				}
				used += p.Milli()
				result.Moves += len(places[i].Moves)
			}
			result.add(arrived, used, capacity)
		}
	}
	return result, nil
}

// The policies of the paper.
var (
	Random        Make = func(_ *Trace, source *rand.Rand) Policy { return random{source} }
	DotProd       Make = func(*Trace, *rand.Rand) Policy { return newByScore(dotProduct{}) }
	GpuClustering Make = func(*Trace, *rand.Rand) Policy { return newByScore(gpuClustering{}) }
	GpuPacking    Make = func(*Trace, *rand.Rand) Policy { return newByScore(gpuPacking{}) }
	BestFit       Make = func(*Trace, *rand.Rand) Policy { return newByScore(bestFit{}) }
	FGD           Make = func(t *Trace, _ *rand.Rand) Policy { return newByScore(newFGD(t.Pods)) }
)
