package place

import (
	"cmp"
	"math"
	"strconv"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// rankKey orders by a group's rank: the lower, the better.
type rankKey [3]float64

func (a rankKey) compare(b rankKey) int {
	return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1]), cmp.Compare(a[2], b[2]))
}

// power orders devices by memory, then compute capability, then
// multiprocessors.
func power(d *device.Device) rankKey {
	return rankKey{
		float64(d.Capacity.MemoryBytes),
		versionNumber(d.Attributes[device.AttributeComputeCapability]),
		float64(d.Capacity.Multiprocessors),
	}
}

// versionNumber makes a version comparable as one number: "8.6" is 8.006.
func versionNumber(a device.Attribute) float64 {
	if a == nil {
		return 0
	}
	var number float64
	for place, part := range strings.Split(a.String(), ".") {
		n, err := strconv.Atoi(part)
		if err != nil {
			return 0
		}
		number += float64(n) / math.Pow(1000, float64(place))
	}
	return number
}

// ranksOf is the key of each group that has a rank other than Pack.
func (n *node) ranksOf(groups []Group, parts []taken) []rankKey {
	var keys []rankKey
	for g := range groups {
		switch groups[g].Rank {
		case Pack:
			continue
		case Spread:
			keys = append(keys, n.spread(g, parts))
		case MostPowerful, SmallestFit:
			keys = append(keys, n.powerOf(groups[g].Rank, g, parts))
		}
	}
	return keys
}

// spread is how much of the node's devices is used, then how much of the
// chosen ones.
func (n *node) spread(group int, parts []taken) rankKey {
	var all, chosen float64
	for i := range n.devices {
		all += 1 - n.part(i, n.room[i])
	}
	for _, t := range parts {
		if t.group == group {
			chosen += 1 - n.part(t.device, n.room[t.device])
		}
	}
	return rankKey{all / float64(len(n.devices)), chosen}
}

// powerOf is the power of the group's weakest device, the higher the better,
// or of its strongest, the lower the better.
func (n *node) powerOf(rank Rank, group int, parts []taken) rankKey {
	var worst *rankKey
	for _, t := range parts {
		if t.group != group {
			continue
		}
		p := power(&n.devices[t.device].Device)
		if rank == MostPowerful {
			p = rankKey{-p[0], -p[1], -p[2]}
		}
		if worst == nil || p.compare(*worst) > 0 {
			worst = &p
		}
	}
	return *worst
}

// linksOf is the bandwidth within the groups that wish for links.
func (n *node) linksOf(groups []Group, parts []taken) int64 {
	var sum int64
	for g := range groups {
		if groups[g].Links == LinksIgnored {
			continue
		}
		var members []int
		for _, t := range parts {
			if t.group == g {
				members = append(members, t.device)
			}
		}
		sum += n.topology.bandwidth(members)
	}
	return sum
}
