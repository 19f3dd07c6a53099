package trace

import (
	"cmp"
	"math"
	"slices"
)

// popular is the percentage of all Pods that the typical ones make up.
const popular = 95

// fgd is fragmentation gradient descent, the paper's own policy: a Pod goes
// where the expected GPU that typical Pods could not use grows the least.
type fgd struct {
	typical []typicalPod
	accept  map[string][]bool // by model, by typical Pod
	before  map[*Node]fragmentation
	scratch []int64
}

// typicalPod is a class of Pods and its share of all.
type typicalPod struct {
	cpu, milli int64
	gpus       int
	models     string
	share      float64
}

type fragmentation struct {
	version int
	milli   float64
}

// newFGD learns the typical Pods from the whole list, as the paper does.
func newFGD(pods []Pod) *fgd {
	counts := map[typicalPod]float64{}
	for i := range pods {
		p := &pods[i]
		counts[typicalPod{cpu: p.CPUMilli, milli: p.GPUMilli, gpus: p.GPUs, models: p.Models}]++
	}
	var all []typicalPod
	for class, count := range counts {
		class.share = count
		all = append(all, class)
	}
	// Highest first in every key.
	slices.SortFunc(all, func(b, a typicalPod) int {
		return cmp.Or(cmp.Compare(a.share, b.share), cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.milli, b.milli),
			cmp.Compare(a.gpus, b.gpus), cmp.Compare(a.models, b.models))
	})
	var covered float64
	total := float64(len(pods))
	for i, class := range all {
		if covered >= popular*total/100 {
			all = all[:i]
			break
		}
		covered += class.share
	}
	for i := range all {
		all[i].share = all[i].share / total / (covered / total)
	}
	return &fgd{typical: all, accept: map[string][]bool{}, before: map[*Node]fragmentation{}}
}

// The reasons why a class can not use what is left of a node.
const (
	lacksBoth = iota
	lacksGPU
	lacksCPU
	needsNoGPU
	needsNoGPULacksCPU
	otherModel
	reasons
)

// fragments is the GPU of a node that typical Pods could not use, each class
// weighted by its share: all that is left where the class does not fit, and
// otherwise what is left on GPUs too full for it. The terms are summed by
// reason, as the paper's simulator does: a score is cut to an integer, and
// another order of summing would turn some 50 into 49.
func (f *fgd) fragments(model string, cpu int64, gpu []int64) float64 {
	var left int64
	for _, milli := range gpu {
		left += milli
	}
	accept := f.accepted(model)
	var sums [reasons]float64
	for i := range f.typical {
		class := &f.typical[i]
		if class.gpus == 0 {
			reason := needsNoGPU
			if cpu < class.cpu {
				reason = needsNoGPULacksCPU
			}
			sums[reason] += class.share * float64(left)
			continue
		}
		if !accept[i] {
			sums[otherModel] += class.share * float64(left)
			continue
		}
		var tooFull int64
		enough := 0
		for _, milli := range gpu {
			if milli >= class.milli {
				enough++
			} else {
				tooFull += milli
			}
		}
		switch fits, hasCPU := enough >= class.gpus, cpu >= class.cpu; {
		case fits && hasCPU:
			sums[lacksGPU] += class.share * float64(tooFull)
		case fits:
			sums[lacksCPU] += class.share * float64(left)
		case hasCPU:
			sums[lacksGPU] += class.share * float64(left)
		default:
			sums[lacksBoth] += class.share * float64(left)
		}
	}
	var sum float64
	for _, part := range sums {
		sum += part
	}
	return sum
}

// accepted says which of the typical Pods accept the model.
func (f *fgd) accepted(model string) []bool {
	accept := f.accept[model]
	if accept == nil {
		for _, class := range f.typical {
			accept = append(accept, accepts(class.models, model))
		}
		f.accept[model] = accept
	}
	return accept
}

// Score is 100·sigmoid((F before − F after)/1000), cut to an integer.
func (f *fgd) Score(n *Node, p *Pod) (int64, int) {
	before := f.before[n]
	if before.version != n.Version+1 {
		before = fragmentation{n.Version + 1, f.fragments(n.Model, n.CPU, n.GPU)}
		f.before[n] = before
	}
	score := func(gpus []int) int64 {
		f.scratch = append(f.scratch[:0], n.GPU...)
		for _, g := range gpus {
			f.scratch[g] -= p.GPUMilli
		}
		drop := before.milli - f.fragments(n.Model, n.CPU-p.CPUMilli, f.scratch)
		return int64(1 / (1 + math.Exp(-drop/1000)) * bestScore)
	}
	if p.GPUs != 1 || p.GPUMilli == WholeGPU {
		return score(n.wholeGPUs(p)), -1
	}
	best, bestGPU := int64(0), -1
	for g, left := range n.GPU {
		if left < p.GPUMilli {
			continue
		}
		if s := score([]int{g}); bestGPU < 0 || s > best {
			best, bestGPU = s, g
		}
	}
	return best, bestGPU
}
