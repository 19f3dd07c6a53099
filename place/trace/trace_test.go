package trace

import (
	"context"
	"fmt"
	"math"
	"math/rand"
	"slices"
	"testing"
)

// smallTrace makes a few machines of two models and Pods of many sizes.
func smallTrace(seed int64) *Trace {
	random := rand.New(rand.NewSource(seed))
	t := &Trace{}
	for i := range 12 {
		m := Machine{Name: fmt.Sprintf("machine-%02d", i), CPUMilli: 32_000, MemoryMiB: 65536, GPUs: 4, Model: "A"}
		if i%3 == 0 {
			m.GPUs, m.Model = 8, "B"
		}
		t.Machines = append(t.Machines, m)
	}
	for i := range 120 {
		p := Pod{
			Name: fmt.Sprintf("pod-%03d", i), CPUMilli: 1000 * (1 + random.Int63n(6)), MemoryMiB: 1024,
			GPUs: 1, GPUMilli: []int64{250, 470, 810, 1000}[random.Intn(4)],
			Created: random.Int63n(10_000),
		}
		p.Deleted = p.Created + 60 + random.Int63n(5000)
		switch random.Intn(8) {
		case 0:
			p.GPUs, p.GPUMilli = 0, 0
		case 1:
			p.GPUs, p.GPUMilli = 4, WholeGPU
		case 2:
			p.Models = "B"
		}
		t.Pods = append(t.Pods, p)
	}
	return t
}

var everyPolicy = map[string]Make{
	"Random": Random, "DotProd": DotProd, "GpuClustering": GpuClustering, "GpuPacking": GpuPacking,
	"BestFit": BestFit, "FGD": FGD, "Kilter": Kilter, "KilterBatch": KilterBatch, "KilterMoves": KilterMoves,
}

// TestRun: no policy cheats (the run would fail), each gives the same answer
// again, and none exceeds the bound.
func TestRun(t *testing.T) {
	for seed := range int64(5) {
		trace := smallTrace(seed)
		at100, at130 := trace.Bound(seed, 100), trace.Bound(seed, 130)
		for name, make := range everyPolicy {
			first, err := trace.Run(context.Background(), make, seed)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			again, err := trace.Run(context.Background(), make, seed)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if *first != *again {
				t.Errorf("%s gives another answer the second time", name)
			}
			if got := first.At(100); got > at100+1e-6 || got < 50 {
				t.Errorf("%s: %.2f %% allocated at 100, the bound is %.2f", name, got, at100)
			}
			if got := first.At(130); got > at130+1e-6 {
				t.Errorf("%s: %.2f %% allocated at 130, the bound is %.2f", name, got, at130)
			}
		}
	}
}

func TestRunStops(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := smallTrace(1).Run(ctx, FGD, 1); err == nil {
		t.Error("a run that was cancelled has a result")
	}
}

func TestCheck(t *testing.T) {
	trace := smallTrace(1)
	if err := (&Trace{Machines: trace.Machines}).Check(); err == nil {
		t.Error("a trace without Pods was accepted")
	}
	if err := (&Trace{Pods: trace.Pods}).Check(); err == nil {
		t.Error("a trace without machines was accepted")
	}
}

func TestArrivals(t *testing.T) {
	trace := smallTrace(1)
	asked := func(pods []*Pod) (sum int64) {
		for _, p := range pods {
			sum += p.Milli()
		}
		return sum
	}
	const capacity = (8*4 + 4*8) * WholeGPU
	_, few := arrivals(trace.Machines, trace.Pods[:20], rand.New(rand.NewSource(1)))
	if got := asked(few); got > 1.3*capacity+3*WholeGPU || got < 1.25*capacity {
		t.Errorf("few Pods were repeated up to %d of %d", got, capacity)
	}
	_, many := arrivals(trace.Machines, slices.Repeat(trace.Pods, 5), rand.New(rand.NewSource(1)))
	if got := asked(many); got > 1.3*capacity || got < 1.2*capacity {
		t.Errorf("many Pods were thinned out to %d of %d", got, capacity)
	}
	ordered, _ := arrivals(trace.Machines, trace.Pods, rand.New(rand.NewSource(1)))
	other, _ := arrivals(trace.Machines, trace.Pods, rand.New(rand.NewSource(2)))
	if slices.Equal(ordered, other) {
		t.Error("the order of machines does not depend on the seed")
	}
}

func TestCurve(t *testing.T) {
	var c Curve
	c.add(996, 900, 1000) // 99.6 % falls to 100
	c.add(1004, 910, 1000)
	c.add(1020, 950, 1000)
	if got := c.At(100); got != 90.5 {
		t.Errorf("at 100: %v, want the mean of 90 and 91", got)
	}
	if got := c.At(101); math.Abs(got-(90+91+95)/3.0) > 1e-9 {
		t.Errorf("at 101: %v, want the mean of the neighbours", got)
	}
}

func TestPutRefusesCheats(t *testing.T) {
	s := newState([]Machine{{"m", 10_000, 100, 2, "A"}})
	n := s.Nodes[0]
	for _, test := range []struct {
		name string
		pod  Pod
		gpus []int
	}{
		{"CPU", Pod{CPUMilli: 10_001}, nil},
		{"memory", Pod{MemoryMiB: 101}, nil},
		{"model", Pod{GPUs: 1, GPUMilli: 1000, Models: "B|C"}, []int{0}},
		{"the same GPU twice", Pod{GPUs: 2, GPUMilli: 1000}, []int{1, 1}},
		{"too few GPUs", Pod{GPUs: 2, GPUMilli: 1000}, []int{1}},
	} {
		if err := s.put(&test.pod, Placement{Node: n, GPUs: test.gpus}); err == nil {
			t.Errorf("%s: accepted", test.name)
		}
	}
	half := &Pod{GPUs: 1, GPUMilli: 600}
	if err := s.put(half, Placement{Node: n, GPUs: []int{0}}); err != nil {
		t.Fatal(err)
	}
	if err := s.put(half, Placement{Node: n, GPUs: []int{0}}); err == nil {
		t.Error("a GPU was given more than once")
	}
	s.remove(half, Placement{Node: n, GPUs: []int{0}})
	if n.GPU[0] != WholeGPU || n.CPU != 10_000 || n.Slots != maxPods || len(n.affinities) != 0 {
		t.Errorf("not all came back: %+v", n)
	}
}
