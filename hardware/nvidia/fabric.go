package nvidia

import (
	"encoding/hex"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// fabric is where a GPU stands in an NVLink fabric, which a fabric manager
// sets up after the start and which may span machines.
type fabric struct {
	state   uint8       // one of nvml.GPU_FABRIC_STATE_...; NOT_SUPPORTED for most GPUs
	status  nvml.Return // how the set-up ended, once it is complete
	summary uint8       // one of nvml.GPU_FABRIC_HEALTH_SUMMARY_...
	clique  string      // the GPUs with the same value reach each other; or empty
}

// readFabric asks with the newest function that the library has.
func (s *session) readFabric(gpu nvml.Device) fabric {
	if s.has("nvmlDeviceGetGpuFabricInfo_v4") {
		info, ret := gpu.GetGpuFabricInfo_v4()
		if ret != nvml.SUCCESS {
			return fabric{}
		}
		f := fabric{state: info.State, status: nvml.Return(info.Status), summary: info.HealthSummary}
		for _, c := range info.Cliques[:min(int(info.NumCliques), len(info.Cliques))] {
			if c.Type == nvml.GPU_FABRIC_CLIQUE_TYPE_UNICAST_POINTER {
				f.clique = cliqueName(info.ClusterUuid, c.Id)
				break
			}
		}
		return f.whenComplete()
	}
	if s.has("nvmlDeviceGetGpuFabricInfoV") {
		if info, ret := gpu.GetGpuFabricInfoV().V3(); ret == nvml.SUCCESS {
			return fabric{
				state:   info.State,
				status:  nvml.Return(info.Status),
				summary: info.HealthSummary,
				clique:  cliqueName(info.ClusterUuid, info.CliqueId),
			}.whenComplete()
		}
	}
	if s.has("nvmlDeviceGetGpuFabricInfo") {
		if info, ret := gpu.GetGpuFabricInfo(); ret == nvml.SUCCESS {
			return fabric{
				state:  info.State,
				status: nvml.Return(info.Status),
				clique: cliqueName(info.ClusterUuid, info.CliqueId),
			}.whenComplete()
		}
	}
	return fabric{}
}

// whenComplete leaves out what has no meaning before the set-up is complete.
func (f fabric) whenComplete() fabric {
	if f.state != nvml.GPU_FABRIC_STATE_COMPLETED {
		return fabric{state: f.state}
	}
	return f
}

// cliqueName is the name that NVIDIA's labels have for a clique: the cluster's
// UUID, a dot, and the clique's number in it.
func cliqueName(cluster [16]uint8, clique uint32) string {
	if cluster == [16]uint8{} {
		return ""
	}
	h := hex.EncodeToString(cluster[:])
	return fmt.Sprintf("%s-%s-%s-%s-%s.%d", h[:8], h[8:12], h[12:16], h[16:20], h[20:], clique)
}

// sign is what the fabric says against the GPU. Without its fabric no CUDA
// program starts on it, so what is not up yet is a doubt; a fabric with less
// than its full bandwidth works.
func (f fabric) sign() (health.Sign, bool) {
	switch f.state {
	case nvml.GPU_FABRIC_STATE_NOT_STARTED:
		return health.Sign{Weight: health.Doubt, Reason: "its NVLink fabric is not set up; is the fabric manager running?"}, true
	case nvml.GPU_FABRIC_STATE_IN_PROGRESS:
		return health.Sign{Weight: health.Doubt, Reason: "its NVLink fabric is being set up"}, true
	case nvml.GPU_FABRIC_STATE_COMPLETED:
		if f.status != nvml.SUCCESS {
			return health.Sign{Weight: health.Fault, Reason: fmt.Sprintf("its NVLink fabric could not be set up: %v", f.status)}, true
		}
		if f.summary == nvml.GPU_FABRIC_HEALTH_SUMMARY_UNHEALTHY {
			return health.Sign{Weight: health.Fault, Reason: "its NVLink fabric is not healthy"}, true
		}
	}
	return health.Sign{}, false
}
