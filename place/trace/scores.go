package trace

import "slices"

// The largest machine of the trace, to which the scores are normalised.
const (
	largestCPU = 128_000
	largestGPU = 8_000
	bestScore  = 100
)

// dotProduct prefers the node whose free CPU and GPU, as a vector, has the
// smallest product with what the Pod asks for:
// 100·(1 − ½·(cpu·free CPU + gpu·free GPU)), all in parts of the largest.
type dotProduct struct{}

func (dotProduct) Score(n *Node, p *Pod) (int64, int) {
	product := float64(n.CPU)/largestCPU*(float64(p.CPUMilli)/largestCPU) +
		float64(n.Left())/largestGPU*(float64(p.Milli())/largestGPU)
	return int64(bestScore * (1 - product/2)), n.fullestGPU(p)
}

// bestFit prefers the node with the least left over:
// 100·(1 − ½·CPU left − ½·GPU left), in parts of the largest.
type bestFit struct{}

func (bestFit) Score(n *Node, p *Pod) (int64, int) {
	left := float64(n.CPU-p.CPUMilli)/largestCPU*0.5 + float64(n.Left()-p.Milli())/largestGPU*0.5
	return int64((1 - left) * bestScore), n.fullestGPU(p)
}

// gpuClustering keeps requests of one size together: best are nodes with that
// size only, then nodes with that size among others, then empty ones, then
// the rest; inside each quarter of the scale the fuller node is better.
type gpuClustering struct{}

func (gpuClustering) Score(n *Node, p *Pod) (int64, int) {
	if p.GPUs == 0 {
		return 0, -1
	}
	const quarter = bestScore / 4
	score := quarter * (largestGPU - n.Left()) / largestGPU
	switch same := n.affinities[affinity(p)] > 0; {
	case same && len(n.affinities) == 1:
		score += 3 * quarter
	case same:
		score += 2 * quarter
	case len(n.affinities) == 0:
		score += quarter
	}
	return score, n.fullestGPU(p)
}

// gpuPacking prefers GPUs that are in use already, then free GPUs of nodes in
// use, then empty nodes, the smallest first.
type gpuPacking struct{}

func (gpuPacking) Score(n *Node, p *Pod) (int64, int) {
	if p.GPUs == 0 {
		return 0, -1
	}
	gpu := n.fullestGPU(p)
	free := int64(n.Free())
	if free == int64(len(n.GPU)) {
		return max(bestScore/3-free, free), gpu
	}
	fullestFirst := slices.Clone(n.GPU)
	slices.Sort(fullestFirst)
	var freeUsed, left int64
	needed := p.GPUs
	for _, milli := range fullestFirst {
		if needed == 0 || milli < p.GPUMilli {
			continue
		}
		needed--
		left += milli * 100 / WholeGPU
		if milli == WholeGPU {
			freeUsed++
		}
	}
	if freeUsed > 0 {
		return max(bestScore/2-freeUsed, bestScore/3), gpu
	}
	return max(bestScore-left/10, bestScore/2), gpu
}
