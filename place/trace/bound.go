package trace

import (
	"cmp"
	"math/rand"
	"slices"
)

// Bound is an upper bound on what any policy can have allocated, in percent of
// all GPU, while arrived percent had been asked for in the run of a seed. It
// holds even for one that knows the future and refuses Pods at will.
//
// It is the value of a linear program in which Pods may be cut into pieces and
// all machines of a kind throw their CPU and GPUs together; memory is free.
// What stays is that shares of a GPU must fit on it: every GPU follows a
// pattern, a set of shares that fit on one GPU, or a whole. There are too many
// patterns to list, so they are found as they are needed: the best pattern at
// the current prices solves a knapsack problem.
func (t *Trace) Bound(seed int64, arrived int) float64 {
	machines, pods := arrivals(t.Machines, t.Pods, rand.New(rand.NewSource(seed)))
	var capacity, sum int64
	for _, m := range machines {
		capacity += int64(m.GPUs) * WholeGPU
	}
	counts := map[ask]float64{}
	for _, p := range pods {
		// Half a percent more belongs to the same point of the curve.
		if sum += p.Milli(); float64(sum) > (float64(arrived)+0.5)/100*float64(capacity) {
			break
		}
		if p.GPUs > 0 {
			counts[ask{cpu: p.CPUMilli, milli: p.GPUMilli, gpus: p.GPUs, models: p.Models}]++
		}
	}
	r := newRelaxation(machines, counts)
	return min(100, 100*r.solve()/float64(capacity))
}

// relaxation is the problem: kinds of machines and kinds of requests. Its rows
// are the requests of each kind, then for each kind of machine the GPUs and
// the CPU, the latter in what goes with one GPU.
type relaxation struct {
	kinds []machineKind
	asks  []ask
	limit []float64 // by row
	fits  [][]int   // by kind of machine: the asks that fit on it
	unit  int64     // all sizes are multiples of it
}

// machineKind is all machines that are alike.
type machineKind struct {
	machine Machine // one of them, without its name
	number  float64
}

func newRelaxation(machines []Machine, counts map[ask]float64) *relaxation {
	r := &relaxation{unit: WholeGPU}
	for _, m := range machines {
		m.Name, m.MemoryMiB = "", 0
		at := slices.IndexFunc(r.kinds, func(k machineKind) bool { return k.machine == m })
		if at < 0 {
			at = len(r.kinds)
			r.kinds = append(r.kinds, machineKind{machine: m})
		}
		r.kinds[at].number++
	}
	for a := range counts {
		r.asks = append(r.asks, a)
		for b := a.milli; b != 0; {
			r.unit, b = b, r.unit%b
		}
	}
	slices.SortFunc(r.asks, func(a, b ask) int {
		return cmp.Or(cmp.Compare(a.cpu, b.cpu), cmp.Compare(a.milli, b.milli), cmp.Compare(a.gpus, b.gpus),
			cmp.Compare(a.models, b.models))
	})
	for _, a := range r.asks {
		r.limit = append(r.limit, counts[a])
	}
	for k := range r.kinds {
		m := &r.kinds[k].machine
		gpus := r.kinds[k].number * float64(m.GPUs)
		r.limit = append(r.limit, gpus, gpus)
		var fits []int
		for i, a := range r.asks {
			if m.GPUs >= a.gpus && m.CPUMilli >= a.cpu && accepts(a.models, m.Model) {
				fits = append(fits, i)
			}
		}
		r.fits = append(r.fits, fits)
	}
	return r
}

// cpuPart is the CPU of one request on a kind of machine, for each of its
// GPUs, in what goes with one GPU of the machine.
func (r *relaxation) cpuPart(ask, kind int) float64 {
	a, m := &r.asks[ask], &r.kinds[kind].machine
	return float64(a.cpu) / float64(m.CPUMilli) * float64(m.GPUs) / float64(a.gpus)
}

// pattern is what one GPU of a kind of machine holds: requests, with repeats.
// A request of several GPUs counts a part on each.
type pattern struct {
	kind int
	asks []int
}

// column is the pattern's entries by row, and its value.
func (r *relaxation) column(p pattern) (column []float64, value float64) {
	column = make([]float64, len(r.limit))
	row := len(r.asks) + 2*p.kind
	column[row] = 1
	for _, i := range p.asks {
		column[i] += 1 / float64(r.asks[i].gpus)
		column[row+1] += r.cpuPart(i, p.kind)
		value += float64(r.asks[i].milli)
	}
	return column, value
}

// bestPattern is the pattern of the highest value at the given prices of the
// rows, the price of the GPU itself not counted: an unbounded knapsack of one
// GPU.
func (r *relaxation) bestPattern(kind int, prices []float64) (pattern, float64) {
	cpuPrice := prices[len(r.asks)+2*kind+1]
	size := int(WholeGPU / r.unit)
	best := make([]float64, size+1) // by what is left
	from := make([]int, size+1)     // the ask that was put last, or -1
	worth := make([]float64, len(r.fits[kind]))
	for f, i := range r.fits[kind] {
		a := &r.asks[i]
		worth[f] = float64(a.milli) - prices[i]/float64(a.gpus) - cpuPrice*r.cpuPart(i, kind)
	}
	for used := 1; used <= size; used++ {
		best[used], from[used] = best[used-1], -1
		for f, i := range r.fits[kind] {
			units := int(r.asks[i].milli / r.unit)
			if units <= used && worth[f] > 0 && best[used-units]+worth[f] > best[used] {
				best[used], from[used] = best[used-units]+worth[f], i
			}
		}
	}
	p := pattern{kind: kind}
	for used := size; used > 0; {
		if i := from[used]; i >= 0 {
			p.asks = append(p.asks, i)
			used -= int(r.asks[i].milli / r.unit)
		} else {
			used--
		}
	}
	return p, best[size]
}

// bound is the value of the dual: whatever the prices, no policy gets more.
func (r *relaxation) bound(prices []float64) float64 {
	var sum float64
	prices = slices.Clone(prices)
	for row := range prices {
		prices[row] = max(0, prices[row])
	}
	for row, price := range prices {
		sum += price * r.limit[row]
	}
	for k := range r.kinds {
		row := len(r.asks) + 2*k
		_, value := r.bestPattern(k, prices)
		sum += max(0, value-prices[row]) * r.limit[row]
	}
	return sum
}
