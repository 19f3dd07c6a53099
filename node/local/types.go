package local

import (
	"encoding/json"
	"fmt"

	"github.com/kilter-dev/kilter/device"
)

// DefaultSocket is where an agent listens unless told otherwise.
const DefaultSocket = "/run/kilter/agent.sock"

// DoorDevicePlugin is the way a device reaches Kubernetes through the
// kubelet's device plugin protocol.
const DoorDevicePlugin = "device-plugin"

// Report is what the agent knows of its node's devices.
type Report struct {
	Node    string   `json:"node"`
	Devices []Device `json:"devices"`
}

// Device is a device as it stands on this node.
type Device struct {
	device.Device

	// Resource is the name by which Pods ask for it.
	Resource string `json:"resource"`
	// Door is the way it reaches Kubernetes.
	Door string `json:"door"`
	// Replicas are as how many it is offered when it is shared; 0 when it is
	// not.
	Replicas int `json:"replicas,omitempty"`
	// Holders are the containers that have it now.
	Holders []Holder `json:"holders,omitempty"`
	// Offered says whether it is counted in what the node has to give. A
	// device stays offered while a Pod uses it.
	Offered bool `json:"offered"`
	// Note is a sentence on why it is not offered, or on what is unusual.
	Note string `json:"note,omitempty"`
}

// Holder is a container that was given a device.
type Holder struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	UID       string `json:"uid,omitempty"`
	Container string `json:"container"`
}

// String is the holder as people name it: namespace/pod/container.
func (h Holder) String() string { return h.Namespace + "/" + h.Pod + "/" + h.Container }

// Fault is a failure to rehearse.
type Fault struct {
	// ID is the device's id, the beginning of one, or its index.
	ID string `json:"id"`
	// Reason is what the device reports as its trouble.
	Reason string `json:"reason"`
}

// FaultResult names the device that was meant.
type FaultResult struct {
	ID device.ID `json:"id"`
}

// Health says whether the agent does its work.
type Health struct {
	// Ready is true once every resource of the node is registered with the
	// kubelet.
	Ready bool `json:"ready"`
	// Waiting has a sentence for each thing that is still missing.
	Waiting []string `json:"waiting,omitempty"`
}

// UnmarshalJSON reads a device. JSON does not tell a version from a string, so
// versions arrive as strings.
func (d *Device) UnmarshalJSON(data []byte) error {
	type plain Device
	wire := struct {
		*plain
		Attributes map[string]any `json:"attributes"`
	}{plain: (*plain)(d)}
	if err := json.Unmarshal(data, &wire); err != nil {
		return err
	}
	d.Attributes = nil
	for name, value := range wire.Attributes {
		attribute, err := attributeOf(value)
		if err != nil {
			return fmt.Errorf("device %s, attribute %s: %w", d.ID, name, err)
		}
		if d.Attributes == nil {
			d.Attributes = make(map[string]device.Attribute, len(wire.Attributes))
		}
		d.Attributes[name] = attribute
	}
	return nil
}

func attributeOf(value any) (device.Attribute, error) {
	switch value := value.(type) {
	case string:
		return device.String(value), nil
	case bool:
		return device.Bool(value), nil
	case float64:
		if value != float64(int64(value)) {
			return nil, fmt.Errorf("%v is no whole number", value)
		}
		return device.Int(int64(value)), nil
	default:
		return nil, fmt.Errorf("want a string, a whole number or a boolean, not %T", value)
	}
}
