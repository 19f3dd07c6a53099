package nvidia

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"

	"github.com/kilter-dev/kilter/device"
)

// Two cliques in one machine, told by a new library and by an old one: GPUs
// are linked within theirs only, once the fabric is up.
func TestCliques(t *testing.T) {
	cluster := [16]uint8{0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1, 2, 3, 4, 5, 6, 7, 8}
	const name = "12345678-9abc-def0-0102-030405060708."
	for which, setUp := range map[string]func(m *machine, g *fakeGPU, clique uint32){
		"new library": func(m *machine, g *fakeGPU, clique uint32) {
			g.fabric = nvml.GpuFabricInfo_v4{ClusterUuid: cluster, State: nvml.GPU_FABRIC_STATE_COMPLETED, NumCliques: 2}
			g.fabric.Cliques[0] = nvml.GpuFabricClique_v1{Type: nvml.GPU_FABRIC_CLIQUE_TYPE_MULTICAST_POINTER, Id: 99}
			g.fabric.Cliques[1] = nvml.GpuFabricClique_v1{Type: nvml.GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER, Id: clique}
		},
		"old library": func(m *machine, g *fakeGPU, clique uint32) {
			m.without["nvmlDeviceGetGpuFabricInfo_v4"] = true
			m.without["nvmlDeviceGetGpuFabricInfoV"] = true
			g.GetGpuFabricInfo_v4Func = nil
			g.GetGpuFabricInfoFunc = func() (nvml.GpuFabricInfo, nvml.Return) {
				return nvml.GpuFabricInfo{ClusterUuid: cluster, State: nvml.GPU_FABRIC_STATE_COMPLETED, CliqueId: clique}, nvml.SUCCESS
			}
		},
	} {
		t.Run(which, func(t *testing.T) {
			m := newMachine(t, dgxb200.New(), b200)
			for i, g := range m.gpus {
				setUp(m, g, uint32(i/4))
			}
			for i, d := range watch(t, m.driver(t)).first() {
				want := device.String(fmt.Sprint(name, i/4))
				if got := d.Attributes[attributeClique]; got != want {
					t.Errorf("GPU %d is in clique %v, want %v", i, got, want)
				}
				if len(d.Links) != 3 {
					t.Errorf("GPU %d has %d links, want 3", i, len(d.Links))
				}
			}
		})
	}
}

// The ports of a GPU come up with its fabric, and are read again then.
func TestLinksComeUpWithTheFabric(t *testing.T) {
	m := newMachine(t, dgxb200.New(), b200)
	all := make([][]port, len(m.gpus))
	m.change(func() {
		for i, g := range m.gpus {
			all[i], g.ports = g.ports, nil
			g.fabric.State, g.fabric.ClusterUuid, g.fabric.NumCliques = nvml.GPU_FABRIC_STATE_IN_PROGRESS, [16]uint8{1}, 1
		}
	})
	w := watch(t, m.driver(t))
	w.until("suspect GPUs without links", func(now []device.Device) bool {
		return len(now) == 8 && now[0].Health.State == device.Suspect && len(now[0].Links) == 0 &&
			now[0].Attributes[attributeClique] == nil
	})
	m.change(func() {
		for i, g := range m.gpus {
			g.ports = all[i]
			g.fabric.State = nvml.GPU_FABRIC_STATE_COMPLETED
		}
	})
	w.until("healthy GPUs with links", func(now []device.Device) bool {
		return allHealthy(8)(now) && len(now[0].Links) == 7 && now[0].Attributes[attributeClique] != nil
	})
}
