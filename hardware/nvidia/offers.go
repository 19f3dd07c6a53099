package nvidia

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// MIGStrategy says how the slices of partitioned GPUs are offered. The names
// are those of NVIDIA's device plugin, and so are the resources that follow.
type MIGStrategy string

const (
	// MIGNone offers every GPU whole, also one that is partitioned.
	MIGNone MIGStrategy = "none"
	// MIGSingle offers slices as nvidia.com/gpu. All GPUs of the machine have
	// to be partitioned, and all into slices of the same profile, or none.
	MIGSingle MIGStrategy = "single"
	// MIGMixed offers slices by their profile, as nvidia.com/mig-1g.10gb, and
	// GPUs that are not partitioned as nvidia.com/gpu.
	MIGMixed MIGStrategy = "mixed"
)

const kindGPU = "gpu"

// offer is a device and what it takes to put it into a container.
type offer struct {
	device device.Device
	grantable
}

// offers decides which devices the GPUs are. It is pure.
func offers(gpus map[string]gpu, strategy MIGStrategy) []offer {
	var all []offer
	var unpartitioned []gpu
	for _, g := range inOrder(gpus) {
		if !g.mig.enabled {
			unpartitioned = append(unpartitioned, g)
		}
		if strategy == MIGNone || !g.mig.enabled {
			all = append(all, offer{g.whole(), g.grantable(g.id(), g.mig.slices...)})
			continue
		}
		for _, s := range g.mig.slices {
			kind := kindGPU
			if strategy == MIGMixed {
				kind = kindOf(s.profile)
			}
			all = append(all, offer{g.part(s, kind), g.grantable(device.ID(s.uuid), s)})
		}
	}
	if strategy == MIGSingle {
		refuseUnequal(all)
	}
	// GPUs that are partitioned do not use their links.
	links := linksOf(unpartitioned)
	for i := range all {
		all[i].device.Links = links[string(all[i].device.ID)]
	}
	return all
}

func devices(offers []offer) []device.Device {
	described := make([]device.Device, len(offers))
	for i, o := range offers {
		described[i] = o.device
	}
	device.Sort(described)
	return described
}

// kindOf makes a profile such as 1g.10gb+me part of a resource's name.
func kindOf(profile string) string {
	return "mig-" + strings.ToLower(strings.NewReplacer("+", ".", " ", "-").Replace(profile))
}

// refuseUnequal keeps devices that are not alike from being offered under one
// name: who asks for nvidia.com/gpu would get one or the other by chance.
func refuseUnequal(offers []offer) {
	profiles := map[string]bool{}
	for _, o := range offers {
		profile := "whole GPUs"
		if p, ok := o.device.Attributes[device.AttributeProfile]; ok {
			profile = p.String()
		}
		profiles[profile] = true
	}
	if len(profiles) < 2 {
		return
	}
	reason := fmt.Sprintf("the MIG strategy single needs all devices of a machine to be alike, and this one has %s; partition them alike or use the strategy mixed",
		strings.Join(slices.Sorted(maps.Keys(profiles)), ", "))
	for i := range offers {
		h := &offers[i].device.Health
		if h.OK() {
			*h = device.Health{State: device.Unhealthy, Reason: reason}
		}
	}
}
