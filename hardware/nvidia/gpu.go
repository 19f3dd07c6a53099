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
	mig    mig
	vitals vitals
	record health.Record
}

func (g gpu) id() device.ID { return device.ID(g.uuid) }

// inOrder returns the GPUs as NVIDIA's tools number them.
func inOrder(gpus map[string]gpu) []gpu {
	return slices.SortedFunc(maps.Values(gpus), func(a, b gpu) int {
		return cmp.Or(cmp.Compare(a.index, b.index), cmp.Compare(a.uuid, b.uuid))
	})
}

// The names of attributes that only this driver has.
const (
	attributeUUID     = "uuid"
	attributeBrand    = "brand"
	attributePCIeRoot = "pcieRoot"
	attributeMinor    = "minor"
	attributeClique   = "fabricClique"
)

// whole describes the GPU as one device.
func (g gpu) whole() device.Device {
	return device.Device{
		ID:         g.id(),
		Vendor:     vendor,
		Kind:       kindGPU,
		Model:      g.model,
		Index:      g.index,
		NUMANode:   g.place.numaNode,
		PCIAddress: g.place.address,
		Capacity:   device.Capacity{MemoryBytes: g.memoryBytes, Multiprocessors: g.multiprocessors},
		Attributes: g.attributes(),
		Health:     g.record.Health,
	}
}

// part describes a slice of the GPU. Its index is the GPU's, which is what
// people know; its health as well, since what befalls a GPU befalls all of it.
func (g gpu) part(s slice, kind string) device.Device {
	d := g.whole()
	d.ID, d.Kind, d.Model = device.ID(s.uuid), kind, s.model
	d.Capacity = device.Capacity{MemoryBytes: s.memoryBytes, Multiprocessors: s.multiprocessors}
	d.Attributes[attributeUUID] = device.String(s.uuid)
	d.Attributes[device.AttributeProfile] = device.String(s.profile)
	d.Attributes[device.AttributeParentUUID] = device.String(g.uuid)
	d.Attributes[device.AttributeMIGIndex] = device.Int(s.index)
	return d
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
