package config

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/machines"
)

// gpus returns so many GPUs, called GPU-0, GPU-1 and so on, of 80000 bytes.
func gpus(count int) []device.Device {
	devices := make([]device.Device, count)
	for i := range devices {
		devices[i] = device.Device{
			ID: device.ID(fmt.Sprintf("GPU-%d", i)), Vendor: "nvidia.com", Kind: "gpu", Model: "NVIDIA H100 80GB HBM3",
			Index: i, Capacity: device.Capacity{MemoryBytes: 80000}, Health: device.Health{State: device.Healthy},
		}
	}
	return devices
}

// slicesOf returns so many slices of a GPU, called MIG-3-0, MIG-3-1 and so on.
func slicesOf(gpu, count int, kind, profile string) []device.Device {
	devices := make([]device.Device, count)
	for i := range devices {
		devices[i] = device.Device{
			ID: device.ID(fmt.Sprintf("MIG-%d-%d", gpu, i)), Vendor: "nvidia.com", Kind: kind, Model: "NVIDIA H100 80GB HBM3 MIG " + profile,
			Index: gpu, Capacity: device.Capacity{MemoryBytes: 10000}, Health: device.Health{State: device.Healthy},
			Attributes: map[string]device.Attribute{
				device.AttributeParentUUID: device.String(fmt.Sprintf("GPU-%d", gpu)),
				device.AttributeProfile:    device.String(profile),
				device.AttributeMIGIndex:   device.Int(i),
			},
		}
	}
	return devices
}

// mixed is a node of three GPUs, the last of which is cut in two sorts.
func mixed() []device.Device {
	last := slicesOf(2, 3, "mig-1g.10gb", "1g.10gb")
	last[2] = slicesOf(2, 3, "mig-2g.20gb", "2g.20gb")[2]
	return append(gpus(2), last...)
}

// show writes a plan as a table: one line an offer.
func show(p Plan) string {
	var lines []string
	for _, o := range p.Offers {
		line := fmt.Sprintf("%s %s", o.Resource, strings.Join(o.IDs(), " "))
		if o.Strategy != Whole {
			line += " " + string(o.Strategy)
		}
		if o.Share != (Share{}) {
			line += fmt.Sprintf(" %dB %d%%", o.Share.MemoryBytes, o.Share.ComputePercent)
		}
		if o.OneEach {
			line += " one each"
		}
		lines = append(lines, strings.TrimPrefix(line, "nvidia.com/"))
	}
	return strings.Join(lines, "\n")
}

func TestPlan(t *testing.T) {
	for name, test := range map[string]struct {
		devices []device.Device
		file    string
		want    string
	}{
		"no devices":      {nil, inSection("timeSlicing", "    - {name: gpu, replicas: 2}"), ""},
		"nothing is said": {mixed(), "", "gpu GPU-0\ngpu GPU-1\nmig-1g.10gb MIG-2-0\nmig-1g.10gb MIG-2-1\nmig-2g.20gb MIG-2-2"},
		"another vendor": {
			[]device.Device{{ID: "card0", Vendor: "amd.com", Kind: "gpu"}},
			inSection("timeSlicing", "    - {name: amd.com/gpu, replicas: 2}"),
			"amd.com/gpu card0::0 card0::1 time-slicing",
		},
		"time-slicing": {gpus(2), inSection("timeSlicing", "    - {name: gpu, replicas: 3}"),
			"gpu GPU-0::0 GPU-0::1 GPU-0::2 time-slicing\ngpu GPU-1::0 GPU-1::1 GPU-1::2 time-slicing"},
		"MPS": {gpus(1), inSection("mps", "    - {name: gpu, replicas: 3}"),
			"gpu GPU-0::0 GPU-0::1 GPU-0::2 mps 26666B 33% one each"},
		"the usual new name": {gpus(1), inSection("timeSlicing", "    - {name: gpu, replicas: 2}\n    renameByDefault: true\n    failRequestsGreaterThanOne: true"),
			"gpu.shared GPU-0::0 GPU-0::1 time-slicing one each"},
		"an explicit new name": {gpus(1), inSection("timeSlicing", "    - {name: gpu, replicas: 2, rename: slow}\n    renameByDefault: true"),
			"slow GPU-0::0 GPU-0::1 time-slicing"},
		"one replica is the device": {gpus(1), inSection("timeSlicing", "    - {name: gpu, replicas: 1}\n    renameByDefault: true\n    failRequestsGreaterThanOne: true"),
			"gpu GPU-0"},
		"slices": {mixed(), inSection("timeSlicing", "    - {name: mig-1g.10gb, replicas: 2}"),
			"gpu GPU-0\ngpu GPU-1\nmig-1g.10gb MIG-2-0::0 MIG-2-0::1 time-slicing\nmig-1g.10gb MIG-2-1::0 MIG-2-1::1 time-slicing\nmig-2g.20gb MIG-2-2"},
		"one slice": {mixed(), inSection("timeSlicing", "    - {name: mig-1g.10gb, devices: [2:1], replicas: 2, rename: half}"),
			"gpu GPU-0\ngpu GPU-1\nmig-1g.10gb MIG-2-0\nhalf MIG-2-1::0 MIG-2-1::1 time-slicing\nmig-2g.20gb MIG-2-2"},
		"slices under the GPUs' name": {slicesOf(0, 2, "gpu", "1g.10gb"), inSection("timeSlicing", "    - {name: gpu, devices: [\"0:0\", MIG-0-1], replicas: 2}"),
			"gpu MIG-0-0::0 MIG-0-0::1 time-slicing\ngpu MIG-0-1::0 MIG-0-1::1 time-slicing"},
		"one shared, one whole": {gpus(2), inSection("timeSlicing", "    - {name: gpu, devices: [1], replicas: 2}\n    renameByDefault: true"),
			"gpu GPU-0\ngpu.shared GPU-1::0 GPU-1::1 time-slicing"},
		"the first of them": {gpus(3), inSection("timeSlicing", "    - {name: gpu, devices: 2, replicas: 2, rename: a}"),
			"a GPU-0::0 GPU-0::1 time-slicing\na GPU-1::0 GPU-1::1 time-slicing\ngpu GPU-2"},
		"each in another way": {gpus(5), inSection("timeSlicing", `    - {name: gpu, devices: [GPU-0], replicas: 2, rename: a}
    - {name: gpu, devices: [1], replicas: 3, rename: a}
    - {name: gpu, devices: [2], replicas: 1, rename: mine}
  mps:
    resources:
    - {name: gpu, devices: [3], replicas: 2, rename: half}`),
			"a GPU-0::0 GPU-0::1 time-slicing\na GPU-1::0 GPU-1::1 GPU-1::2 time-slicing\nmine GPU-2\nhalf GPU-3::0 GPU-3::1 mps 40000B 50% one each\ngpu GPU-4"},
		"unequal shares": {gpus(2), inSection("mps", `    - name: gpu
      devices: [0]
      shares:
      - {percent: 50, rename: half}
      - {percent: 20, replicas: 2, rename: fifth}`),
			"half GPU-0::0 mps 40000B 50% one each\nfifth GPU-0::1 GPU-0::2 mps 16000B 20% one each\ngpu GPU-1"},
		"one small share": {gpus(1), inSection("mps", "    - {name: gpu, shares: [{percent: 7}]}\n    renameByDefault: true\n    failRequestsGreaterThanOne: false"),
			"gpu.shared GPU-0::0 mps 5600B 7%"},
		"shares of one size on two GPUs": {gpus(2), inSection("mps", `    - {name: gpu, devices: [0], shares: [{percent: 50, rename: half}]}
    - {name: gpu, devices: [1], shares: [{percent: 50, rename: half}, {percent: 25, rename: quarter}]}`),
			"half GPU-0::0 mps 40000B 50% one each\nhalf GPU-1::0 mps 40000B 50% one each\nquarter GPU-1::1 mps 20000B 25% one each"},
		"new names by what devices are": {mixed(), `resources:
  gpus: [{pattern: "*A100*", name: a100}, {pattern: "*H100*", name: h100}, {pattern: "*", name: other}]
  mig: [{pattern: 1g*, name: small}]
sharing: {timeSlicing: {resources: [{name: h100, devices: [0], replicas: 2, rename: h100.part}, {name: small, replicas: 2}]}}`,
			"h100.part GPU-0::0 GPU-0::1 time-slicing\nh100 GPU-1\nsmall MIG-2-0::0 MIG-2-0::1 time-slicing\nsmall MIG-2-1::0 MIG-2-1::1 time-slicing\nmig-2g.20gb MIG-2-2"},
		"a rule for what is not here": {gpus(1), inSection("timeSlicing", "    - {name: mig-1g.10gb, replicas: 2}\n    - {name: amd.com/gpu, replicas: 2}"), "gpu GPU-0"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := read(t, from(test.file))
			plan, err := c.Plan(test.devices)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, show(plan)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPlanIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		devices []device.Device
		file    string
		want    string
	}{
		"one device by two names": {gpus(2), inSection("timeSlicing", "    - {name: gpu, devices: [0, 1], replicas: 2}\n    - {name: gpu, devices: [GPU-1], replicas: 3}"),
			"config.yaml:5: device 1 (GPU-1) is claimed at config.yaml:4 too; a device is shared in one way"},
		"one device by two strategies": {gpus(1), inSection("timeSlicing", "    - {name: gpu, devices: [0], replicas: 2}\n  mps:\n    resources:\n    - {name: gpu, devices: 1, replicas: 3}"),
			"config.yaml:7: device 0 (GPU-0) is claimed at config.yaml:4 too; a device is shared in one way"},
		"one device twice in a list": {gpus(1), inSection("timeSlicing", "    - {name: gpu, devices: [0, GPU-0], replicas: 2}"),
			"config.yaml:4: device 0 (GPU-0) is listed twice"},
		"shared and whole": {gpus(3), inSection("timeSlicing", "    - {name: gpu, devices: [1], replicas: 2}"),
			"config.yaml:4: under the name nvidia.com/gpu there would be device 0 whole and device 1 time-sliced, and who asks for it could not know which they get; set rename or renameByDefault"},
		"two strategies under one name": {gpus(2), inSection("timeSlicing", "    - {name: gpu, devices: [0], replicas: 2}\n  mps:\n    resources:\n    - {name: gpu, devices: [1], replicas: 2}"),
			"config.yaml:7: under the name nvidia.com/gpu there would be device 0 time-sliced and device 1 in 2 equal MPS shares, and who asks for it could not know which they get; set rename or renameByDefault"},
		"two sizes under one name": {gpus(2), inSection("mps", "    - {name: gpu, devices: [0], replicas: 2, rename: part}\n    - {name: gpu, devices: [1], shares: [{percent: 25, rename: part}]}"),
			"config.yaml:5: under the name nvidia.com/part there would be device 0 in 2 equal MPS shares and device 1 in MPS shares of 25%, and who asks for it could not know which they get; set rename or renameByDefault"},
		"a name that others have": {mixed(), inSection("timeSlicing", "    - {name: gpu, replicas: 2, rename: mig-1g.10gb}"),
			"config.yaml:4: under the name nvidia.com/mig-1g.10gb there would be device 0 time-sliced and device 2:0 whole, and who asks for it could not know which they get; set rename or renameByDefault"},
		"MPS on slices": {slicesOf(0, 1, "gpu", "1g.10gb"), inSection("mps", "    - {name: gpu, replicas: 2}"),
			"config.yaml:4: device 0:0 (MIG-0-0) can not be shared by MPS: only NVIDIA's whole GPUs are"},
		"a device twice":         {append(gpus(1), gpus(1)...), "", "plan the devices: GPU-0 is there twice"},
		"no name for Kubernetes": {[]device.Device{{ID: "x", Vendor: "kubernetes.io", Kind: "gpu"}}, "", `plan the devices: device x can not be asked for as "kubernetes.io/gpu": the domain kubernetes.io is Kubernetes' own`},
		"several": {gpus(1), inSection("timeSlicing", "    - {name: gpu, devices: [0, GPU-0, 4], replicas: 2}\n    - {name: gpu, devices: 1, replicas: 2}"),
			"config.yaml:4: device 0 (GPU-0) is listed twice\nconfig.yaml:5: device 0 (GPU-0) is claimed at config.yaml:4 too; a device is shared in one way\nconfig.yaml:4: it names device 4; of nvidia.com/gpu this node has device 0"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := read(t, from(test.file))
			plan, err := c.Plan(test.devices)
			if err == nil || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if len(plan.Offers) > 0 {
				t.Errorf("there is a plan: %s", show(plan))
			}
		})
	}
}

// Where a device is missing that the configuration names, the others are
// planned: a lost GPU must not take them along.
func TestAbsent(t *testing.T) {
	for name, test := range map[string]struct {
		devices []device.Device
		rule    string
		want    string
		plan    string
	}{
		"index": {gpus(2), "{name: gpu, devices: [1, 2], replicas: 2, rename: a}",
			"config.yaml:4: it names device 2; of nvidia.com/gpu this node has devices 0, 1", "gpu GPU-0\na GPU-1::0 GPU-1::1 time-slicing"},
		"UUID": {gpus(1), "{name: gpu, devices: [GPU-9], replicas: 2}",
			"config.yaml:4: it names device GPU-9; of nvidia.com/gpu this node has device 0", "gpu GPU-0"},
		"too few": {gpus(1), "{name: gpu, devices: 2, replicas: 2}",
			"config.yaml:4: it wants 2 devices; of nvidia.com/gpu this node has device 0", "gpu GPU-0::0 GPU-0::1 time-slicing"},
		"no driver yet": {nil, "{name: gpu, devices: [0], replicas: 2}",
			"config.yaml:4: it names device 0; of nvidia.com/gpu this node has none", ""},
		"of another resource": {mixed(), "{name: mig-1g.10gb, devices: [2:2], replicas: 2}",
			"config.yaml:4: device 2:2 is nvidia.com/mig-2g.20gb here, not nvidia.com/mig-1g.10gb", "gpu GPU-0\ngpu GPU-1\nmig-1g.10gb MIG-2-0\nmig-1g.10gb MIG-2-1\nmig-2g.20gb MIG-2-2"},
		"partitioned, by index": {slicesOf(0, 2, "gpu", "1g.10gb"), "{name: gpu, devices: [0], replicas: 2}",
			"config.yaml:4: GPU 0 is partitioned; name its slices: 0:0, 0:1", "gpu MIG-0-0\ngpu MIG-0-1"},
		"partitioned, by UUID": {slicesOf(0, 2, "gpu", "1g.10gb"), "{name: gpu, devices: [GPU-0], replicas: 2}",
			"config.yaml:4: GPU GPU-0 is partitioned; name its slices: 0:0, 0:1", "gpu MIG-0-0\ngpu MIG-0-1"},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := read(t, from(inSection("timeSlicing", "    - "+test.rule)))
			plan, err := c.Plan(test.devices)
			var absent *AbsentError
			if !errors.As(err, &absent) || err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
			if diff := cmp.Diff(test.plan, show(plan)); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// A plan follows from what the devices are, not from the order in which they
// are reported, nor from their health, which the doors look at.
func TestPlanIsStable(t *testing.T) {
	machine, err := machines.Load("h100x8")
	if err != nil {
		t.Fatal(err)
	}
	c, _ := read(t, from(inSection("timeSlicing", "    - {name: gpu, devices: 3, replicas: 2}\n    renameByDefault: true")))
	devices := machine.On("node")
	first, err := c.Plan(devices)
	if err != nil {
		t.Fatal(err)
	}
	reversed := machine.On("node")
	for i := range reversed {
		reversed[i] = devices[len(devices)-1-i]
		reversed[i].Health = device.Health{State: device.Unhealthy, Reason: "a test"}
	}
	second, err := c.Plan(reversed)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second); diff != "" {
		t.Error(diff)
	}
	if len(first.Offers) != 8 || first.Offers[2].Resource != "nvidia.com/gpu.shared" || first.Offers[3].Resource != "nvidia.com/gpu" {
		t.Errorf("the plan is\n%s", show(first))
	}
}

func TestReplicaIDs(t *testing.T) {
	for id, want := range map[string]struct {
		of        device.ID
		number    int
		isReplica bool
	}{
		"GPU-1::0":                      {"GPU-1", 0, true},
		"GPU-1::12":                     {"GPU-1", 12, true},
		"MIG-GPU-1/3/0::2":              {"MIG-GPU-1/3/0", 2, true},
		"a::b::3":                       {"a::b", 3, true},
		"GPU-1":                         {"GPU-1", 0, false},
		"0000:3b:00.0":                  {"0000:3b:00.0", 0, false},
		"GPU-1::":                       {"GPU-1::", 0, false},
		"GPU-1::x":                      {"GPU-1::x", 0, false},
		"GPU-1::-1":                     {"GPU-1::-1", 0, false},
		"GPU-1::01":                     {"GPU-1::01", 0, false},
		"GPU-1::+1":                     {"GPU-1::+1", 0, false},
		"GPU-1::9999999999999999999999": {"GPU-1::9999999999999999999999", 0, false},
	} {
		of, number, isReplica := SplitID(id)
		if of != want.of || number != want.number || isReplica != want.isReplica {
			t.Errorf("%s is %s, %d, %v", id, of, number, isReplica)
		}
		if isReplica && ReplicaID(of, number) != id {
			t.Errorf("%s does not come back", id)
		}
	}
}

func TestPatterns(t *testing.T) {
	for _, test := range []struct {
		pattern, text string
		want          bool
	}{
		{"*", "", true}, {"*", "NVIDIA H100", true},
		{"1g.10gb", "1g.10gb", true}, {"1g.10gb", "1g.10gb+me", false}, {"1g.10gb", "x1g.10gb", false}, {"1g.10gb", "1gx10gb", false},
		{"1g.*", "1g.10gb", true}, {"1g.*", "2g.20gb", false}, {"*gb", "1g.10gb", true}, {"*gb", "1g.10gb+me", false},
		{"*A100*40*", "NVIDIA A100-SXM4-40GB", true}, {"*A100*80*", "NVIDIA A100-SXM4-40GB", false},
		{"a*a", "a", false}, {"a*a", "aa", true}, {"a**a", "aba", true}, {"*ab*b", "ab", false},
	} {
		if got := matches(test.pattern, test.text); got != test.want {
			t.Errorf("%s matches %s: %v", test.pattern, test.text, got)
		}
	}
}
