package deviceplugin

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/terms"
	"github.com/kilter-dev/kilter/place"
)

// linked are four GPUs with replicas, of which gpu0 and gpu3 are linked, and
// gpu1 and gpu2.
func linked(replicas int) map[device.ID]Offer {
	devices := gpus(4)
	for i := range devices {
		devices[i].NUMANode = 0
		devices[i].Links = []device.Link{{Peer: device.ID(fmt.Sprintf("gpu%d", 3-i)), Kind: device.NVLink, Lanes: 4, BandwidthMBps: 100}}
	}
	offers := make(map[device.ID]Offer)
	for _, d := range devices {
		offer := Offer{Device: d, Shared: true, Offered: true}
		for n := range replicas {
			offer.IDs = append(offer.IDs, device.ID(config.ReplicaID(d.ID, n)))
		}
		for _, id := range offer.IDs {
			offers[id] = offer
		}
	}
	return offers
}

func ids(text string) []device.ID { return deviceIDs(strings.Fields(text)) }

func TestChoiceOfReplicas(t *testing.T) {
	for name, test := range map[string]struct {
		policy      config.AllocationPolicy
		among, must string
		count       int
		want        string
	}{
		"spread over devices":             {config.Distributed, "gpu0::0 gpu0::1 gpu0::2 gpu1::0 gpu1::1 gpu1::2", "", 2, "gpu0::0 gpu1::0"},
		"the one with the fewest in use":  {config.Distributed, "gpu0::2 gpu1::1 gpu1::2 gpu2::0", "", 1, "gpu1::1"},
		"not again what one has already":  {config.Distributed, "gpu0::0 gpu0::1 gpu0::2 gpu1::2", "", 2, "gpu0::0 gpu1::2"},
		"linked ones among equals":        {config.Distributed, "gpu0::0 gpu1::0 gpu3::0", "", 2, "gpu0::0 gpu3::0"},
		"linked to what must be":          {config.Distributed, "gpu0::0 gpu1::0 gpu2::1 gpu2::0 gpu3::0", "gpu2::1", 2, "gpu2::1 gpu1::0"},
		"doubling up at last":             {config.Distributed, "gpu0::0 gpu0::1 gpu1::0 gpu1::1", "", 3, "gpu0::0 gpu1::0 gpu0::1"},
		"pack on one":                     {config.Packed, "gpu0::0 gpu0::1 gpu0::2 gpu1::0 gpu1::1 gpu1::2", "", 2, "gpu0::0 gpu0::1"},
		"the one with the most in use":    {config.Packed, "gpu0::0 gpu0::1 gpu1::2 gpu2::0 gpu2::1", "", 1, "gpu1::2"},
		"packed, and the rest linked":     {config.Packed, "gpu0::2 gpu1::0 gpu1::1 gpu3::0 gpu3::1", "", 2, "gpu0::2 gpu3::0"},
		"packed with what must be":        {config.Packed, "gpu0::0 gpu0::1 gpu1::0 gpu1::1", "gpu1::0", 2, "gpu1::0 gpu1::1"},
		"the numbers are no text":         {config.Distributed, "gpu0::10 gpu0::9", "", 1, "gpu0::9"},
		"nothing":                         {config.Distributed, "gpu0::0", "", 0, ""},
		"all":                             {config.Packed, "gpu0::0 gpu1::0", "", 2, "gpu0::0 gpu1::0"},
		"two of four, as the links stand": {config.Distributed, "gpu0::0 gpu1::0 gpu2::0 gpu3::0", "", 2, "gpu0::0 gpu3::0"},
	} {
		c := choice{offers: linked(3), among: ids(test.among), must: ids(test.must), count: test.count, prefer: place.Prefer}
		if name == "the numbers are no text" {
			c.offers = linked(11)
		}
		chosen, err := c.decide(&terms.View{Policy: test.policy})
		if got := strings.Trim(fmt.Sprint(chosen), "[]"); err != nil || got != test.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, test.want)
		}
	}
}

// Whatever is available, what is chosen is of it, holds what must be, and is
// spread over as many devices as can be had.
func TestAnyChoiceOfReplicas(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	offers := linked(3)
	for range 2000 {
		var among, must []device.ID
		have := make(map[device.ID]bool)
		for i := range 12 {
			id := device.ID(config.ReplicaID(device.ID(fmt.Sprintf("gpu%d", i/3)), i%3))
			if random.IntN(2) == 0 {
				continue
			}
			among = append(among, id)
			have[offers[id].Device.ID] = true
			if random.IntN(6) == 0 {
				must = append(must, id)
			}
		}
		count := len(must) + random.IntN(len(among)-len(must)+1)
		for _, policy := range []config.AllocationPolicy{config.Distributed, config.Packed} {
			c := choice{offers: offers, among: among, must: must, count: count, prefer: place.Prefer}
			chosen, err := c.decide(&terms.View{Policy: policy})
			if err != nil || len(chosen) != count || len(unique(chosen)) != count {
				t.Fatalf("%s: %d of %v with %v: %v, %v", policy, count, among, must, chosen, err)
			}
			devices, fixed := make(map[device.ID]bool), make(map[device.ID]bool)
			for _, id := range chosen {
				devices[offers[id].Device.ID] = true
				if !slices.Contains(among, id) {
					t.Fatalf("%s was not available", id)
				}
			}
			for _, id := range must {
				fixed[offers[id].Device.ID] = true
				if !slices.Contains(chosen, id) {
					t.Fatalf("%s must be chosen", id)
				}
			}
			most := min(len(have), len(fixed)+count-len(must))
			if policy == config.Distributed && len(devices) != most {
				t.Fatalf("%d of %v with %v: %v are of %d devices, not %d", count, among, must, chosen, len(devices), most)
			}
		}
	}
}
