package trace

import (
	"math"
	"testing"
)

// nodeWith is a node of the largest kind with the given left on its GPUs.
func nodeWith(cpu int64, gpu ...int64) *Node {
	s := newState([]Machine{{"m", 128_000, 1 << 20, len(gpu), "A"}})
	n := s.Nodes[0]
	n.CPU = cpu
	copy(n.GPU, gpu)
	return n
}

func TestScores(t *testing.T) {
	share := &Pod{CPUMilli: 12_800, GPUs: 1, GPUMilli: 400}
	two := &Pod{CPUMilli: 12_800, GPUs: 2, GPUMilli: WholeGPU}
	cpuOnly := &Pod{CPUMilli: 12_800}
	for _, test := range []struct {
		name   string
		scorer Scorer
		node   *Node
		pod    *Pod
		score  int64
		gpu    int
	}{
		// 1 − ½·(½·0.1 + ¼·0.05) = 0.96875
		{"dot product", dotProduct{}, nodeWith(64_000, 1000, 1000), share, 96, 0},
		// 1 − ½·0.4 − ½·0.2 = 0.7
		{"best fit", bestFit{}, nodeWith(64_000, 1000, 600, 400), share, 70, 2},
		{"packing: an empty node", gpuPacking{}, nodeWith(64_000, 1000, 1000), two, 31, 0},
		{"packing: free GPUs of a node in use", gpuPacking{}, nodeWith(64_000, 400, 1000, 1000), two, 48, 1},
		{"packing: a GPU in use", gpuPacking{}, nodeWith(64_000, 600, 1000), share, 94, 0},
		{"packing: no GPU asked for", gpuPacking{}, nodeWith(64_000, 600), cpuOnly, 0, -1},
		{"clustering: an empty node", gpuClustering{}, nodeWith(64_000, 1000, 1000), share, 25 + 18, 0},
		{"clustering: no GPU asked for", gpuClustering{}, nodeWith(64_000, 600), cpuOnly, 0, -1},
	} {
		score, gpu := test.scorer.Score(test.node, test.pod)
		if score != test.score || gpu != test.gpu {
			t.Errorf("%s: got %d on GPU %d, want %d on %d", test.name, score, gpu, test.score, test.gpu)
		}
	}
}

func TestClusteringKeepsSizesTogether(t *testing.T) {
	share := &Pod{GPUs: 1, GPUMilli: 400}
	score := func(affinities ...string) int64 {
		n := nodeWith(64_000, 600, 1000)
		for _, a := range affinities {
			n.affinities[a]++
		}
		s, _ := gpuClustering{}.Score(n, share)
		return s
	}
	if a, b, c, d := score("share"), score("share", "1"), score(), score("1"); a <= b || b <= c || c <= d {
		t.Errorf("got %d, %d, %d, %d, want them to fall", a, b, c, d)
	}
}

func TestFGD(t *testing.T) {
	var pods []Pod
	add := func(count int, p Pod) {
		for range count {
			pods = append(pods, p)
		}
	}
	add(50, Pod{CPUMilli: 4000, GPUs: 1, GPUMilli: 1000})
	add(30, Pod{CPUMilli: 2000, GPUs: 1, GPUMilli: 400})
	add(20, Pod{CPUMilli: 1000})
	add(1, Pod{CPUMilli: 9999}) // rare: not among the typical ones
	f := newFGD(pods)
	if len(f.typical) != 3 || math.Abs(f.typical[0].share-0.5) > 1e-12 {
		t.Fatalf("typical Pods are %+v", f.typical)
	}
	// 300 and 1000 are left. Whole Pods can not use the 300, nor can those of
	// 400; Pods without GPU can use none of it.
	want := 0.5*300 + 0.3*300 + 0.2*1300
	if got := f.fragments("A", 64_000, []int64{300, 1000}); math.Abs(got-want) > 1e-9 {
		t.Errorf("fragments are %v, want %v", got, want)
	}
	// Without CPU for the whole ones, all is lost to them.
	want = 0.5*1300 + 0.3*300 + 0.2*1300
	if got := f.fragments("A", 3000, []int64{300, 1000}); math.Abs(got-want) > 1e-9 {
		t.Errorf("fragments are %v, want %v", got, want)
	}
	// A share goes to the GPU that is in use: it leaves the other whole.
	if _, gpu := f.Score(nodeWith(64_000, 1000, 500), &pods[60]); gpu != 1 {
		t.Errorf("the share went to GPU %d", gpu)
	}
}

// TestMoves: a Pod that needs the only B finds it taken by one that does not.
func TestMoves(t *testing.T) {
	s := newState([]Machine{{"a", 8_000, 100, 1, "A"}, {"b", 8_000, 100, 1, "B"}})
	m := KilterMoves(nil, nil).(*mover)
	anywhere := &Pod{Name: "anywhere", CPUMilli: 1000, GPUs: 1, GPUMilli: WholeGPU}
	onlyB := &Pod{Name: "only-b", CPUMilli: 1000, GPUs: 1, GPUMilli: WholeGPU, Models: "B"}
	m.Learn(s, anywhere)
	at := Placement{Node: s.Nodes[1], GPUs: []int{0}}
	m.put(anywhere, at)
	m.on[at.Node] = append(m.on[at.Node], resident{anywhere, at})
	if err := s.put(anywhere, at); err != nil {
		t.Fatal(err)
	}

	m.Learn(s, onlyB)
	got, ok := m.Place(s, onlyB)
	if !ok || got.Node != s.Nodes[1] || len(got.Moves) != 1 || got.Moves[0].To.Node != s.Nodes[0] {
		t.Fatalf("got %+v, %v; want b after a move to a", got, ok)
	}
	if err := s.put(onlyB, got); err != nil {
		t.Fatal(err)
	}
	m.Learn(s, onlyB)
	if got, ok := m.Place(s, onlyB); ok {
		t.Errorf("got %+v, but both machines are full", got)
	}
	if len(m.on[s.Nodes[0]]) != 1 || len(m.on[s.Nodes[1]]) != 1 {
		t.Errorf("the books say %v", m.on)
	}
}

// TestBatch: all three fit only if the two small ones share a machine.
func TestBatch(t *testing.T) {
	s := newState([]Machine{{"a", 8_000, 100, 2, "A"}, {"b", 8_000, 100, 2, "A"}})
	b := KilterBatch(nil, nil).(*batch)
	one := &Pod{Name: "one", CPUMilli: 1000, GPUs: 1, GPUMilli: WholeGPU}
	two := &Pod{Name: "two", CPUMilli: 1000, GPUs: 2, GPUMilli: WholeGPU}
	pods := []*Pod{one, one, two}
	for _, p := range pods {
		b.Learn(s, p)
	}
	places := b.PlaceAll(s, pods)
	for i, p := range pods {
		if places[i].Node == nil {
			t.Fatalf("%s was refused: %+v", p.Name, places)
		}
		if err := s.put(p, places[i]); err != nil {
			t.Fatal(err)
		}
	}
}
