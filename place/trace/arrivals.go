package trace

import (
	"cmp"
	"fmt"
	"math/rand"
	"slices"
)

// load is how much GPU arrives in a run, as a multiple of what there is.
const load = 1.3

// watches is how many watches the paper's simulator begins between ordering
// the Pods and the machines. Each draws a random timeout; with these draws the
// order of the machines, and so every deterministic policy's figure, comes out
// as published, seed by seed.
const watches = 10

// arrivals puts the Pods of a run in order, and the machines into the order
// that breaks ties, exactly as the paper's simulator does: the Pods by name,
// shuffled, then drawn with replacement at the end until the load is reached,
// or taken out at random where they are too many. It consumes random in the
// same order too, so that a seed stands for the same run as in the paper.
func arrivals(machines []Machine, pods []Pod, random *rand.Rand) ([]Machine, []*Pod) {
	random.Int()
	byName := make([]*Pod, len(pods))
	var asked, capacity int64
	for i := range pods {
		byName[i] = &pods[i]
		asked += pods[i].Milli()
	}
	slices.SortFunc(byName, func(a, b *Pod) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range machines {
		capacity += int64(m.GPUs) * WholeGPU
	}
	arriving := slices.Clone(byName)
	random.Shuffle(len(arriving), func(i, j int) { arriving[i], arriving[j] = arriving[j], arriving[i] })

	target := load * float64(capacity)
	if float64(asked) > target {
		for float64(asked) > target {
			i := random.Intn(len(arriving))
			asked -= arriving[i].Milli()
			arriving = slices.Delete(arriving, i, i+1)
		}
	} else if float64(asked) < target {
		for {
			// The check counts one GPU of the Pod, also where it asks for more.
			pod := byName[random.Intn(len(byName))]
			if float64(asked+pod.GPUMilli) > target {
				break
			}
			asked += pod.Milli()
			arriving = append(arriving, pod)
		}
	}

	for range watches {
		random.Float64()
	}
	ordered := slices.Clone(machines)
	slices.SortFunc(ordered, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	for i, rank := range random.Perm(len(ordered)) {
		ordered[i].Name = fmt.Sprintf("%04d-%s", rank, ordered[i].Name)
	}
	slices.SortFunc(ordered, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	return ordered, arriving
}
