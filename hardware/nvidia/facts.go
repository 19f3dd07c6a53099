package nvidia

import (
	"fmt"
	"sync"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// facts are what does not change about a GPU while its driver is loaded.
type facts struct {
	uuid            string
	model           string
	brand           string
	architecture    string // empty when NVML's answer has no name here
	capability      string // compute capability, such as 9.0
	driver, cuda    string // versions
	minor           int    // of the node under /dev
	memoryBytes     int64
	multiprocessors int // 0 when NVML can not say
	place           place
	ports           []port
}

// factbook keeps facts, so that each GPU is asked once. NVLink ports come up
// with the fabric, so facts from another state of it do not count.
type factbook struct {
	mu    sync.Mutex
	facts map[string]facts // by UUID
	state map[string]uint8 // of the fabric, when they were read
}

func newFactbook() *factbook {
	return &factbook{facts: map[string]facts{}, state: map[string]uint8{}}
}

func (b *factbook) get(uuid string, fabricState uint8, read func() (facts, error)) (facts, error) {
	b.mu.Lock()
	known, ok := b.facts[uuid]
	ok = ok && b.state[uuid] == fabricState
	b.mu.Unlock()
	if ok {
		return known, nil
	}
	f, err := read()
	if err != nil {
		return facts{}, err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.facts[uuid], b.state[uuid] = f, fabricState
	return f, nil
}

// readFacts asks for everything. Without a name, a node or its memory a GPU is
// of no use, so those have to be answered; the rest is left out where the GPU
// or the library does not have it.
func (s *session) readFacts(gpu nvml.Device, uuid string) (facts, error) {
	f := facts{uuid: uuid, driver: s.driver, cuda: s.cuda}
	var ret nvml.Return
	if f.model, ret = gpu.GetName(); ret != nvml.SUCCESS {
		return f, fmt.Errorf("read the name: %w", ret)
	}
	if f.minor, ret = gpu.GetMinorNumber(); ret != nvml.SUCCESS {
		return f, fmt.Errorf("read the minor number: %w", ret)
	}
	memory, ret := gpu.GetMemoryInfo()
	if ret != nvml.SUCCESS {
		return f, fmt.Errorf("read the memory size: %w", ret)
	}
	f.memoryBytes = int64(memory.Total)

	if brand, ret := gpu.GetBrand(); ret == nvml.SUCCESS {
		f.brand = brands[brand]
	}
	if s.has("nvmlDeviceGetArchitecture") {
		if architecture, ret := gpu.GetArchitecture(); ret == nvml.SUCCESS {
			f.architecture = architectures[architecture]
		}
	}
	if major, minor, ret := gpu.GetCudaComputeCapability(); ret == nvml.SUCCESS {
		f.capability = fmt.Sprintf("%d.%d", major, minor)
		if s.has("nvmlDeviceGetNumGpuCores") {
			if cores, ret := gpu.GetNumGpuCores(); ret == nvml.SUCCESS {
				f.multiprocessors = cores / coresOfMultiprocessor(major, minor)
			}
		}
	}
	if info, ret := gpu.GetPciInfo(); ret == nvml.SUCCESS {
		f.place = placeOf(s.host, addressOf(info))
	} else {
		f.place = placeOf(s.host, "")
	}
	f.ports = s.readPorts(gpu)
	return f, nil
}

var architectures = map[nvml.DeviceArchitecture]string{
	nvml.DEVICE_ARCH_KEPLER:    "Kepler",
	nvml.DEVICE_ARCH_MAXWELL:   "Maxwell",
	nvml.DEVICE_ARCH_PASCAL:    "Pascal",
	nvml.DEVICE_ARCH_VOLTA:     "Volta",
	nvml.DEVICE_ARCH_TURING:    "Turing",
	nvml.DEVICE_ARCH_AMPERE:    "Ampere",
	nvml.DEVICE_ARCH_ADA:       "Ada Lovelace",
	nvml.DEVICE_ARCH_HOPPER:    "Hopper",
	nvml.DEVICE_ARCH_BLACKWELL: "Blackwell",
	nvml.DEVICE_ARCH_RUBIN:     "Rubin",
}

var brands = map[nvml.BrandType]string{
	nvml.BRAND_QUADRO:       "Quadro",
	nvml.BRAND_TESLA:        "Tesla",
	nvml.BRAND_GRID:         "GRID",
	nvml.BRAND_GEFORCE:      "GeForce",
	nvml.BRAND_TITAN:        "Titan",
	nvml.BRAND_QUADRO_RTX:   "QuadroRTX",
	nvml.BRAND_NVIDIA_RTX:   "NvidiaRTX",
	nvml.BRAND_NVIDIA:       "Nvidia",
	nvml.BRAND_GEFORCE_RTX:  "GeForceRTX",
	nvml.BRAND_TITAN_RTX:    "TitanRTX",
	nvml.BRAND_NVIDIA_VAPPS: "NvidiaVApps",
	nvml.BRAND_NVIDIA_VPC:   "NvidiaVPC",
	nvml.BRAND_NVIDIA_VCS:   "NvidiaVCS",
	nvml.BRAND_NVIDIA_VWS:   "NvidiaVWS",
}

// coresOfMultiprocessor is the number of cores that NVIDIA counts in one
// multiprocessor. NVML tells the cores of a GPU, and the multiprocessors only
// of a part of one.
func coresOfMultiprocessor(major, minor int) int {
	switch {
	case major == 3:
		return 192
	case major == 6 && minor == 0, major == 7, major == 8 && minor == 0:
		return 64
	default:
		return 128
	}
}
