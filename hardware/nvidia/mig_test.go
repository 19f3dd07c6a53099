package nvidia

import (
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxb200"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/conformance"
)

// The slices of an H200.
var (
	small  = cut{nvml.GPU_INSTANCE_PROFILE_1_SLICE, nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, "1g.18gb"}
	media  = cut{nvml.GPU_INSTANCE_PROFILE_1_SLICE_REV1, nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, "1g.18gb+me"}
	middle = cut{nvml.GPU_INSTANCE_PROFILE_3_SLICE, nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE, "3g.71gb"}
	narrow = cut{nvml.GPU_INSTANCE_PROFILE_3_SLICE, nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE, "1c.3g.71gb"}
)

func kinds(devices []device.Device) map[string]int {
	count := map[string]int{}
	for _, d := range devices {
		count[d.Kind]++
	}
	return count
}

func TestStrategies(t *testing.T) {
	for name, test := range map[string]struct {
		strategy MIGStrategy
		cuts     map[int][]cut
		all      []cut // of the GPUs that cuts does not name
		want     map[string]int
		refused  string // why none is offered
	}{
		"none, not partitioned":          {strategy: MIGNone, want: map[string]int{"gpu": 8}},
		"none, one partitioned":          {strategy: MIGNone, cuts: map[int][]cut{2: {small, middle}}, want: map[string]int{"gpu": 8}},
		"single, not partitioned":        {strategy: MIGSingle, want: map[string]int{"gpu": 8}},
		"single, all alike":              {strategy: MIGSingle, all: []cut{small, small, small}, want: map[string]int{"gpu": 24}},
		"single, one with fewer":         {strategy: MIGSingle, cuts: map[int][]cut{0: {small}}, all: []cut{small, small}, want: map[string]int{"gpu": 15}},
		"single, one with none":          {strategy: MIGSingle, cuts: map[int][]cut{0: {}}, all: []cut{small, small}, want: map[string]int{"gpu": 14}},
		"single, not alike":              {strategy: MIGSingle, cuts: map[int][]cut{0: {middle}}, all: []cut{small}, want: map[string]int{"gpu": 8}, refused: "1g.18gb, 3g.71gb"},
		"single, one is not partitioned": {strategy: MIGSingle, cuts: map[int][]cut{0: nil}, all: []cut{small}, want: map[string]int{"gpu": 8}, refused: "1g.18gb, whole GPUs"},
		"mixed, not partitioned":         {strategy: MIGMixed, want: map[string]int{"gpu": 8}},
		"mixed, of every kind": {
			strategy: MIGMixed,
			cuts:     map[int][]cut{1: {small, middle, media}, 3: {small, narrow}, 5: {}},
			want:     map[string]int{"gpu": 5, "mig-1g.18gb": 2, "mig-3g.71gb": 1, "mig-1g.18gb.me": 1, "mig-1c.3g.71gb": 1},
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, dgxh200.New(), h100)
			for i := range m.gpus {
				if cuts, named := test.cuts[i]; cuts != nil {
					m.partition(t, i, cuts...)
				} else if !named && test.all != nil {
					m.partition(t, i, test.all...)
				}
			}
			c := m.config(t)
			c.MIG = test.strategy
			devices := watch(t, newDriver(t, c)).first()
			if err := conformance.Devices(devices); err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(test.want, kinds(devices)); diff != "" {
				t.Error(diff)
			}
			for _, d := range devices {
				if d.Health.OK() != (test.refused == "") || !strings.Contains(d.Health.Reason, test.refused) {
					t.Errorf("%s: health %+v", d.ID, d.Health)
				}
			}
		})
	}
}

func TestUnknownStrategyIsRefused(t *testing.T) {
	if _, err := New(Config{MIG: "Mixed"}); err == nil || !strings.Contains(err.Error(), "none, single and mixed") {
		t.Errorf("got %v", err)
	}
}

func TestSlice(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	m.writeMIGMinors(t)
	m.partition(t, 5, small, middle)
	m.change(func() { m.gpus[5].slices = append([]nvml.Device{nil}, m.gpus[5].slices...) }) // a gap
	c := m.config(t)
	c.MIG = MIGMixed
	d := newDriver(t, c)
	devices := watch(t, d).first()
	want := device.Device{
		ID: "MIG-5-1-0", Vendor: "nvidia.com", Kind: "mig-3g.71gb", Model: "NVIDIA H200 141GB HBM3e MIG 3g.71gb",
		Index: 5, NUMANode: 1, PCIAddress: "0000:6b:00.0",
		Capacity: device.Capacity{MemoryBytes: 72704 << 20, Multiprocessors: 48},
		Attributes: map[string]device.Attribute{
			attributeUUID:                     device.String("MIG-5-1-0"),
			device.AttributeParentUUID:        device.String(m.gpus[5].UUID),
			device.AttributeProfile:           device.String("3g.71gb"),
			device.AttributeMIGIndex:          device.Int(2),
			attributeMinor:                    device.Int(5),
			attributeBrand:                    device.String("Nvidia"),
			attributePCIeRoot:                 device.String("pci0000:50"),
			device.AttributeArchitecture:      device.String("Hopper"),
			device.AttributeComputeCapability: device.Version("9.0"),
			device.AttributeDriverVersion:     device.Version("550.54.15"),
			device.AttributeCUDAVersion:       device.Version("12.4"),
		},
		Health: device.Health{State: device.Healthy},
	}
	if diff := cmp.Diff(want, devices[len(devices)-1], cmpopts.IgnoreFields(device.Health{}, "Since")); diff != "" {
		t.Error(diff)
	}
	for _, whole := range devices[:7] {
		if len(whole.Links) != 6 {
			t.Errorf("%s has %d links, want those to the 6 others that are not partitioned", whole.ID, len(whole.Links))
		}
	}

	// GPU 5, its GPU instance 1 and the compute instance 0 of that.
	edits, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{want.ID}})
	if err != nil {
		t.Fatal(err)
	}
	nodes := []device.DeviceNode{
		node("nvidiactl"), node("nvidia-uvm"), node("nvidia-uvm-tools"), node("nvidia5"),
		node("nvidia-caps/nvidia-cap687"), node("nvidia-caps/nvidia-cap688"),
	}
	if diff := cmp.Diff(nodes, edits.DeviceNodes); diff != "" {
		t.Error(diff)
	}
	if got := edits.Env["NVIDIA_VISIBLE_DEVICES"]; got != "MIG-5-1-0" {
		t.Errorf("NVIDIA_VISIBLE_DEVICES is %s", got)
	}
}

func TestMIGConformance(t *testing.T) {
	for name, strategy := range map[string]MIGStrategy{"single": MIGSingle, "mixed": MIGMixed, "none": MIGNone} {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) conformance.Subject {
				m := newMachine(t, dgxh200.New(), h100)
				m.writeMIGMinors(t)
				shared := []string{"/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/nvidia-uvm-tools"}
				for i := range m.gpus {
					m.partition(t, i, small, small)
					if strategy != MIGNone { // the slices of a GPU share its node
						shared = append(shared, fmt.Sprintf("/dev/nvidia%d", i))
					}
				}
				c := m.config(t)
				c.MIG = strategy
				s := conformance.Subject{
					Driver:      newDriver(t, c),
					Devices:     16,
					SharedNodes: shared,
					Change: func() error {
						m.change(func() { m.gpus[3].lost = true })
						return nil
					},
				}
				if strategy == MIGNone {
					s.Devices = 8
				}
				return s
			})
		})
	}
}

// What befalls a GPU befalls every slice of it, and no other.
func TestEventReachesEverySlice(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	for i := range m.gpus {
		m.partition(t, i, small, small, middle)
	}
	c := m.config(t)
	c.MIG = MIGMixed
	slow(&c)
	w := watch(t, newDriver(t, c))
	w.until("24 healthy slices", allHealthy(24))
	m.raise(3, 94)
	w.until("3 suspect slices", func(now []device.Device) bool {
		for _, d := range now {
			of3 := d.Attributes[device.AttributeParentUUID] == device.String(m.gpus[3].UUID)
			if of3 != (d.Health.State == device.Suspect) || of3 == d.Health.OK() {
				return false
			}
		}
		return len(now) == 24
	})
}

func TestPartitioningIsNoticed(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	c := m.config(t)
	c.MIG = MIGMixed
	w := watch(t, newDriver(t, c))
	steps := []struct {
		do   func()
		want map[string]int
	}{
		{func() {}, map[string]int{"gpu": 8}},
		{func() { m.partition(t, 2, small, small) }, map[string]int{"gpu": 7, "mig-1g.18gb": 2}},
		{func() { m.partition(t, 2, middle) }, map[string]int{"gpu": 7, "mig-3g.71gb": 1}},
		{func() { m.partition(t, 2) }, map[string]int{"gpu": 7}},
		{func() { m.gpus[2].SetMigMode(nvml.DEVICE_MIG_DISABLE) }, map[string]int{"gpu": 8}},
	}
	for _, step := range steps {
		step.do()
		w.until("the new partitions", func(now []device.Device) bool {
			return cmp.Equal(kinds(now), step.want) && allHealthy(len(now))(now)
		})
	}
}

// The name of a profile follows from the sizes where NVML's name of the slice
// does not have it.
func TestProfileBySize(t *testing.T) {
	for name, test := range map[string]struct {
		machine *machine
		cut     cut
	}{
		"1g.5gb":     {newMachine(t, dgxa100.New(), a100), cut{gpu: nvml.GPU_INSTANCE_PROFILE_1_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE}},
		"3g.20gb":    {newMachine(t, dgxa100.New(), a100), cut{gpu: nvml.GPU_INSTANCE_PROFILE_3_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_3_SLICE}},
		"1c.2g.20gb": {newMachine(t, dgxh100.New(), h100), cut{gpu: nvml.GPU_INSTANCE_PROFILE_2_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE}},
		"7g.80gb":    {newMachine(t, dgxh100.New(), h100), cut{gpu: nvml.GPU_INSTANCE_PROFILE_7_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_7_SLICE}},
		"1g.18gb":    {newMachine(t, dgxh200.New(), h100), cut{gpu: nvml.GPU_INSTANCE_PROFILE_1_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_1_SLICE}},
		"4g.90gb":    {newMachine(t, dgxb200.New(), b200), cut{gpu: nvml.GPU_INSTANCE_PROFILE_4_SLICE, compute: nvml.COMPUTE_INSTANCE_PROFILE_4_SLICE}},
	} {
		t.Run(name, func(t *testing.T) {
			test.machine.partition(t, 0, test.cut)
			c := test.machine.config(t)
			c.MIG = MIGMixed
			devices := watch(t, newDriver(t, c)).first()
			if got := kinds(devices); got["mig-"+name] != 1 {
				t.Errorf("got %v", got)
			}
		})
	}
}

func TestCapabilityNodes(t *testing.T) {
	const recorded = "config 1\nmonitor 2\ngpu0/gi0/access 3\ngpu0/gi0/ci0/access 4\ngpu0/gi0/ci1/access 5\ngpu0/gi1/access 12\ngpu0/gi1/ci0/access 13\n"
	for name, test := range map[string]struct {
		list      string
		gpu       int
		instances []instance
		want      []string
		refused   string
	}{
		"not partitioned":         {list: ""},
		"one":                     {list: recorded, instances: []instance{{1, 0}}, want: []string{"nvidia-caps/nvidia-cap12", "nvidia-caps/nvidia-cap13"}},
		"two of one GPU instance": {list: recorded, instances: []instance{{0, 0}, {0, 1}}, want: []string{"nvidia-caps/nvidia-cap3", "nvidia-caps/nvidia-cap4", "nvidia-caps/nvidia-cap3", "nvidia-caps/nvidia-cap5"}},
		"one that is not listed":  {list: recorded, instances: []instance{{1, 1}}, refused: "gpu0/gi1/ci1/access"},
		"another GPU":             {list: recorded, gpu: 1, instances: []instance{{0, 0}}, refused: "gpu1/gi0/access"},
		"no list":                 {instances: []instance{{0, 0}}, refused: "mig-minors"},
		"no number":               {list: "gpu0/gi0/access x\n", instances: []instance{{0, 0}}, refused: "mig-minors"},
		"half a line":             {list: "gpu0/gi0/access\n", instances: []instance{{0, 0}}, refused: "mig-minors"},
	} {
		t.Run(name, func(t *testing.T) {
			host := fstest.MapFS{}
			if test.list != "" {
				host[migMinors] = &fstest.MapFile{Data: []byte(test.list)}
			}
			got, err := capabilityNodes(host, test.gpu, test.instances)
			if (err != nil) != (test.refused != "") || err != nil && !strings.Contains(err.Error(), test.refused) {
				t.Fatalf("got the error %v, want one with %q", err, test.refused)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}
