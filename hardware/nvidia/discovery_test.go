package nvidia

import (
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/server"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/conformance"
)

// servers are the machines of go-nvml that the driver is tried on.
var servers = map[string]struct {
	new func() *server.Server
	hw  hardwareOf
}{
	"A100": {dgxa100.New, a100},
	"H100": {dgxh100.New, h100},
	"H200": {dgxh200.New, h100},
	"B200": {dgxb200.New, b200},
}

func TestConformance(t *testing.T) {
	for name, s := range servers {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) conformance.Subject {
				m := newMachine(t, s.new(), s.hw)
				return conformance.Subject{
					Driver:      m.driver(t),
					Devices:     8,
					SharedNodes: []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"},
					Change: func() error {
						m.change(func() { m.gpus[3].lost = true })
						return nil
					},
				}
			})
		})
	}
	t.Run("no driver", func(t *testing.T) {
		conformance.Run(t, func(t *testing.T) conformance.Subject {
			return conformance.Subject{Driver: newDriver(t, Config{HostRoot: t.TempDir()})}
		})
	})
}

func TestFacts(t *testing.T) {
	for name, want := range map[string]device.Device{
		"A100": {
			Model:    "Mock NVIDIA A100-SXM4-40GB",
			Capacity: device.Capacity{MemoryBytes: 40960 << 20, Multiprocessors: 108},
			Attributes: map[string]device.Attribute{
				device.AttributeArchitecture:      device.String("Ampere"),
				device.AttributeComputeCapability: device.Version("8.0"),
				attributeBrand:                    device.String("Nvidia"),
			},
		},
		"H100": {
			Model:    "NVIDIA H100 80GB HBM3",
			Capacity: device.Capacity{MemoryBytes: 81920 << 20, Multiprocessors: 132},
			Attributes: map[string]device.Attribute{
				device.AttributeArchitecture:      device.String("Hopper"),
				device.AttributeComputeCapability: device.Version("9.0"),
				attributeBrand:                    device.String("Nvidia"),
			},
		},
		"H200": {
			Model:    "NVIDIA H200 141GB HBM3e",
			Capacity: device.Capacity{MemoryBytes: 144384 << 20, Multiprocessors: 132},
			Attributes: map[string]device.Attribute{
				device.AttributeArchitecture:      device.String("Hopper"),
				device.AttributeComputeCapability: device.Version("9.0"),
				attributeBrand:                    device.String("Nvidia"),
			},
		},
		"B200": {
			Model:    "NVIDIA B200 180GB HBM3e",
			Capacity: device.Capacity{MemoryBytes: 184320 << 20, Multiprocessors: 148},
			Attributes: map[string]device.Attribute{
				device.AttributeArchitecture:      device.String("Blackwell"),
				device.AttributeComputeCapability: device.Version("10.0"),
				attributeBrand:                    device.String("Nvidia"),
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, servers[name].new(), servers[name].hw)
			devices := watch(t, m.driver(t)).first()
			if len(devices) != 8 {
				t.Fatalf("found %d GPUs, want 8", len(devices))
			}

			want.ID = "GPU-00000005-0000-0000-0000-000000000005"
			want.Vendor, want.Kind = "nvidia.com", "gpu"
			want.Index, want.NUMANode, want.PCIAddress = 5, 1, "0000:6b:00.0"
			want.Health.State = device.Healthy
			want.Attributes[attributeUUID] = device.String(want.ID)
			want.Attributes[attributeMinor] = device.Int(5)
			want.Attributes[attributePCIeRoot] = device.String("pci0000:50")
			want.Attributes[device.AttributeDriverVersion] = device.Version(m.server.DriverVersion)
			want.Attributes[device.AttributeCUDAVersion] = device.Version(cudaVersions[name])
			ignore := cmp.Options{
				cmpopts.IgnoreFields(device.Device{}, "Links"),
				cmpopts.IgnoreFields(device.Health{}, "Since"),
			}
			if diff := cmp.Diff(want, devices[5], ignore); diff != "" {
				t.Error(diff)
			}
		})
	}
}

var cudaVersions = map[string]string{"A100": "12.4", "H100": "12.4", "H200": "12.4", "B200": "12.6"}

// A library of an old driver lacks functions, and calling one would end the
// process. The mock tells when one is called that should not be.
func TestOldLibrary(t *testing.T) {
	m := newMachine(t, dgxa100.New(), a100)
	for _, function := range []string{
		"nvmlDeviceGetArchitecture",
		"nvmlDeviceGetNumGpuCores",
		"nvmlDeviceGetNvLinkRemoteDeviceType",
	} {
		m.without[function] = true
	}
	for _, g := range m.gpus {
		g.GetArchitectureFunc, g.GetNumGpuCoresFunc, g.GetNvLinkRemoteDeviceTypeFunc = nil, nil, nil
	}
	devices := watch(t, m.driver(t)).first()
	if len(devices) != 8 {
		t.Fatalf("found %d GPUs, want 8", len(devices))
	}
	if d := devices[0]; d.Capacity.Multiprocessors != 0 || d.Attributes[device.AttributeArchitecture] != nil || len(d.Links) > 0 {
		t.Errorf("made up what the library can not tell: %+v", d)
	}
}

func TestAddress(t *testing.T) {
	for want, info := range map[string]nvml.PciInfo{
		"0000:3b:00.0":  pciInfo("0000:3b:00.0"),
		"0001:00:00.0":  pciInfo("0001:00:00.0"),
		"10000:e1:00.0": {BusId: busID("00010000:E1:00.0")},
		"":              {BusId: busID("nonsense")},
	} {
		if got := addressOf(info); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func busID(s string) (id [32]int8) {
	for i, c := range []byte(s) {
		id[i] = int8(c)
	}
	return id
}
