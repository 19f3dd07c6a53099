package place

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/kilter-dev/kilter/device"
)

// Prefer chooses count of the available devices of one node, the must ids
// among them. devices describes the node; an available id that is not in it
// (lost, or not described) can be chosen and counts as having no links.
//
// The choice is the best by the first of these that differs:
//
//  1. the sum of the link bandwidths between the chosen devices, the higher
//     the better; a link of unknown bandwidth counts one MB/s a lane, which
//     is better than no link;
//  2. the number of pairs of chosen devices on the same NUMA node;
//  3. what is left to the next one: 1 and 2 of the available devices that
//     were not chosen. So a request for two takes the lone pair and leaves
//     the clique of four whole, if the links are equally fast, and a request
//     for one takes the device that is linked to the fewest;
//  4. the lowest indices, then the lowest ids; ids that devices does not
//     describe come last.
//
// This is the optimum whenever there are at most 20,000 subsets to choose
// from or enough devices are interchangeable, hence always up to 16 available
// devices. Beyond that it is the best found in a bounded number of steps.
// The answer is in the order of 4.
func Prefer(devices []device.Device, available, must []device.ID, count int) ([]device.ID, error) {
	if err := checkPrefer(devices, available, must, count); err != nil {
		return nil, fmt.Errorf("choose %d of %d available devices: %w", count, len(available), err)
	}
	described := make(map[device.ID]*device.Device, len(devices))
	for i := range devices {
		described[devices[i].ID] = &devices[i]
	}
	ids := slices.Clone(available)
	slices.SortFunc(ids, func(a, b device.ID) int {
		x, y := described[a], described[b]
		switch {
		case x != nil && y != nil:
			return cmp.Or(cmp.Compare(x.Index, y.Index), cmp.Compare(a, b))
		case x != nil:
			return -1
		case y != nil:
			return 1
		}
		return cmp.Compare(a, b)
	})
	forced := make([]bool, len(ids))
	for i, id := range ids {
		forced[i] = slices.Contains(must, id)
	}
	worth, _ := pairWorth(ids, described)
	chosen := bestSubset(worth, forced, count, 0)
	result := make([]device.ID, len(chosen))
	for i, position := range chosen {
		result[i] = ids[position]
	}
	return result, nil
}

// checkPrefer says what is wrong with the question.
func checkPrefer(devices []device.Device, available, must []device.ID, count int) error {
	described := make([]device.ID, len(devices))
	for i := range devices {
		described[i] = devices[i].ID
	}
	for _, list := range []struct {
		name string
		ids  []device.ID
	}{{"the node's", described}, {"the available", available}, {"the required", must}} {
		if id, ok := repeated(list.ids); ok {
			return fmt.Errorf("%s devices name %q twice", list.name, id)
		}
	}
	for _, id := range must {
		if !slices.Contains(available, id) {
			return fmt.Errorf("the required device %q is not available", id)
		}
	}
	switch {
	case count < 0:
		return fmt.Errorf("a count can not be negative")
	case count < len(must):
		return fmt.Errorf("%d devices are required already", len(must))
	case count > len(available):
		return fmt.Errorf("there are not that many")
	}
	return nil
}

// repeated returns an id that stands in ids more than once.
func repeated(ids []device.ID) (device.ID, bool) {
	seen := make(map[device.ID]bool, len(ids))
	for _, id := range ids {
		if seen[id] {
			return id, true
		}
		seen[id] = true
	}
	return "", false
}

// pairWorth says what it is worth to have two devices together. One number
// holds both the bandwidth and, in a place below it that no sum of pairs can
// overflow, whether the NUMA node is the same. Bandwidths are capped so that
// all sums stay within an int64; up to a thousand devices the cap is above
// four million MB/s. A linked pair is worth at least scale, any other less.
func pairWorth(ids []device.ID, described map[device.ID]*device.Device) (worth [][]int64, scale int64) {
	n := len(ids)
	scale = int64(n*n + 1)
	limit := min(1<<40, (1<<62)/scale/scale)
	position := make(map[device.ID]int, n)
	worth = make([][]int64, n)
	cells := make([]int64, n*n)
	for i, id := range ids {
		position[id] = i
		worth[i] = cells[i*n : (i+1)*n]
	}
	reported := make([]int64, n)
	for i, id := range ids {
		d := described[id]
		if d == nil {
			continue
		}
		clear(reported)
		for _, link := range d.Links {
			if j, ok := position[link.Peer]; ok && j != i {
				reported[j] = min(limit, reported[j]+min(limit, bandwidth(link)))
			}
		}
		for j, mbps := range reported {
			// Should the two ends disagree, the higher word counts.
			worth[i][j] = max(worth[i][j], mbps)
			worth[j][i] = worth[i][j]
		}
	}
	for i := range ids {
		for j := range i {
			sum := worth[i][j] * scale
			if sameNUMANode(described[ids[i]], described[ids[j]]) {
				sum++
			}
			worth[i][j], worth[j][i] = sum, sum
		}
	}
	return worth, scale
}

func bandwidth(l device.Link) int64 {
	if l.BandwidthMBps <= 0 {
		return int64(max(1, l.Lanes))
	}
	return l.BandwidthMBps
}

func sameNUMANode(a, b *device.Device) bool {
	return a != nil && b != nil && a.NUMANode != device.UnknownNUMANode && a.NUMANode == b.NUMANode
}
