package place

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// gpuNode is a node with count healthy devices of 80 and a host with room.
func gpuNode(name string, count int) Node {
	n := Node{Name: name, Host: Host{CPUMilli: 8000, MemoryBytes: 1000, Pods: 10}}
	for i := range count {
		n.Devices = append(n.Devices, Device{Device: device.Device{
			ID: gpu(i), Index: i, Vendor: "example.com", Kind: "gpu", Model: "large", NUMANode: device.UnknownNUMANode,
			Capacity: device.Capacity{MemoryBytes: 80, Multiprocessors: 100},
			Health:   device.Health{State: device.Healthy},
		}})
	}
	return n
}

func newTestCluster(t *testing.T, nodes ...Node) *Cluster {
	t.Helper()
	c, err := FromSnapshot(Snapshot{Nodes: nodes})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func offerOf(t *testing.T, c *Cluster, r Request) Offer {
	t.Helper()
	offers, err := c.Offers(r, 1)
	if err != nil || len(offers) != 1 {
		t.Fatalf("got %v, %v; want one offer", offers, err)
	}
	return offers[0]
}

func wholeDevices(count int) Request {
	return Request{Host: Host{CPUMilli: 1000, Pods: 1}, Groups: []Group{{Count: count}}}
}

func TestCommitAndRelease(t *testing.T) {
	c := newTestCluster(t, gpuNode("a", 2))
	first := offerOf(t, c, wholeDevices(1))
	second := offerOf(t, c, wholeDevices(1))
	if err := c.Commit("first", first); err != nil {
		t.Fatal(err)
	}
	if err := c.Commit("second", second); !errors.Is(err, ErrStale) {
		t.Fatalf("got %v, want ErrStale: both were offered the same device", err)
	}
	if err := c.Commit("second", offerOf(t, c, wholeDevices(1))); err != nil {
		t.Fatal(err)
	}
	if offers, _ := c.Offers(wholeDevices(1), 1); len(offers) != 0 {
		t.Fatalf("got %v from a full node", offers)
	}
	if err := c.Commit("first", first); !errors.Is(err, ErrStale) {
		t.Fatalf("got %v, want ErrStale", err)
	}
	if err := c.Release("first"); err != nil {
		t.Fatal(err)
	}
	if err := c.Release("first"); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v, want ErrUnknown", err)
	}
	if again := offerOf(t, c, wholeDevices(1)); !slices.Equal(again.Parts, first.Parts) {
		t.Fatalf("got %v, want what was given back, %v", again, first)
	}
	if err := c.Hold(Holding{ID: "second", Node: "a"}); !errors.Is(err, ErrExists) {
		t.Fatalf("got %v, want ErrExists", err)
	}
}

func TestOfferStaysGoodWhileOtherNodesChange(t *testing.T) {
	c := newTestCluster(t, gpuNode("a", 1), gpuNode("b", 1))
	offers, err := c.Offers(wholeDevices(1), 2)
	if err != nil || len(offers) != 2 {
		t.Fatalf("got %v, %v", offers, err)
	}
	for _, o := range offers {
		if err := c.Commit(o.Node, o); err != nil {
			t.Error(err)
		}
	}
}

func TestHoldingsOutliveTheirNode(t *testing.T) {
	c := newTestCluster(t, gpuNode("a", 2))
	if err := c.Commit("pod", offerOf(t, c, wholeDevices(2))); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveNode("a"); err != nil {
		t.Fatal(err)
	}
	if err := c.RemoveNode("a"); !errors.Is(err, ErrUnknown) {
		t.Fatalf("got %v, want ErrUnknown", err)
	}
	// It comes back with a device less, and later with all.
	for _, count := range []int{1, 2} {
		if err := c.SetNode(gpuNode("a", count)); err != nil {
			t.Fatal(err)
		}
		if offers, _ := c.Offers(wholeDevices(1), 1); len(offers) != 0 {
			t.Fatalf("%d devices: got %v, but all are held", count, offers)
		}
	}
	if err := c.Release("pod"); err != nil {
		t.Fatal(err)
	}
	if got := offerOf(t, c, wholeDevices(2)); len(got.Parts) != 2 {
		t.Fatalf("got %v, want both devices", got)
	}
}

func TestOvercommitIsRecordedNotHidden(t *testing.T) {
	c := newTestCluster(t, gpuNode("a", 1))
	for _, id := range []string{"one", "two"} {
		part := Part{Device: gpu(0), Amount: Amount{80, WholeCompute}}
		if err := c.Hold(Holding{ID: id, Node: "a", Parts: []Part{part}}); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Release("one"); err != nil {
		t.Fatal(err)
	}
	if offers, _ := c.Offers(wholeDevices(1), 1); len(offers) != 0 {
		t.Fatalf("got %v, but two still holds it", offers)
	}
}

// TestSameInputSameAnswer builds the cluster in another order.
func TestSameInputSameAnswer(t *testing.T) {
	random := rand.New(rand.NewPCG(31, 32))
	for range 300 {
		nodes := randomCluster(random)
		requests := []Request{randomRequest(random), randomRequest(random), randomRequest(random)}
		var want []Offer
		for round := range 3 {
			c := newTestCluster(t, nodes...)
			for range 5 {
				for _, r := range requests {
					if err := c.Learn(r); err != nil {
						t.Fatal(err)
					}
				}
			}
			got, err := c.Offers(requests[0], 3)
			if err != nil {
				t.Fatal(err)
			}
			for i := range got {
				got[i].version = 0
			}
			if round == 0 {
				want = got
			} else if !reflect.DeepEqual(got, want) {
				t.Fatalf("got %v, before %v", got, want)
			}
			random.Shuffle(len(nodes), func(i, j int) { nodes[i], nodes[j] = nodes[j], nodes[i] })
		}
	}
}

func TestNodeIsRefused(t *testing.T) {
	n := gpuNode("a", 1)
	n.Devices = append(n.Devices, n.Devices[0])
	if err := NewCluster().SetNode(n); err == nil {
		t.Error("a device that is listed twice was accepted")
	}
}

func TestValidate(t *testing.T) {
	for _, r := range []Request{
		{Host: Host{CPUMilli: -1}},
		{Groups: []Group{{Count: 0}}},
		{Groups: []Group{{Count: 1, Each: Amount{MemoryBytes: -1}}}},
		{Groups: []Group{{Count: 1, Each: Amount{ComputeMilli: 1001}}}},
		{Groups: []Group{{Count: 1, Links: "Maybe"}}},
		{Groups: []Group{{Count: 1, Rank: "Best"}}},
		{Groups: []Group{{Count: 1, Selector: Selector{Name: "x"}}}},
		{Groups: []Group{{Count: 1, Selector: Selector{Match: large.Match}}}},
	} {
		c := newTestCluster(t, gpuNode("a", 1))
		if _, err := c.Offers(r, 1); err == nil {
			t.Errorf("Offers accepted %+v", r)
		}
		if _, err := c.Explain(r); err == nil {
			t.Errorf("Explain accepted %+v", r)
		}
		if err := c.Learn(r); err == nil {
			t.Errorf("Learn accepted %+v", r)
		}
	}
}

func TestRanks(t *testing.T) {
	small, big, busy := gpuNode("small", 2), gpuNode("big", 2), gpuNode("busy", 2)
	small.Devices[1].Capacity.MemoryBytes = 16
	big.Devices[1].Capacity.MemoryBytes = 141
	for _, n := range []Node{small, big} {
		n.Devices[0].Taken = Amount{8, 100}
	}
	busy.Devices[0].Taken, busy.Devices[1].Taken = Amount{40, 600}, Amount{8, 100}
	part := Amount{MemoryBytes: 8, ComputeMilli: 100}
	for _, test := range []struct {
		rank Rank
		want string
	}{
		{MostPowerful, "big [gpu-1]"},
		{SmallestFit, "small [gpu-1]"},
		{Spread, "small [gpu-1]"}, // big is used as little, but has more left over
		{Pack, "busy [gpu-0]"},
	} {
		c := newTestCluster(t, small, big, busy)
		got := offerOf(t, c, Request{Groups: []Group{{Count: 1, Each: part, Rank: test.rank}}})
		if got.String() != test.want {
			t.Errorf("%q: got %v, want %s", test.rank, got, test.want)
		}
	}
}

func BenchmarkOffers(b *testing.B) {
	for _, nodes := range []int{500, 5000} {
		c := NewCluster()
		for i := range nodes {
			if err := c.SetNode(gpuNode(fmt.Sprintf("node-%d", i), 8)); err != nil {
				b.Fatal(err)
			}
		}
		requests := []Request{
			wholeDevices(1), wholeDevices(4),
			{Host: Host{CPUMilli: 500, Pods: 1}, Groups: []Group{{Count: 1, Each: Amount{20, 250}}}},
			{Host: Host{CPUMilli: 500, Pods: 1}, Groups: []Group{{Count: 1, Each: Amount{30, 400}, Selector: large}}},
		}
		b.Run(fmt.Sprintf("%d-nodes", nodes), func(b *testing.B) {
			i := 0
			for b.Loop() {
				r := requests[i%len(requests)]
				if err := c.Learn(r); err != nil {
					b.Fatal(err)
				}
				offers, err := c.Offers(r, 32)
				if err != nil {
					b.Fatal(err)
				}
				if len(offers) > 0 {
					if err := c.Commit(fmt.Sprint(i), offers[0]); err != nil {
						b.Fatal(err)
					}
				}
				if i >= nodes {
					_ = c.Release(fmt.Sprint(i - nodes))
				}
				i++
			}
		})
	}
}
