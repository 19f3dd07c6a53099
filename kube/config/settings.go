package config

// What the agent acts on today, by feature, and what is so until it does. The
// change that makes a feature work turns it to Acted here, and
// go test ./kube/config -run TestDocument -update writes that into
// docs/from-nvidia-device-plugin.md.
const (
	fileReading   = Acted
	mig           = Acted
	naming        = Acted
	timeSlicing   = Acted
	mps           = Pending
	roots         = Acted
	cdi           = Pending
	extras        = Pending
	imex          = Pending
	healthChecks  = Acted
	kubeletSocket = Acted
	labels        = Pending

	noMPS     = "A configuration that shares devices by MPS is refused."
	noMPSRoot = "MPS is not there yet."
	noList    = "A container is given device nodes, the driver's files, and `NVIDIA_VISIBLE_DEVICES` with UUIDs."
	noCDI     = "CDI specifications are not written."
	noExtras  = "A container is given nothing beside its GPU."
	noIMEX    = "IMEX channels are not given."
	noLabels  = "Node labels are not written."
)

// settings is everything that NVIDIA's device plugin v0.20 can be told, and
// what Kilter adds to it.
var settings = []Setting{
	{
		Key: "version", apply: checkOneOf("v1"), like: []string{"v1"}, Status: fileReading,
		Note: "`v1`, or nothing. Every other version is refused.",
	},
	{
		Flags: pathFlags, Env: pathEnv, Status: fileReading,
		Note: "The configuration file. It is read again when it changes.",
	},

	{
		Key: "flags.migStrategy", Flags: []string{"mig-strategy"}, Env: []string{"MIG_STRATEGY"},
		apply: choiceOf(func(c *Config) *MIGStrategy { return &c.MIGStrategy }, MIGNone, MIGSingle, MIGMixed),
		like:  []string{string(MIGNone)}, Status: mig,
		Note: "`none`, `single` or `mixed`.",
	},
	{
		Key: "flags.failOnInitError", Flags: []string{"fail-on-init-error"}, Env: []string{"FAIL_ON_INIT_ERROR"},
		shape: truth, apply: anything, like: []string{"false"}, Status: Declined,
		Note: "Without a working driver the agent stays up, says why in its log, and goes on when the driver answers.",
	},
	{
		Key: "flags.mpsRoot", Flags: []string{"mps-root"}, Env: []string{"MPS_ROOT"},
		apply: pathOf(func(c *Config) *string { return &c.MPSRoot }), Status: mps, Until: noMPSRoot,
		Note: "The folder of the host for the MPS daemon's files.",
	},
	{
		Key: "flags.nvidiaDriverRoot", Flags: []string{"driver-root", "nvidia-driver-root"}, Env: []string{"NVIDIA_DRIVER_ROOT"},
		apply: pathOf(func(c *Config) *string { return &c.DriverRoot }), like: []string{"/"}, Status: roots,
		Note: "The folder of the host that holds the driver's files. `/` is as if nothing were said: the usual places of the host are searched.",
	},
	{
		Key: "flags.nvidiaDevRoot", Flags: []string{"dev-root", "nvidia-dev-root"}, Env: []string{"NVIDIA_DEV_ROOT"},
		apply: pathOf(func(c *Config) *string { return &c.DevRoot }), like: []string{"/"}, Status: roots,
		Note: "The folder of the host that holds `dev`; that of the driver unless it is said.",
	},
	{
		Key: "flags.gdrcopyEnabled", Flags: []string{"gdrcopy-enabled"}, Env: []string{"GDRCOPY_ENABLED"},
		shape: truth, apply: boolOf(func(c *Config) *bool { return &c.GDRCopy }), like: []string{"false"}, Status: extras, Until: noExtras,
		Note: "A container with a GPU is also given what GDRCopy needs.",
	},
	{
		Key: "flags.gdsEnabled", Flags: []string{"gds-enabled"}, Env: []string{"GDS_ENABLED"},
		shape: truth, apply: boolOf(func(c *Config) *bool { return &c.GDS }), like: []string{"false"}, Status: extras, Until: noExtras,
		Note: "A container with a GPU is also given what GPUDirect Storage needs.",
	},
	{
		Key: "flags.mofedEnabled", Flags: []string{"mofed-enabled"}, Env: []string{"MOFED_ENABLED"},
		shape: truth, apply: boolOf(func(c *Config) *bool { return &c.MOFED }), like: []string{"false"}, Status: extras, Until: noExtras,
		Note: "A container with a GPU is also given what MOFED needs.",
	},
	{
		Key: "flags.useNodeFeatureAPI", Flags: []string{"use-node-feature-api"}, Env: []string{"GFD_USE_NODE_FEATURE_API", "USE_NODE_FEATURE_API"},
		shape: truth, apply: anything, like: []string{"false"}, Status: Declined, Note: "node-feature-discovery is not used.",
	},
	{
		Key: "flags.deviceDiscoveryStrategy", Flags: []string{"device-discovery-strategy"}, Env: []string{"DEVICE_DISCOVERY_STRATEGY"},
		apply: checkOneOf("auto", "nvml", "tegra", "vfio"), like: []string{"auto", "nvml"}, Status: Declined,
		Note: "GPUs are found through NVML (`auto`, `nvml`). `tegra` and `vfio` are not supported.",
	},

	{
		Key: "flags.plugin.passDeviceSpecs", Flags: []string{"pass-device-specs"}, Env: []string{"PASS_DEVICE_SPECS"},
		shape: truth, apply: anything, like: []string{"true"}, Status: Declined,
		Note: "As `true`: a container is always given the device nodes of its GPUs.",
	},
	{
		Key: "flags.plugin.deviceListStrategy", Flags: []string{"device-list-strategy"}, Env: []string{"DEVICE_LIST_STRATEGY"},
		shape: words, apply: deviceLists, Status: cdi, Until: noList,
		Note: "`envvar`, `volume-mounts`, `cdi-annotations`, `cdi-cri`: one or several.",
	},
	{
		Key: "flags.plugin.deviceIDStrategy", Flags: []string{"device-id-strategy"}, Env: []string{"DEVICE_ID_STRATEGY"},
		apply: choiceOf(func(c *Config) *DeviceID { return &c.DeviceID }, ByUUID, ByIndex),
		like:  []string{string(ByUUID)}, Status: cdi, Until: noList,
		Note: "`uuid` or `index`.",
	},
	{
		Key: "flags.plugin.cdiAnnotationPrefix", Flags: []string{"cdi-annotation-prefix"}, Env: []string{"CDI_ANNOTATION_PREFIX"},
		apply: textOf(func(c *Config) *string { return &c.CDIAnnotationPrefix }), Status: cdi, Until: noCDI,
		Note: "The beginning of the keys of CDI annotations.",
	},
	{
		Key: "flags.plugin.nvidiaCTKPath", Flags: []string{"nvidia-cdi-hook-path", "nvidia-ctk-path"}, Env: []string{"NVIDIA_CDI_HOOK_PATH", "NVIDIA_CTK_PATH"},
		apply: pathOf(func(c *Config) *string { return &c.CDIHookPath }), Status: cdi, Until: noCDI,
		Note: "The program that CDI hooks run.",
	},
	{
		Key: "flags.plugin.containerDriverRoot", Flags: []string{"driver-root-ctr-path", "container-driver-root"}, Env: []string{"DRIVER_ROOT_CTR_PATH", "CONTAINER_DRIVER_ROOT"},
		apply: checkPath, Status: Declined,
		Note: "The agent sees the whole host (`--host-root`), and the driver there.",
	},
	{
		Key: "flags.plugin.kubeletSocket", Flags: []string{"kubelet-socket"}, Env: []string{"KUBELET_SOCKET"},
		apply: pathOf(func(c *Config) *string { return &c.KubeletSocket }),
		like:  []string{"/var/lib/kubelet/device-plugins/kubelet.sock"}, Status: kubeletSocket,
		Note: "Where the kubelet takes registrations; its name is `kubelet.sock`. The agent's own flag `--device-plugin-folder` wins over it.",
	},
	{
		Key: "flags.plugin.cdiFeatureFlags", Flags: []string{"cdi-feature-flags"}, Env: []string{"CDI_FEATURE_FLAGS"},
		shape: words, apply: listOf(func(c *Config) *[]string { return &c.CDIFeatures }), Status: cdi, Until: noCDI,
		Note: "How CDI specifications are made, one or several.",
	},
	{
		Key: "flags.plugin.sharedDevicesAllocationPolicy", Flags: []string{"shared-devices-allocation-policy"}, Env: []string{"SHARED_DEVICES_ALLOCATION_POLICY"},
		apply:  choiceOf(func(c *Config) *AllocationPolicy { return &c.AllocationPolicy }, Distributed, Packed),
		Status: timeSlicing,
		Note:   "`distributed` gives replicas of the device with the fewest in use, `packed` of the one with the most.",
	},

	{
		Key: "flags.gfd.oneshot", Flags: []string{"oneshot"}, Env: []string{"GFD_ONESHOT"},
		shape: truth, apply: anything, like: []string{"false"}, Status: Declined, Note: "The agent keeps running.",
	},
	{
		Key: "flags.gfd.noTimestamp", Flags: []string{"no-timestamp"}, Env: []string{"GFD_NO_TIMESTAMP"},
		shape: truth, apply: boolOf(func(c *Config) *bool { return &c.Labels.NoTimestamp }), like: []string{"false"}, Status: labels, Until: noLabels,
		Note: "Leaves out the label that says when the others were made.",
	},
	{
		Key: "flags.gfd.sleepInterval", Flags: []string{"sleep-interval"}, Env: []string{"GFD_SLEEP_INTERVAL"},
		apply: checkDuration, Status: labels, Until: noLabels,
		Note: "How often labels are made.",
	},
	{
		Key: "flags.gfd.outputFile", Flags: []string{"output-file", "output"}, Env: []string{"GFD_OUTPUT_FILE"},
		apply: checkPath, Status: Declined, Note: "No file is written for node-feature-discovery.",
	},
	{
		Key: "flags.gfd.machineTypeFile", Flags: []string{"machine-type-file"}, Env: []string{"GFD_MACHINE_TYPE_FILE"},
		apply: pathOf(func(c *Config) *string { return &c.Labels.MachineTypeFile }), Status: labels, Until: noLabels,
		Note: "The file that says what machine the node is.",
	},

	{
		Key: "resources.gpus[].pattern", shape: inner, Status: naming,
		Note: "A GPU's model, with `*` for any text. The first entry that matches names the GPU. NVIDIA's plugin reads and ignores it.",
	},
	{Key: "resources.gpus[].name", shape: inner, Status: naming, Note: "The resource name; without a domain it is in `nvidia.com/`."},
	{Key: "resources.mig[].pattern", shape: inner, Status: naming, Note: "The same for the profile of a MIG slice, such as `1g.10gb`."},
	{Key: "resources.mig[].name", shape: inner, Status: naming, Note: "The same for a MIG slice."},

	{
		Key: "sharing.timeSlicing.renameByDefault", shape: inner, Status: timeSlicing,
		Note: "`true`: shared devices are offered with `.shared` behind their name.",
	},
	{
		Key: "sharing.timeSlicing.failRequestsGreaterThanOne", shape: inner, Status: timeSlicing,
		Note: "`true`: a container that asks for more than one replica is refused. `false` unless it is said.",
	},
	{Key: "sharing.timeSlicing.resources[].name", shape: inner, Status: timeSlicing, Note: "Which devices are shared, by their resource name."},
	{
		Key: "sharing.timeSlicing.resources[].rename", shape: inner, Status: timeSlicing,
		Note: "The name that they are offered under. NVIDIA's plugin reads and ignores it.",
	},
	{
		Key: "sharing.timeSlicing.resources[].devices", shape: inner, Status: timeSlicing,
		Note: "`all`, a number (the first so many), or a list of indices (`0`), MIG indices (`\"0:1\"`) and UUIDs. NVIDIA's plugin reads and ignores it.",
	},
	{
		Key: "sharing.timeSlicing.resources[].replicas", shape: inner, Status: timeSlicing,
		Note: "How many replicas each device has. With `1` it stays whole, which NVIDIA's plugin refuses.",
	},

	{Key: "sharing.mps.renameByDefault", shape: inner, Status: mps, Until: noMPS, Note: "As for time-slicing."},
	{
		Key: "sharing.mps.failRequestsGreaterThanOne", shape: inner, Status: mps, Until: noMPS,
		Note: "As for time-slicing, but `true` unless it is said.",
	},
	{Key: "sharing.mps.resources[].name", shape: inner, Status: mps, Until: noMPS, Note: "As for time-slicing. GPUs only: MIG slices are refused."},
	{Key: "sharing.mps.resources[].rename", shape: inner, Status: mps, Until: noMPS, Note: "As for time-slicing."},
	{Key: "sharing.mps.resources[].devices", shape: inner, Status: mps, Until: noMPS, Note: "As for time-slicing."},
	{
		Key: "sharing.mps.resources[].replicas", shape: inner, Status: mps, Until: noMPS,
		Note: "How many equal shares of memory and compute each device has, 48 at most.",
	},
	{
		Key: "sharing.mps.resources[].shares[].percent", shape: inner, Status: mps, Until: noMPS,
		Note: "Kilter's own: `shares` instead of `replicas` cuts a device into shares of these sizes, in percent of its memory and compute.",
	},
	{Key: "sharing.mps.resources[].shares[].replicas", shape: inner, Status: mps, Until: noMPS, Note: "Kilter's own: how many of this size, `1` unless it is said."},
	{Key: "sharing.mps.resources[].shares[].rename", shape: inner, Status: mps, Until: noMPS, Note: "Kilter's own: the name of this size."},

	{
		Key: "imex.channelIDs", Flags: []string{"imex-channel-ids"}, Env: []string{"IMEX_CHANNEL_IDS"},
		shape: words, apply: imexChannels, like: []string{""}, Status: imex, Until: noIMEX,
		Note: "`[]`, or `[0]`: every container with a GPU is given this channel.",
	},
	{
		Key: "imex.required", Flags: []string{"imex-required"}, Env: []string{"IMEX_REQUIRED"},
		shape: truth, apply: boolOf(func(c *Config) *bool { return &c.IMEXRequired }), like: []string{"false"}, Status: imex, Until: noIMEX,
		Note: "`true`: a node without the channel is in error.",
	},

	{
		Env: []string{"DP_DISABLE_HEALTHCHECKS"}, apply: xidsOf(func(c *Config) *string { return &c.DisableHealthChecks }), Status: healthChecks,
		Note: "XIDs, `xids` or `all`, which do not count, beside the built-in list: 13, 31, 43, 45, 68, 109.",
	},
	{
		Env: []string{"DP_ENABLE_HEALTHCHECKS"}, apply: xidsOf(func(c *Config) *string { return &c.EnableHealthChecks }), Status: healthChecks,
		Note: "XIDs, `xids` or `all`, which count although they are disabled or on the built-in list.",
	},
}
