package nvidia

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// gpu is a GPU as it was last seen.
type gpu struct {
	facts
	index  int
	clique string // of the NVLink fabric, which may span machines; or empty
	health device.Health
}

func (g gpu) id() device.ID { return device.ID(g.uuid) }

func (g gpu) grantable() grantable { return grantable{id: g.id(), minor: g.minor, driver: g.driver} }

// The names of attributes that only this driver has.
const (
	attributeUUID     = "uuid"
	attributeBrand    = "brand"
	attributePCIeRoot = "pcieRoot"
	attributeMinor    = "minor"
)

// devices describes the GPUs to the rest of Kilter.
func devices(gpus map[string]gpu) []device.Device {
	all := slices.SortedFunc(maps.Values(gpus), func(a, b gpu) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.uuid, b.uuid))
	})
	links := linksOf(all)
	var described []device.Device
	for _, g := range all {
		described = append(described, device.Device{
			ID:         g.id(),
			Vendor:     vendor,
			Kind:       "gpu",
			Model:      g.model,
			Index:      g.index,
			NUMANode:   g.place.numaNode,
			PCIAddress: g.place.address,
			Capacity:   device.Capacity{MemoryBytes: g.memoryBytes, Multiprocessors: g.multiprocessors},
			Attributes: g.attributes(),
			Links:      links[g.uuid],
			Health:     g.health,
		})
	}
	device.Sort(described)
	return described
}

func (g gpu) attributes() map[string]device.Attribute {
	attributes := map[string]device.Attribute{
		attributeUUID:  device.String(g.uuid),
		attributeMinor: device.Int(g.minor),
	}
	for name, text := range map[string]string{
		attributeBrand:               g.brand,
		attributePCIeRoot:            g.place.root,
		device.AttributeArchitecture: g.architecture,
	} {
		if text != "" {
			attributes[name] = device.String(text)
		}
	}
	for name, version := range map[string]string{
		device.AttributeComputeCapability: g.capability,
		device.AttributeDriverVersion:     g.driver,
		device.AttributeCUDAVersion:       g.cuda,
	} {
		if version != "" {
			attributes[name] = device.Version(version)
		}
	}
	return attributes
}

// merge joins what is known with a new look. A GPU that the look has nothing
// good to say about stays as it was, but sick; one that has also left the
// machine is forgotten.
func merge(known map[string]gpu, look []sighting, lookErr error, onBus func(address string) bool, now time.Time) map[string]gpu {
	merged := map[string]gpu{}
	silent := map[int]error{}
	for _, s := range look {
		if s.err != nil {
			silent[s.index] = s.err
			continue
		}
		g := gpu{facts: s.facts, index: s.index, health: known[s.facts.uuid].health}
		g.health = turn(g.health, nil, now)
		merged[s.facts.uuid] = g
	}
	for uuid, g := range known {
		if _, seen := merged[uuid]; seen || !onBus(g.place.address) {
			continue
		}
		g.health = turn(g.health, cmp.Or(lookErr, silent[g.index], errLost), now)
		merged[uuid] = g
	}
	return merged
}

func turn(h device.Health, sick error, now time.Time) device.Health {
	next := device.Health{State: device.Healthy, Since: h.Since}
	if sick != nil {
		next.State, next.Reason = device.Unhealthy, sick.Error()
	}
	if next.State != h.State {
		next.Since = now
	}
	return next
}
