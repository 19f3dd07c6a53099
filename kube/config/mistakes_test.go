package config

import (
	"strings"
	"testing"
)

// inSection puts entries into a section of sharing. They begin on line 4.
func inSection(section, entries string) string {
	return "sharing:\n  " + section + ":\n    resources:\n" + entries
}

func TestMistakesInFile(t *testing.T) {
	const uuid = "GPU-b1028956-cfa2-0990-bf4a-5da9abb51763"
	for _, test := range []struct{ name, file, want string }{
		{"not YAML", "version: v1\nflags: a: b", "config.yaml:2: not valid YAML: mapping values are not allowed in this context"},
		{"two documents", "version: v1\n---\nversion: v1", "config.yaml:2: a second document begins here; a file holds one configuration"},
		{"a list", "- version: v1", "config.yaml:1: configuration: wanted keys and values, found a list"},
		{"version", "version: v2", `config.yaml:1: version: "v2" is not known; it is v1`},
		{"unknown key", "version: v1\nflag: {}", `config.yaml:2: configuration: unknown key "flag"; the keys are version, flags, resources, sharing, imex`},
		{"key in another case", "flags:\n  migstrategy: none", `config.yaml:2: flags: unknown key "migstrategy"; it is written migStrategy`},
		{"key on the wrong level", "flags:\n  gfd:\n    migStrategy: none", `config.yaml:3: flags.gfd: unknown key "migStrategy"; the keys are oneshot, noTimestamp, sleepInterval, outputFile, machineTypeFile`},
		{"key twice", "flags: {}\nflags: {}", `config.yaml:2: configuration: "flags" is there twice`},
		{"alias", "flags: &f {migStrategy: none}\nsharing: *f", "config.yaml:2: sharing: wanted keys and values, found the alias *f, which is not supported"},

		{"choice", "flags: {migStrategy: Mixed}", `config.yaml:1: flags.migStrategy: "Mixed" is not known; it is one of none, single, mixed`},
		{"text that is a list", "flags: {migStrategy: [none]}", "config.yaml:1: flags.migStrategy: wanted a text, found a list"},
		{"text that is a bool", "flags: {nvidiaDriverRoot: true}", `config.yaml:1: flags.nvidiaDriverRoot: wanted a text, found "true"`},
		{"bool that is a text", `flags: {failOnInitError: "true"}`, `config.yaml:1: flags.failOnInitError: wanted true or false, found "true"`},
		{"bool that is a number", "flags: {gdsEnabled: 1}", `config.yaml:1: flags.gdsEnabled: wanted true or false, found "1"`},
		{"path", "flags: {mpsRoot: run/mps}", `config.yaml:1: flags.mpsRoot: "run/mps" is not an absolute path`},
		{"one of a list", "flags: {plugin: {deviceListStrategy: [envvar, cdi]}}", `config.yaml:1: flags.plugin.deviceListStrategy: "cdi" is not known; it is one of envvar, volume-mounts, cdi-annotations, cdi-cri`},
		{"empty list", "flags: {plugin: {deviceListStrategy: []}}", "config.yaml:1: flags.plugin.deviceListStrategy: the list is empty"},
		{"policy", "flags: {plugin: {sharedDevicesAllocationPolicy: spread}}", `config.yaml:1: flags.plugin.sharedDevicesAllocationPolicy: "spread" is not known; it is one of distributed, packed`},
		{"duration", "flags: {gfd: {sleepInterval: 60}}", `config.yaml:1: flags.gfd.sleepInterval: "60" is not a time such as 60s`},
		{"IMEX channel", "imex: {channelIDs: [1]}", "config.yaml:1: imex.channelIDs: it is [] or [0]"},
		{"IMEX channels", "imex: {channelIDs: [0, 0]}", "config.yaml:1: imex.channelIDs: it is [] or [0]"},

		{"pattern without name", "resources:\n  gpus:\n  - pattern: x", `config.yaml:3: resources.gpus[0]: the key "name" is missing`},
		{"migs", "resources:\n  migs: []", `config.yaml:2: resources: unknown key "migs"; the keys are gpus, mig`},
		{"no name for Kubernetes", "resources: {mig: [{pattern: a, name: a/b/c}]}", `config.yaml:1: resources.mig[0]: name: resource name "a/b/c": the kind "b/c" contains a slash`},

		{"no resources", "sharing:\n  timeSlicing:\n    renameByDefault: true", `config.yaml:3: sharing.timeSlicing: the key "resources" is missing`},
		{"empty resources", inSection("timeSlicing", "     []"), "config.yaml:4: sharing.timeSlicing.resources: the list is empty"},
		{"null resources", inSection("timeSlicing", ""), "config.yaml:3: sharing.timeSlicing.resources: wanted a list, found nothing"},
		{"an entry that is none", inSection("timeSlicing", "    - gpu"), `config.yaml:4: sharing.timeSlicing.resources[0]: wanted keys and values, found "gpu"`},
		{"no name", inSection("timeSlicing", "    - replicas: 2"), `config.yaml:4: sharing.timeSlicing.resources[0]: the key "name" is missing`},
		{"no replicas", inSection("timeSlicing", "    - name: gpu"), `config.yaml:4: sharing.timeSlicing.resources[0]: the key "replicas" is missing`},
		{"no replicas at all", inSection("timeSlicing", "    - {name: gpu, replicas: 0}"), "config.yaml:4: sharing.timeSlicing.resources[0]: replicas: 0 is not a number from 1 to 4096"},
		{"fewer than none", inSection("mps", "    - {name: gpu, replicas: -1}"), "config.yaml:4: sharing.mps.resources[0]: replicas: -1 is not a number from 1 to 48"},
		{"more clients than MPS takes", inSection("mps", "    - {name: gpu, replicas: 49}"), "config.yaml:4: sharing.mps.resources[0]: replicas: 49 is not a number from 1 to 48"},
		{"replicas in quotes", inSection("timeSlicing", `    - {name: gpu, replicas: "2"}`), `config.yaml:4: sharing.timeSlicing.resources[0]: replicas: wanted a whole number, found "2"`},
		{"name of nothing", inSection("timeSlicing", "    - {name: nvidia.com/gpus, replicas: 2}"), "config.yaml:4: sharing.timeSlicing.resources[0]: name: nothing is called nvidia.com/gpus; there are nvidia.com/gpu, nvidia.com/mig-…"},
		{"rename for nobody", inSection("timeSlicing", "    - {name: gpu, replicas: 2, rename: kubernetes.io/gpu}"), `config.yaml:4: sharing.timeSlicing.resources[0]: rename: resource name "kubernetes.io/gpu": the domain kubernetes.io is Kubernetes' own`},

		{"devices in words", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: some}"), `config.yaml:4: sharing.timeSlicing.resources[0]: devices: wanted all, a number or a list, found "some"`},
		{"no devices", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: 0}"), "config.yaml:4: sharing.timeSlicing.resources[0]: devices: 0 is not a number from 1 to 1024"},
		{"empty devices", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: []}"), "config.yaml:4: sharing.timeSlicing.resources[0]: devices: the list is empty"},
		{"unknown device", inSection("timeSlicing", "    - name: gpu\n      replicas: 2\n      devices: [0,\n        gpu1]"), `config.yaml:7: sharing.timeSlicing.resources[0]: devices: "gpu1" is no device; write an index (0), a MIG index (0:1) or a UUID (GPU-…, MIG-…)`},
		{"half a MIG index", inSection("timeSlicing", `    - {name: gpu, replicas: 2, devices: ["0:"]}`), `config.yaml:4: sharing.timeSlicing.resources[0]: devices: "0:" is no device; write an index (0), a MIG index (0:1) or a UUID (GPU-…, MIG-…)`},
		{"device twice", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: [1, "+uuid+", 1]}"), "config.yaml:4: sharing.timeSlicing.resources[0]: devices: 1 is there twice"},

		{"all for two", inSection("timeSlicing", "    - {name: gpu, replicas: 2}\n    - {name: nvidia.com/gpu, replicas: 4}"), "config.yaml:5: sharing.timeSlicing.resources[1]: config.yaml:4 claims the same devices of nvidia.com/gpu too; a device is shared in one way, so list the devices of each"},
		{"all and one", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: [0]}\n    - {name: gpu, replicas: 4}"), "config.yaml:5: sharing.timeSlicing.resources[1]: config.yaml:4 claims the same devices of nvidia.com/gpu too; a device is shared in one way, so list the devices of each"},
		{"first for two", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: 1}\n    - {name: gpu, replicas: 4, devices: 2}"), "config.yaml:5: sharing.timeSlicing.resources[1]: config.yaml:4 claims the first device of nvidia.com/gpu too; a device is shared in one way, so list the devices of each"},
		{"one for two", inSection("timeSlicing", "    - {name: gpu, replicas: 2, devices: [0, 1]}\n    - {name: gpu, replicas: 4, devices: [2, 1]}"), "config.yaml:5: sharing.timeSlicing.resources[1]: config.yaml:4 claims device 1 of nvidia.com/gpu too; a device is shared in one way, so list the devices of each"},
		{"two strategies", inSection("timeSlicing", "    - {name: gpu, replicas: 2}\n  mps:\n    resources:\n    - {name: gpu, replicas: 2}"), "config.yaml:7: sharing.mps.resources[0]: config.yaml:4 claims the same devices of nvidia.com/gpu too; a device is shared in one way, so list the devices of each"},

		{"MPS on slices", inSection("mps", "    - {name: mig-1g.5gb, replicas: 2}"), "config.yaml:4: sharing.mps.resources[0]: nvidia.com/mig-1g.5gb can not be shared by MPS: only whole GPUs are"},
		{"MPS on others", inSection("mps", "    - {name: amd.com/gpu, replicas: 2}"), "config.yaml:4: sharing.mps.resources[0]: amd.com/gpu can not be shared by MPS, which is for NVIDIA's GPUs"},
		{"shares of time", inSection("timeSlicing", "    - {name: gpu, replicas: 2, shares: []}"), `config.yaml:4: sharing.timeSlicing.resources[0]: unknown key "shares"; the keys are name, rename, devices, replicas`},
		{"shares and replicas", inSection("mps", "    - {name: gpu, replicas: 2, shares: [{percent: 50}]}"), "config.yaml:4: sharing.mps.resources[0]: it has either replicas, which are equal, or shares"},
		{"no shares", inSection("mps", "    - {name: gpu, shares: []}"), "config.yaml:4: sharing.mps.resources[0]: shares: the list is empty"},
		{"no percent", inSection("mps", "    - {name: gpu, shares: [{replicas: 2}]}"), `config.yaml:4: sharing.mps.resources[0]: shares[0]: the key "percent" is missing`},
		{"no share", inSection("mps", "    - {name: gpu, shares: [{percent: 0}]}"), "config.yaml:4: sharing.mps.resources[0]: shares[0]: percent: 0 is not a number from 1 to 100"},
		{"shares without names", inSection("mps", "    - name: gpu\n      shares:\n      - {percent: 50, rename: half}\n      - {percent: 25}"), `config.yaml:7: sharing.mps.resources[0]: shares[1]: the key "rename" is missing: shares of several sizes need a name each`},
		{"shares of one name", inSection("mps", "    - {name: gpu, shares: [{percent: 50, rename: a}, {percent: 25, rename: nvidia.com/a}]}"), "config.yaml:4: sharing.mps.resources[0]: shares[1]: rename: another share is called nvidia.com/a; each size needs a name of its own"},
		{"rename beside shares", inSection("mps", "    - {name: gpu, rename: a, shares: [{percent: 50}]}"), "config.yaml:4: sharing.mps.resources[0]: rename: with shares, each of them has its own rename"},
		{"more than a device", inSection("mps", "    - {name: gpu, shares: [{percent: 50, rename: a}, {percent: 17, replicas: 3, rename: b}]}"), "config.yaml:4: sharing.mps.resources[0]: shares: they make 101 percent of a device"},
		{"more shares than clients", inSection("mps", "    - {name: gpu, shares: [{percent: 1, replicas: 48, rename: a}, {percent: 2, rename: b}]}"), "config.yaml:4: sharing.mps.resources[0]: shares: they are 49, and an MPS server takes 48 clients"},

		{"several", "version: v2\nflags:\n  nope: 1\n  gdsEnabled: maybe\n" + inSection("mps", "    - {name: gpu, replicas: 0}"), `config.yaml:1: version: "v2" is not known; it is v1
config.yaml:3: flags: unknown key "nope"; the keys are migStrategy, failOnInitError, mpsRoot, nvidiaDriverRoot, nvidiaDevRoot, gdrcopyEnabled, gdsEnabled, mofedEnabled, useNodeFeatureAPI, deviceDiscoveryStrategy, plugin, gfd
config.yaml:4: flags.gdsEnabled: wanted true or false, found "maybe"
config.yaml:8: sharing.mps.resources[0]: replicas: 0 is not a number from 1 to 48`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, _, err := Read(from(test.file))
			if err == nil {
				t.Fatalf("accepted, want %s", test.want)
			}
			if err.Error() != test.want {
				t.Errorf("got  %v\nwant %s", err, test.want)
			}
		})
	}
}

func TestMistakesElsewhere(t *testing.T) {
	for _, test := range []struct{ env, flag, value, want string }{
		{env: "MIG_STRATEGY", value: "double", want: `environment variable MIG_STRATEGY: "double" is not known; it is one of none, single, mixed`},
		{flag: "mig-strategy", value: "double", want: `flag --mig-strategy: "double" is not known; it is one of none, single, mixed`},
		{flag: "nvidia-driver-root", value: "driver", want: `flag --nvidia-driver-root: "driver" is not an absolute path`},
		{env: "PASS_DEVICE_SPECS", value: "yes", want: `environment variable PASS_DEVICE_SPECS: "yes" is neither true nor false`},
		{env: "DEVICE_LIST_STRATEGY", value: "envvar,cdi", want: `environment variable DEVICE_LIST_STRATEGY: "cdi" is not known; it is one of envvar, volume-mounts, cdi-annotations, cdi-cri`},
		{env: "DEVICE_LIST_STRATEGY", value: ",", want: `environment variable DEVICE_LIST_STRATEGY: the list is empty`},
		{env: "IMEX_CHANNEL_IDS", value: "0,1", want: "environment variable IMEX_CHANNEL_IDS: it is [] or [0]"},
		{env: "DP_DISABLE_HEALTHCHECKS", value: "13,xid", want: `environment variable DP_DISABLE_HEALTHCHECKS: "xid" is neither the number of an XID nor "xids" nor "all"`},
		{flag: "shared-devices-allocation-policy", value: "tight", want: `flag --shared-devices-allocation-policy: "tight" is not known; it is one of distributed, packed`},
	} {
		_, _, err := Read(Sources{
			Env:   lookup(map[string]string{test.env: test.value}),
			Flags: lookup(map[string]string{test.flag: test.value}),
		})
		if err == nil || err.Error() != test.want {
			t.Errorf("%s%s=%s: got %v, want %s", test.env, test.flag, test.value, err, test.want)
		}
	}
}

// A mistake is one even where something stronger says otherwise, and those of
// all sources are told together.
func TestMistakesTogether(t *testing.T) {
	_, _, err := Read(Sources{
		File:  &File{Name: "config.yaml", Data: []byte("flags: {migStrategy: 1}")},
		Env:   lookup(map[string]string{"MIG_STRATEGY": "2", "GDS_ENABLED": "3"}),
		Flags: lookup(map[string]string{"mig-strategy": "none"}),
	})
	if err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Errorf("got %v, want three mistakes", err)
	}
}
