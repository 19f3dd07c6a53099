package config

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// from reads a file and nothing else.
func from(text string) Sources {
	return Sources{File: &File{Name: "config.yaml", Data: []byte(text)}}
}

func lookup(values map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		value, set := values[name]
		return value, set
	}
}

func read(t *testing.T, s Sources) (Config, []string) {
	t.Helper()
	c, warnings, err := Read(s)
	if err != nil {
		t.Fatal(err)
	}
	return c, warnings
}

// with changes the defaults.
func with(change func(*Config)) Config {
	c := defaults()
	change(&c)
	return c
}

func TestReadFile(t *testing.T) {
	for name, test := range map[string]struct {
		file string
		want Config
	}{
		"nothing":         {"", defaults()},
		"a comment":       {"# nothing", defaults()},
		"null":            {"---\n", defaults()},
		"only a version":  {"version: v1", defaults()},
		"without version": {"flags: {migStrategy: mixed}", with(func(c *Config) { c.MIGStrategy = MIGMixed })},
		"empty sections":  {"version: v1\nflags:\n  plugin:\n  gfd:\nresources:\nsharing:\n  mps:\nimex:", defaults()},
		"empty values":    {"flags: {mpsRoot: \"\", migStrategy: \"\", plugin: {deviceListStrategy: }}", defaults()},
		"JSON":            {`{"version":"v1","flags":{"failOnInitError":false,"plugin":{"deviceListStrategy":["cdi-cri"]}}}`, with(func(c *Config) { c.DeviceLists = []DeviceList{CDICRI} })},
		"every flag": {`
version: v1
flags:
  migStrategy: "single"
  failOnInitError: yes
  mpsRoot: /run/nvidia/mps
  nvidiaDriverRoot: /run/nvidia/driver
  nvidiaDevRoot: /
  gdrcopyEnabled: true
  gdsEnabled: on
  mofedEnabled: True
  useNodeFeatureAPI: false
  deviceDiscoveryStrategy: auto
  plugin:
    passDeviceSpecs: true
    deviceListStrategy: [envvar, cdi-cri, envvar]
    deviceIDStrategy: index
    cdiAnnotationPrefix: cdi.example.com/
    nvidiaCTKPath: /usr/local/nvidia/toolkit/nvidia-ctk
    containerDriverRoot: /driver-root
    kubeletSocket: /var/lib/kubelet/device-plugins/kubelet.sock
    cdiFeatureFlags: a
    sharedDevicesAllocationPolicy: packed
  gfd:
    oneshot: false
    noTimestamp: true
    sleepInterval: 60s
    outputFile: /etc/kubernetes/node-feature-discovery/features.d/gfd
    machineTypeFile: /sys/class/dmi/id/product_name
imex:
  channelIDs: [0]
  required: true
`, Config{
			MIGStrategy: MIGSingle, AllocationPolicy: Packed,
			DriverRoot: "/run/nvidia/driver", DevRoot: "/", MPSRoot: "/run/nvidia/mps",
			DeviceLists: []DeviceList{EnvVar, CDICRI}, DeviceID: ByIndex,
			CDIAnnotationPrefix: "cdi.example.com/", CDIHookPath: "/usr/local/nvidia/toolkit/nvidia-ctk", CDIFeatures: []string{"a"},
			GDRCopy: true, GDS: true, MOFED: true,
			IMEXChannels: []int{0}, IMEXRequired: true,
			KubeletSocket: "/var/lib/kubelet/device-plugins/kubelet.sock",
			Labels:        Labels{NoTimestamp: true, MachineTypeFile: "/sys/class/dmi/id/product_name"},
		}},
		"device nodes are with the driver": {"flags: {nvidiaDriverRoot: /run/nvidia/driver}", with(func(c *Config) {
			c.DriverRoot, c.DevRoot = "/run/nvidia/driver", "/run/nvidia/driver"
		})},
		"time-slicing as NVIDIA has it": {`
version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    failRequestsGreaterThanOne: true
    resources:
    - name: nvidia.com/gpu
      replicas: 10
    - name: nvidia.com/mig-1g.5gb
      replicas: 2
`, with(func(c *Config) {
			c.Sharing = []Rule{
				{Where: "config.yaml:8", Resource: "nvidia.com/gpu", Devices: All{}, Strategy: TimeSlicing, OneEach: true, Parts: []Part{{"nvidia.com/gpu.shared", 10, 0}}},
				{Where: "config.yaml:10", Resource: "nvidia.com/mig-1g.5gb", Devices: All{}, Strategy: TimeSlicing, OneEach: true, Parts: []Part{{"nvidia.com/mig-1g.5gb.shared", 2, 0}}},
			}
		})},
		"MPS as NVIDIA has it": {`
sharing:
  mps:
    resources:
    - {name: gpu, replicas: 4, devices: all}
`, with(func(c *Config) {
			c.Sharing = []Rule{{Where: "config.yaml:5", Resource: "nvidia.com/gpu", Devices: All{}, Strategy: MPS, OneEach: true, Parts: []Part{{"nvidia.com/gpu", 4, 0}}}}
		})},
		"devices that differ": {`
sharing:
  timeSlicing:
    resources:
    - {name: nvidia.com/gpu, devices: 2, replicas: 3, rename: gpu.slow}
    - {name: nvidia.com/gpu, devices: [5], replicas: 1, rename: example.com/own-gpu}
    - {name: nvidia.com/mig-1g.10gb, devices: [0:1, "1:0", MIG-b1028956-cfa2-0990-bf4a-5da9abb51763], replicas: 2}
    - {name: amd.com/gpu, replicas: 2}
  mps:
    renameByDefault: true
    failRequestsGreaterThanOne: false
    resources:
    - {name: nvidia.com/gpu, devices: [6, GPU-b1028956-cfa2-0990-bf4a-5da9abb51763], replicas: 2}
    - name: nvidia.com/gpu
      devices: [7]
      shares:
      - {percent: 50, rename: gpu.half}
      - {percent: 25, rename: gpu.quarter, replicas: 2}
    - {name: nvidia.com/gpu, devices: ["8"], shares: [{percent: 30}]}
`, with(func(c *Config) {
			c.Sharing = []Rule{
				{Where: "config.yaml:5", Resource: "nvidia.com/gpu", Devices: First(2), Strategy: TimeSlicing, Parts: []Part{{"nvidia.com/gpu.slow", 3, 0}}},
				{Where: "config.yaml:6", Resource: "nvidia.com/gpu", Devices: These{"5"}, Strategy: Whole, Parts: []Part{{"example.com/own-gpu", 1, 0}}},
				{Where: "config.yaml:7", Resource: "nvidia.com/mig-1g.10gb", Devices: These{"0:1", "1:0", "MIG-b1028956-cfa2-0990-bf4a-5da9abb51763"}, Strategy: TimeSlicing, Parts: []Part{{"nvidia.com/mig-1g.10gb", 2, 0}}},
				{Where: "config.yaml:8", Resource: "amd.com/gpu", Devices: All{}, Strategy: TimeSlicing, Parts: []Part{{"amd.com/gpu", 2, 0}}},
				{Where: "config.yaml:13", Resource: "nvidia.com/gpu", Devices: These{"6", "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"}, Strategy: MPS, Parts: []Part{{"nvidia.com/gpu.shared", 2, 0}}},
				{Where: "config.yaml:14", Resource: "nvidia.com/gpu", Devices: These{"7"}, Strategy: MPS, Parts: []Part{{"nvidia.com/gpu.half", 1, 50}, {"nvidia.com/gpu.quarter", 2, 25}}},
				{Where: "config.yaml:19", Resource: "nvidia.com/gpu", Devices: These{"8"}, Strategy: MPS, Parts: []Part{{"nvidia.com/gpu.shared", 1, 30}}},
			}
		})},
		"names": {`
sharing: {timeSlicing: {resources: [{name: a100, replicas: 2}]}}
resources:
  gpus:
  - {pattern: "*A100*", name: a100}
  - {pattern: "*", name: nvidia.com/gpu}
  mig:
  - {pattern: 1g.*, name: example.com/small}
`, with(func(c *Config) {
			c.Names = []Naming{{false, "*A100*", "nvidia.com/a100"}, {false, "*", "nvidia.com/gpu"}, {true, "1g.*", "example.com/small"}}
			c.Sharing = []Rule{{Where: "config.yaml:2", Resource: "nvidia.com/a100", Devices: All{}, Strategy: TimeSlicing, Parts: []Part{{"nvidia.com/a100", 2, 0}}}}
		})},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := read(t, from(test.file))
			if diff := cmp.Diff(test.want, c); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPrecedence(t *testing.T) {
	file := &File{Name: "config.yaml", Data: []byte("flags: {migStrategy: single, nvidiaDriverRoot: /file, plugin: {deviceListStrategy: envvar}}")}
	for name, test := range map[string]struct {
		env, flags map[string]string
		strategy   MIGStrategy
		root       string
		lists      []DeviceList
	}{
		"file":                  {nil, nil, MIGSingle, "/file", []DeviceList{EnvVar}},
		"environment":           {map[string]string{"MIG_STRATEGY": "mixed", "DEVICE_LIST_STRATEGY": "cdi-cri, volume-mounts"}, nil, MIGMixed, "/file", []DeviceList{CDICRI, VolumeMounts}},
		"an empty variable":     {map[string]string{"MIG_STRATEGY": ""}, nil, MIGSingle, "/file", []DeviceList{EnvVar}},
		"flag":                  {nil, map[string]string{"mig-strategy": "none", "nvidia-driver-root": "/flag"}, MIGNone, "/flag", []DeviceList{EnvVar}},
		"flag over environment": {map[string]string{"NVIDIA_DRIVER_ROOT": "/env", "MIG_STRATEGY": "mixed"}, map[string]string{"driver-root": "/flag"}, MIGMixed, "/flag", []DeviceList{EnvVar}},
	} {
		t.Run(name, func(t *testing.T) {
			c, _ := read(t, Sources{Flags: lookup(test.flags), Env: lookup(test.env), File: file})
			if c.MIGStrategy != test.strategy || c.DriverRoot != test.root || !slices.Equal(c.DeviceLists, test.lists) {
				t.Errorf("got %s, %s, %v", c.MIGStrategy, c.DriverRoot, c.DeviceLists)
			}
		})
	}
}

func TestEnvironmentOnly(t *testing.T) {
	c, warnings := read(t, Sources{Env: lookup(map[string]string{
		"DP_DISABLE_HEALTHCHECKS": "13, xids", "DP_ENABLE_HEALTHCHECKS": "ALL,79",
		"NVIDIA_CTK_PATH": "/old", "NVIDIA_CDI_HOOK_PATH": "/new", "IMEX_CHANNEL_IDS": "0",
	})})
	want := with(func(c *Config) {
		c.DisableHealthChecks, c.EnableHealthChecks = "13, xids", "ALL,79"
		c.CDIHookPath, c.IMEXChannels = "/new", []int{0}
	})
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
	const conflict = "environment variable NVIDIA_CTK_PATH is the same setting as environment variable NVIDIA_CDI_HOOK_PATH, which is set otherwise and wins"
	if !slices.Contains(warnings, conflict) {
		t.Errorf("the warnings are %q", warnings)
	}
}

func TestPath(t *testing.T) {
	for want, s := range map[string]Sources{
		"":      {},
		"/env":  {Env: lookup(map[string]string{"CONFIG_FILE": "/env"}), Flags: lookup(nil)},
		"/flag": {Env: lookup(map[string]string{"CONFIG_FILE": "/env"}), Flags: lookup(map[string]string{"config-file": "/flag"})},
	} {
		if got := s.Path(); got != want {
			t.Errorf("the path is %q, want %q", got, want)
		}
	}
}

// Everything that is set and not acted on is said once, and nothing else.
func TestWarnings(t *testing.T) {
	for _, s := range Settings() {
		if s.Note == "" || s.Status == Pending && s.Until == "" {
			t.Errorf("%s does not say what becomes of it", s.name())
		}
		if s.apply == nil || len(s.Env) == 0 {
			continue
		}
		quiet := map[string]bool{}
		for _, value := range slices.Concat(s.like, []string{"true", "false", "none", "mixed", "nvml", "tegra", "uuid", "index", "cdi-cri", "packed", "/a/b", "1h", "0", "79"}) {
			_, warnings, err := Read(Sources{Env: lookup(map[string]string{s.Env[0]: value})})
			if err != nil || value == "" || s.Bool && value == "0" {
				continue
			}
			want := 1
			if s.Status == Acted || slices.Contains(s.like, value) {
				want = 0
			}
			quiet[value] = want == 0
			if len(warnings) != want || want == 1 && !strings.HasPrefix(warnings[0], "environment variable "+s.Env[0]+" is ") {
				t.Errorf("%s=%s: the warnings are %q", s.Env[0], value, warnings)
			}
		}
		if len(quiet) == 0 {
			t.Errorf("%s takes none of the values that were tried", s.Env[0])
		}
	}

	sharing := "version: v1\nsharing:\n  mps:\n    resources: [{name: gpu, devices: [0], replicas: 2}, {name: gpu, devices: [1], replicas: 2}]\n"
	_, warnings := read(t, from(sharing))
	var want []string
	if s, _ := settingAt("sharing.mps.resources[].replicas"); s.Status == Pending {
		want = []string{"config.yaml:3: sharing.mps is read, but not acted on yet: " + s.Until}
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}

	_, warnings = read(t, Sources{
		File:  &File{Name: "config.yaml", Data: []byte("flags:\n  failOnInitError: false\n  deviceDiscoveryStrategy: tegra\n  plugin:\n    passDeviceSpecs: false\n")},
		Env:   lookup(map[string]string{"FAIL_ON_INIT_ERROR": "1"}),
		Flags: lookup(map[string]string{"oneshot": "true"}),
	})
	want = []string{
		"environment variable FAIL_ON_INIT_ERROR is not acted on: Without a working driver the agent stays up, says why in its log, and goes on when the driver answers.",
		"config.yaml:3: flags.deviceDiscoveryStrategy is not acted on: GPUs are found through NVML (auto, nvml). tegra and vfio are not supported.",
		"config.yaml:5: flags.plugin.passDeviceSpecs is not acted on: As true: a container is always given the device nodes of its GPUs.",
		"flag --oneshot is not acted on: The agent keeps running.",
	}
	if diff := cmp.Diff(want, warnings); diff != "" {
		t.Error(diff)
	}
}
