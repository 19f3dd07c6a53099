package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// randomCluster makes a few small nodes with devices of two kinds, some sick,
// some partly taken.
func randomCluster(random *rand.Rand) []Node {
	nodes := make([]Node, 1+random.IntN(3))
	for i := range nodes {
		devices := randomNode(random, 1+random.IntN(4))
		n := Node{
			Name: fmt.Sprintf("node-%d", i),
			Host: Host{CPUMilli: 1000 * random.Int64N(9), MemoryBytes: random.Int64N(9), Pods: random.Int64N(9)},
		}
		for _, d := range devices {
			d.Model, d.Capacity = "small", device.Capacity{MemoryBytes: 16, Multiprocessors: 10}
			if random.IntN(2) == 0 {
				d.Model, d.Capacity = "large", device.Capacity{MemoryBytes: 80, Multiprocessors: 100}
			}
			d.Health.State = device.Healthy
			if random.IntN(8) == 0 {
				d.Health.State = device.Unhealthy
			}
			taken := Amount{}
			if random.IntN(3) == 0 {
				taken = Amount{random.Int64N(16), 100 * random.Int64N(10)}
			}
			n.Devices = append(n.Devices, Device{d, taken})
		}
		nodes[i] = n
	}
	return nodes
}

var large = Selector{Name: "large", Match: func(d device.Device) bool { return d.Model == "large" }}

func randomRequest(random *rand.Rand) Request {
	r := Request{Host: Host{CPUMilli: 1000 * random.Int64N(5), MemoryBytes: random.Int64N(5), Pods: 1}}
	for range random.IntN(3) {
		g := Group{
			Name:  fmt.Sprintf("group-%d", len(r.Groups)),
			Count: 1 + random.IntN(3),
			Links: []LinkWish{LinksIgnored, LinksPreferred, LinksRequired}[random.IntN(3)],
			Rank:  []Rank{Pack, Spread, MostPowerful, SmallestFit}[random.IntN(4)],
		}
		if random.IntN(2) == 0 {
			g.Each = Amount{random.Int64N(20), 100 * (1 + random.Int64N(9))}
		}
		if random.IntN(3) == 0 {
			g.Selector = large
		}
		r.Groups = append(r.Groups, g)
	}
	return r
}

// everyWay finds all ways to serve the request on a node, by trying them.
func everyWay(n *Node, r *Request) [][]Part {
	if n.Host.CPUMilli < r.Host.CPUMilli || n.Host.MemoryBytes < r.Host.MemoryBytes || n.Host.Pods < r.Host.Pods {
		return nil
	}
	room := make([]Amount, len(n.Devices))
	for i := range n.Devices {
		room[i] = n.Devices[i].capacity().plus(n.Devices[i].Taken, -1)
	}
	var ways [][]Part
	var walk func(group, from int, members []int, parts []Part)
	walk = func(group, from int, members []int, parts []Part) {
		if group == len(r.Groups) {
			ways = append(ways, slices.Clone(parts))
			return
		}
		g := &r.Groups[group]
		if len(members) == g.Count {
			walk(group+1, 0, nil, parts)
			return
		}
		for i := from; i < len(n.Devices); i++ {
			d := &n.Devices[i]
			take := g.Each
			if g.whole() {
				take = d.capacity()
			}
			linked := true
			for _, j := range members {
				linked = linked && slices.ContainsFunc(d.Links, func(l device.Link) bool { return l.Peer == n.Devices[j].ID })
			}
			if !d.Health.OK() || g.Selector.Match != nil && !g.Selector.Match(d.Device) ||
				!room[i].holds(take) || g.whole() && room[i] != take || g.Links == LinksRequired && !linked {
				continue
			}
			room[i] = room[i].plus(take, -1)
			walk(group, i+1, append(slices.Clone(members), i), append(slices.Clone(parts), Part{g.Name, d.ID, take}))
			room[i] = room[i].plus(take, 1)
		}
	}
	walk(0, 0, nil, nil)
	return ways
}

func sameParts(a, b []Part) bool {
	order := func(x, y Part) int {
		return strings.Compare(x.Group+string(x.Device), y.Group+string(y.Device))
	}
	a, b = slices.Clone(a), slices.Clone(b)
	slices.SortFunc(a, order)
	slices.SortFunc(b, order)
	return slices.Equal(a, b)
}

// wayBid rates a way as the cluster does.
func wayBid(c *Cluster, n *node, r *Request, parts []Part) bid {
	var found []taken
	room := slices.Clone(n.room)
	for _, part := range parts {
		group := slices.IndexFunc(r.Groups, func(g Group) bool { return g.Name == part.Group })
		at := n.find(part.Device)
		found = append(found, taken{group, at, part.Amount})
		room[at] = room[at].plus(part.Amount, -1)
	}
	after := n.free.plus(r.Host, -1)
	o := &option{taken: found, row: c.mix.Row(n.stateWith(after, room))}
	o.links, o.rank = n.linksOf(r.Groups, found), n.ranksOf(r.Groups, found)
	o.left = c.leftover(n, after, o.row)
	return bid{n, o, c.mix.Worth(o.row, n.shape) - c.mix.Worth(n.row, n.shape)}
}

// TestOffersAgainstBruteForce: the nodes that are offered are exactly those
// that can serve the request, every offer is one of the ways to do so, and for
// one group no other way has better links or a better rank; for one device no
// other way is better at all.
func TestOffersAgainstBruteForce(t *testing.T) {
	random := rand.New(rand.NewPCG(21, 22))
	var served, refused int
	for round := range 4000 {
		nodes := randomCluster(random)
		c, err := FromSnapshot(Snapshot{Nodes: nodes})
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if err := c.Learn(randomRequest(random)); err != nil {
				t.Fatal(err)
			}
		}
		r := randomRequest(random)
		offers, err := c.Offers(r, len(nodes))
		if err != nil {
			t.Fatal(err)
		}
		reasons, err := c.Explain(r)
		if err != nil {
			t.Fatal(err)
		}
		var bids []bid
		for i := range nodes {
			n := &nodes[i]
			ways := everyWay(n, &r)
			at := slices.IndexFunc(offers, func(o Offer) bool { return o.Node == n.Name })
			if (at >= 0) != (len(ways) > 0) {
				t.Fatalf("round %d: %s offered: %v, ways: %d\nrequest %+v\nnode %+v", round, n.Name, at >= 0, len(ways), r, n)
			}
			explained := slices.ContainsFunc(reasons, func(why Reason) bool { return slices.Contains(why.Nodes, n.Name) })
			if explained == (at >= 0) {
				t.Fatalf("round %d: %s offered: %v, but explained: %v", round, n.Name, at >= 0, explained)
			}
			if at < 0 {
				refused++
				continue
			}
			served++
			if !slices.ContainsFunc(ways, func(way []Part) bool { return sameParts(way, offers[at].Parts) }) {
				t.Fatalf("round %d: %v is no way to serve %+v on %+v", round, offers[at], r, n)
			}
			for _, way := range ways {
				bids = append(bids, wayBid(c, c.byName[n.Name], &r, way))
			}
		}
		if len(offers) == 0 || len(r.Groups) > 1 {
			continue
		}
		best := wayBid(c, c.byName[offers[0].Node], &r, offers[0].Parts)
		for _, other := range bids {
			if len(r.Groups) == 1 && r.Groups[0].Count > 1 {
				// Of several devices only links and rank are exact.
				other.gain, other.left, other.node = best.gain, best.left, best.node
			}
			if compareBids(&other, &best) < 0 {
				t.Fatalf("round %d: %v is worse than %v of %s\nrequest %+v", round, offers[0], other.taken, other.node.name, r)
			}
		}
	}
	if served < 1000 || refused < 1000 {
		t.Errorf("%d served, %d refused: the test sees too little", served, refused)
	}
}
