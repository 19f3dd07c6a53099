package nvidia

import (
	"cmp"
	"maps"
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// gpu is a GPU as it was last seen.
type gpu struct {
	facts
	index  int
	vitals vitals
	record health.Record
}

func (g gpu) id() device.ID { return device.ID(g.uuid) }

func (g gpu) grantable() grantable { return grantable{id: g.id(), minor: g.minor, driver: g.driver} }

// The names of attributes that only this driver has.
const (
	attributeUUID     = "uuid"
	attributeBrand    = "brand"
	attributePCIeRoot = "pcieRoot"
	attributeMinor    = "minor"
	attributeClique   = "fabricClique"
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
			Health:     g.record.Health,
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
		attributeClique:              g.vitals.fabric.clique,
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
