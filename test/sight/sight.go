// Package sight is what a container sees of devices, as the probe in it
// reports and the end-to-end tests read.
package sight

// What the probe looks for.
const (
	// Major is that of simulated devices; their minors are their indexes.
	Major  = 60
	Minors = 8
	// DriverFolder is where the driver's files are mounted.
	DriverFolder = "/usr/local/nvidia"
)

// Sight is one look around.
type Sight struct {
	// BeginNanos and EndNanos are on the clock that all containers share;
	// EndNanos is 0 while the container goes on.
	BeginNanos int64 `json:"begin"`
	EndNanos   int64 `json:"end,omitempty"`
	// Visible is the environment's NVIDIA_VISIBLE_DEVICES.
	Visible string `json:"visible"`
	// Nodes are the nodes under /dev that belong to GPUs.
	Nodes []string `json:"nodes"`
	// Open is the kernel's answer to opening each of them.
	Open map[string]string `json:"open"`
	// SelfMade is the kernel's answer to opening a node of that minor which
	// the container made itself.
	SelfMade map[int]string `json:"selfMade"`
	// DriverFolder lists the driver folder, nil when there is none.
	DriverFolder []string `json:"driverFolder"`
	// DriverFolderWrite is the answer to writing there.
	DriverFolderWrite string `json:"driverFolderWrite,omitempty"`
}

// The kernel's answers: an open of a simulated device that is allowed finds
// nobody behind it; one that is not is refused before.
const (
	Allowed = "ENXIO"
	Refused = "EPERM"
)
