package place

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// topology is how the devices of a node are linked. Nodes of one build share
// it, and with it the choices made on it before.
type topology struct {
	worth  [][]int64
	scale  int64
	linked bool // there is any link
	chosen map[string]subset
}

// subset is a choice of devices.
type subset struct {
	members []int // empty: there is none
	mbps    int64 // the bandwidth between them
}

// maxChosen bounds the choices that are remembered.
const maxChosen = 4096

func (c *Cluster) topologyOf(devices []Device) *topology {
	position := make(map[device.ID]int, len(devices))
	for i := range devices {
		position[devices[i].ID] = i
	}
	var b strings.Builder
	for i := range devices {
		fmt.Fprintf(&b, "%d", devices[i].NUMANode)
		for _, link := range devices[i].Links {
			if j, ok := position[link.Peer]; ok {
				fmt.Fprintf(&b, " %d:%d", j, bandwidth(link))
			}
		}
		b.WriteByte(';')
	}
	known, ok := c.topologies[b.String()]
	if !ok {
		ids := make([]device.ID, len(devices))
		described := make(map[device.ID]*device.Device, len(devices))
		for i := range devices {
			ids[i] = devices[i].ID
			described[ids[i]] = &devices[i].Device
		}
		known = &topology{chosen: map[string]subset{}}
		known.worth, known.scale = pairWorth(ids, described)
		for i := range known.worth {
			for _, w := range known.worth[i] {
				known.linked = known.linked || w >= known.scale
			}
		}
		c.topologies[b.String()] = known
	}
	return known
}

// choose takes count devices of the pool: the best by links, then NUMA, then
// what is left of the pool. With linked set every two must have a link.
func (t *topology) choose(pool []int, count int, linked bool) subset {
	if count == 0 || count > len(pool) || linked && count > 1 && !t.linked {
		return subset{}
	}
	if count == len(pool) && !linked {
		return subset{pool, t.bandwidth(pool)}
	}
	key := make([]byte, 0, 64)
	key = binary.AppendVarint(key, int64(count))
	if linked {
		key = append(key, 1)
	}
	for _, i := range pool {
		key = binary.AppendUvarint(key, uint64(i))
	}
	if known, ok := t.chosen[string(key)]; ok {
		return known
	}
	worth := make([][]int64, len(pool))
	for a, i := range pool {
		worth[a] = make([]int64, len(pool))
		for b, j := range pool {
			worth[a][b] = t.worth[i][j]
		}
	}
	least := int64(0)
	if linked {
		least = t.scale
	}
	members := bestSubset(worth, make([]bool, len(pool)), count, least)
	for a, at := range members {
		members[a] = pool[at]
	}
	found := subset{members, t.bandwidth(members)}
	if len(t.chosen) >= maxChosen {
		clear(t.chosen)
	}
	t.chosen[string(key)] = found
	return found
}

func (t *topology) bandwidth(members []int) int64 {
	var sum int64
	for a, i := range members {
		for _, j := range members[:a] {
			sum += t.worth[i][j] / t.scale
		}
	}
	return sum
}

// sorted is a copy in ascending order.
func sorted(members []int) []int {
	s := slices.Clone(members)
	slices.Sort(s)
	return s
}

// linkedToAll reports whether the device has a link to each of the members.
func (t *topology) linkedToAll(i int, members []int) bool {
	for _, j := range members {
		if t.worth[i][j] < t.scale {
			return false
		}
	}
	return true
}
