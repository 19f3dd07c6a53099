package device

// Grant is what one container, or one claim, was given.
type Grant struct {
	// ID names the grant: asking a driver twice to prepare the same grant
	// gives the same answer and does the work once.
	ID string `json:"id"`
	// Devices are the devices of the grant, all of the same driver.
	Devices []ID `json:"devices"`
}

// Edits are what a grant adds to a container.
type Edits struct {
	DeviceNodes []DeviceNode      `json:"deviceNodes,omitempty"`
	Mounts      []Mount           `json:"mounts,omitempty"`
	Env         map[string]string `json:"env,omitempty"`
}

// DeviceNode is a node under /dev that the container may open.
type DeviceNode struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	// Permissions are those of the device cgroup: r, w and m (mknod).
	Permissions string `json:"permissions"`
}

// Mount is a file or folder of the host seen in the container.
type Mount struct {
	HostPath      string `json:"hostPath"`
	ContainerPath string `json:"containerPath"`
	ReadOnly      bool   `json:"readOnly"`
}
