package nvidia

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// mig is how a GPU is partitioned.
type mig struct {
	enabled bool
	slices  []slice
}

// slice is one partition of a GPU that a program can use: a compute instance
// in a GPU instance.
type slice struct {
	uuid            string
	index           int    // among the slices of its GPU
	model           string // NVML's name for it
	profile         string // such as 1g.10gb
	memoryBytes     int64
	multiprocessors int
	instance        instance
}

// errMIG says that slices could not be read, as it happens while a GPU is
// being partitioned.
var errMIG = errors.New("read its MIG devices")

// instance names a slice on its GPU: the numbers of its GPU instance and of
// its compute instance in that.
type instance struct{ gpu, compute int }

// readMIG lists the slices of a GPU.
func (s *session) readMIG(gpu nvml.Device, f facts) (mig, error) {
	if !s.has("nvmlDeviceGetMigMode") {
		return mig{}, nil
	}
	mode, _, ret := gpu.GetMigMode()
	if ret != nvml.SUCCESS || mode != nvml.DEVICE_MIG_ENABLE {
		return mig{}, nil // a GPU that can not be partitioned says NOT_SUPPORTED
	}
	m := mig{enabled: true}
	count, ret := gpu.GetMaxMigDeviceCount()
	if ret != nvml.SUCCESS {
		return m, fmt.Errorf("%w: count them: %w", errMIG, ret)
	}
	for i := range count {
		handle, ret := gpu.GetMigDeviceHandleByIndex(i)
		if ret == nvml.ERROR_NOT_FOUND || ret == nvml.ERROR_INVALID_ARGUMENT {
			continue // the numbers have gaps
		}
		if ret != nvml.SUCCESS {
			return m, fmt.Errorf("%w: open number %d: %w", errMIG, i, ret)
		}
		sl, err := readSlice(handle, f)
		if err != nil {
			return m, fmt.Errorf("%w: number %d: %w", errMIG, i, err)
		}
		sl.index = i
		m.slices = append(m.slices, sl)
	}
	return m, nil
}

func readSlice(handle nvml.Device, f facts) (slice, error) {
	var s slice
	var rets [5]nvml.Return
	var attributes nvml.DeviceAttributes
	s.uuid, rets[0] = handle.GetUUID()
	s.instance.gpu, rets[1] = handle.GetGpuInstanceId()
	s.instance.compute, rets[2] = handle.GetComputeInstanceId()
	attributes, rets[3] = handle.GetAttributes()
	s.model, rets[4] = handle.GetName()
	for _, ret := range rets {
		if ret != nvml.SUCCESS {
			return s, ret
		}
	}
	s.memoryBytes = int64(attributes.MemorySizeMB) << 20
	s.multiprocessors = int(attributes.MultiprocessorCount)
	var named bool
	if _, s.profile, named = strings.Cut(s.model, " MIG "); !named {
		s.profile = profileOf(attributes, f.memoryBytes)
		s.model = f.model + " MIG " + s.profile
	}
	if s.profile == "" {
		return s, errors.New("NVML does not say which profile it has")
	}
	return s, nil
}

// profileOf names a slice by its size, as NVIDIA does: the slices of its GPU
// instance and the memory in whole GB, and in front the slices of its compute
// instance where that is smaller. Memory comes in eighths of the GPU's, of
// which the driver keeps a little for itself.
func profileOf(a nvml.DeviceAttributes, gpuMemoryBytes int64) string {
	if gpuMemoryBytes <= 0 {
		return ""
	}
	const gib = 1 << 30
	eighths := max(1, math.Round(8*float64(a.MemorySizeMB<<20)/float64(gpuMemoryBytes)))
	whole := math.Ceil(float64(gpuMemoryBytes) / gib)
	name := fmt.Sprintf("%dg.%.0fgb", a.GpuInstanceSliceCount, math.Round(eighths*whole/8))
	if a.ComputeInstanceSliceCount != a.GpuInstanceSliceCount {
		name = fmt.Sprintf("%dc.%s", a.ComputeInstanceSliceCount, name)
	}
	return name
}
