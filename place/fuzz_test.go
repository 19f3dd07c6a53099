package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

// FuzzCommitRelease walks through commits, releases and changes of nodes, and
// keeps books of its own: nothing is given twice, everything comes back, and
// the index answers like one that was built anew.
func FuzzCommitRelease(f *testing.F) {
	f.Add(uint64(1), []byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9})
	f.Add(uint64(2), []byte("commit commit commit release node commit learn release"))
	f.Add(uint64(3), []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, seed uint64, steps []byte) {
		random := rand.New(rand.NewPCG(seed, 41))
		nodes := randomCluster(random)
		c := newTestCluster(t, nodes...)
		var held []string
		learnt := false
		for i, step := range steps[:min(len(steps), 200)] {
			switch step % 8 {
			default:
				r := randomRequest(random)
				offers, err := c.Offers(r, 1)
				if err != nil {
					t.Fatal(err)
				}
				if len(offers) == 0 {
					break
				}
				id := fmt.Sprint(i)
				if err := c.Commit(id, offers[0]); err != nil {
					t.Fatal(err)
				}
				held = append(held, id)
			case 1, 2:
				if len(held) == 0 {
					break
				}
				at := random.IntN(len(held))
				if err := c.Release(held[at]); err != nil {
					t.Fatal(err)
				}
				held = slices.Delete(held, at, at+1)
			case 3:
				learnt = true
				if err := c.Learn(randomRequest(random)); err != nil {
					t.Fatal(err)
				}
			case 4:
				n := nodes[random.IntN(len(nodes))]
				if random.IntN(2) == 0 && c.byName[n.Name] != nil {
					if err := c.RemoveNode(n.Name); err != nil {
						t.Fatal(err)
					}
				} else if err := c.SetNode(n); err != nil {
					t.Fatal(err)
				}
			}
			checkBooks(t, c, nodes)
			if !learnt {
				checkRebuilt(t, c, randomRequest(random))
			}
		}
		for _, n := range nodes {
			if err := c.SetNode(n); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range held {
			if err := c.Release(id); err != nil {
				t.Fatal(err)
			}
		}
		fresh := newTestCluster(t, nodes...)
		for _, n := range fresh.nodes {
			same := c.byName[n.name]
			if same.free != n.free || !slices.Equal(same.room, n.room) || same.used != 0 {
				t.Fatalf("%s has %+v and %v after all was released, before %+v and %v",
					n.name, same.free, same.room, n.free, n.room)
			}
		}
	})
}

// checkBooks adds up the holdings and compares with what the nodes say.
func checkBooks(t *testing.T, c *Cluster, nodes []Node) {
	t.Helper()
	s := c.Snapshot()
	for i := range nodes {
		known := c.byName[nodes[i].Name]
		if known == nil {
			continue
		}
		free := nodes[i].Host
		room := map[string]Amount{}
		for j := range nodes[i].Devices {
			d := &nodes[i].Devices[j]
			room[string(d.ID)] = d.capacity().plus(d.Taken, -1)
		}
		for _, h := range s.Holdings {
			if h.Node != nodes[i].Name {
				continue
			}
			free = free.plus(h.Host, -1)
			for _, part := range h.Parts {
				room[string(part.Device)] = room[string(part.Device)].plus(part.Amount, -1)
			}
		}
		if free != known.free || free.CPUMilli < 0 || free.MemoryBytes < 0 || free.Pods < 0 {
			t.Fatalf("%s: free is %+v, the books say %+v", known.name, known.free, free)
		}
		for j := range known.devices {
			left := room[string(known.devices[j].ID)]
			if left != known.room[j] || left.MemoryBytes < 0 || left.ComputeMilli < 0 {
				t.Fatalf("%s: room is %+v, the books say %+v", known.devices[j].ID, known.room[j], left)
			}
		}
	}
}

// checkRebuilt asks an index that was built anew. What was learnt is not in a
// snapshot, so nothing may have been.
func checkRebuilt(t *testing.T, c *Cluster, r Request) {
	t.Helper()
	rebuilt, err := FromSnapshot(c.Snapshot())
	if err != nil {
		t.Fatal(err)
	}
	want, err := rebuilt.Offers(r, 3)
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Offers(r, 3)
	if err != nil {
		t.Fatal(err)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Fatalf("%+v: got %v, an index built anew says %v", r, got, want)
	}
}
