package nvidia

import (
	"fmt"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// cut is one slice to make: a profile of GPU instances, one of compute
// instances in it, and the name that NVIDIA has for the two.
type cut struct {
	gpu, compute int
	profile      string
}

// completeMIG adds what the mock server lacks: the devices that its GPU and
// compute instances are to programs.
func (m *machine) completeMIG(g *fakeGPU) {
	g.GetMaxMigDeviceCountFunc = func() (int, nvml.Return) { return 7, nvml.SUCCESS }
	g.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if i >= len(g.slices) || g.slices[i] == nil {
			return nil, nvml.ERROR_NOT_FOUND
		}
		return g.slices[i], nvml.SUCCESS
	}
}

// partition turns MIG on and makes slices, each of a GPU instance of its own,
// in place of those that are there.
func (m *machine) partition(t *testing.T, i int, cuts ...cut) {
	t.Helper()
	g := m.gpus[i]
	for old := range g.GpuInstances {
		old.Destroy()
	}
	g.SetMigMode(nvml.DEVICE_MIG_ENABLE)
	var slices []nvml.Device
	for _, c := range cuts {
		slices = append(slices, m.cut(t, i, c))
	}
	m.change(func() { g.slices = slices })
}

func (m *machine) cut(t *testing.T, i int, c cut) nvml.Device {
	t.Helper()
	g := m.gpus[i]
	gpuProfile, ret := g.GetGpuInstanceProfileInfo(c.gpu)
	if ret != nvml.SUCCESS {
		t.Fatalf("GPU instance profile %d: %v", c.gpu, ret)
	}
	gi, ret := g.CreateGpuInstance(&gpuProfile)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	computeProfile, ret := gi.GetComputeInstanceProfileInfo(c.compute, nvml.COMPUTE_INSTANCE_ENGINE_PROFILE_SHARED)
	if ret != nvml.SUCCESS {
		t.Fatalf("compute instance profile %d: %v", c.compute, ret)
	}
	ci, ret := gi.CreateComputeInstance(&computeProfile)
	if ret != nvml.SUCCESS {
		t.Fatal(ret)
	}
	gpuInfo, _ := gi.GetInfo()
	computeInfo, _ := ci.GetInfo()
	name := fmt.Sprintf("%s MIG %s", g.Config.Name, c.profile)
	if c.profile == "" {
		name = g.Config.Name
	}
	for _, minor := range capabilityMinors(i, int(gpuInfo.Id), int(computeInfo.Id)) {
		m.write(t, fmt.Sprintf("dev/nvidia-caps/nvidia-cap%d", minor), "")
	}
	return &mock.Device{
		GetUUIDFunc: func() (string, nvml.Return) {
			return fmt.Sprintf("MIG-%d-%d-%d", i, gpuInfo.Id, computeInfo.Id), nvml.SUCCESS
		},
		GetNameFunc:              func() (string, nvml.Return) { return name, nvml.SUCCESS },
		GetGpuInstanceIdFunc:     func() (int, nvml.Return) { return int(gpuInfo.Id), nvml.SUCCESS },
		GetComputeInstanceIdFunc: func() (int, nvml.Return) { return int(computeInfo.Id), nvml.SUCCESS },
		GetAttributesFunc: func() (nvml.DeviceAttributes, nvml.Return) {
			return nvml.DeviceAttributes{
				MultiprocessorCount:       computeProfile.MultiprocessorCount,
				GpuInstanceSliceCount:     gpuProfile.SliceCount,
				ComputeInstanceSliceCount: computeProfile.SliceCount,
				MemorySizeMB:              gpuProfile.MemorySizeMB,
			}, nvml.SUCCESS
		},
	}
}

// Of each GPU there are nodes for so many GPU instances, each with so many
// compute instances, as one recorded machine has them.
const gpuInstances, computeInstances = 15, 8

func capabilityMinors(gpu, gi, ci int) [2]int {
	access := 3 + (gpu*gpuInstances+gi)*(1+computeInstances)
	return [2]int{access, access + 1 + ci}
}

// writeMIGMinors writes the list of those nodes.
func (m *machine) writeMIGMinors(t *testing.T) {
	t.Helper()
	var list strings.Builder
	list.WriteString("config 1\nmonitor 2\n")
	for gpu := range m.gpus {
		for gi := range gpuInstances {
			for ci := range computeInstances {
				minors := capabilityMinors(gpu, gi, ci)
				if ci == 0 {
					fmt.Fprintf(&list, "gpu%d/gi%d/access %d\n", gpu, gi, minors[0])
				}
				fmt.Fprintf(&list, "gpu%d/gi%d/ci%d/access %d\n", gpu, gi, ci, minors[1])
			}
		}
	}
	m.write(t, migMinors, list.String())
}
