package config

// Config is what the file, the environment and the flags say together. What
// none of them says has the default of NVIDIA's device plugin; paths are empty
// then.
type Config struct {
	// MIGStrategy says how the slices of partitioned GPUs are offered.
	MIGStrategy MIGStrategy

	// Names give devices another resource name than the usual one.
	Names []Naming

	// Sharing has a rule for each group of devices that is to be shared.
	Sharing []Rule

	// AllocationPolicy says which replicas of a resource are given first.
	AllocationPolicy AllocationPolicy

	// DriverRoot is the folder of the host that holds the driver's files, and
	// DevRoot the one that holds dev: the same, unless it is said.
	DriverRoot, DevRoot string

	// MPSRoot is the folder of the host for the MPS daemon's files.
	MPSRoot string

	// DeviceLists are the ways in which the runtime is told the devices of a
	// container, at least one, and DeviceID is how they are named there.
	DeviceLists []DeviceList
	DeviceID    DeviceID

	// CDIAnnotationPrefix begins the keys of CDI annotations, CDIHookPath is
	// the program that CDI hooks run, and CDIFeatures change how CDI
	// specifications are made.
	CDIAnnotationPrefix string
	CDIHookPath         string
	CDIFeatures         []string

	// GDRCopy, GDS and MOFED also give a container what these need.
	GDRCopy, GDS, MOFED bool

	// IMEXChannels are given to every container with a GPU. When they are
	// required, a node without them is in error.
	IMEXChannels []int
	IMEXRequired bool

	// DisableHealthChecks and EnableHealthChecks are lists of XIDs, or "xids",
	// or "all".
	DisableHealthChecks, EnableHealthChecks string

	// KubeletSocket is where the kubelet takes registrations.
	KubeletSocket string

	// Labels say how the node's labels are made.
	Labels Labels
}

// Labels say how the labels of GPU feature discovery are made.
type Labels struct {
	// NoTimestamp leaves out the label that says when the others were made.
	NoTimestamp bool
	// MachineTypeFile is the file that says what machine the node is.
	MachineTypeFile string
}

// MIGStrategy says how the slices of partitioned GPUs are offered.
type MIGStrategy string

const (
	// MIGNone offers every GPU whole.
	MIGNone MIGStrategy = "none"
	// MIGSingle offers slices, all of one profile, under the GPUs' name.
	MIGSingle MIGStrategy = "single"
	// MIGMixed offers slices under the name of their profile.
	MIGMixed MIGStrategy = "mixed"
)

// AllocationPolicy says which replicas of a resource are given first.
type AllocationPolicy string

const (
	// Distributed gives those of the device with the fewest in use.
	Distributed AllocationPolicy = "distributed"
	// Packed gives those of the device with the most in use.
	Packed AllocationPolicy = "packed"
)

// DeviceList is a way to tell the runtime the devices of a container.
type DeviceList string

const (
	// EnvVar names them in the variable NVIDIA_VISIBLE_DEVICES.
	EnvVar DeviceList = "envvar"
	// VolumeMounts names them as mounts, which a container can not forge.
	VolumeMounts DeviceList = "volume-mounts"
	// CDIAnnotations names them in the container's annotations.
	CDIAnnotations DeviceList = "cdi-annotations"
	// CDICRI names them in the field that CRI has for it.
	CDICRI DeviceList = "cdi-cri"
)

// DeviceID is how devices are named to the runtime.
type DeviceID string

const (
	// ByUUID names a device by its UUID.
	ByUUID DeviceID = "uuid"
	// ByIndex names a device by its number.
	ByIndex DeviceID = "index"
)

// Strategy is how the replicas of a device share it.
type Strategy string

const (
	// Whole devices are not shared.
	Whole Strategy = "none"
	// TimeSlicing lets the replicas take turns, without any limit.
	TimeSlicing Strategy = "time-slicing"
	// MPS runs the replicas side by side, each within its share.
	MPS Strategy = "mps"
)

// defaults is what holds where nothing is said.
func defaults() Config {
	return Config{
		MIGStrategy:         MIGNone,
		AllocationPolicy:    Distributed,
		DeviceLists:         []DeviceList{EnvVar},
		DeviceID:            ByUUID,
		CDIAnnotationPrefix: "cdi.k8s.io/",
	}
}
