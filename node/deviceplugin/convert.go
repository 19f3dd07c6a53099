package deviceplugin

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kilter-dev/kilter/device"
)

// pluginDevices are the offers as the kubelet is told of them.
func pluginDevices(offers []Offer) []*pluginapi.Device {
	devices := make([]*pluginapi.Device, 0, len(offers))
	for _, offer := range offers {
		health := pluginapi.Unhealthy
		if offer.Offered {
			health = pluginapi.Healthy
		}
		var topology *pluginapi.TopologyInfo
		if numa := offer.Device.NUMANode; numa >= 0 {
			topology = &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: int64(numa)}}}
		}
		for _, id := range offer.IDs {
			devices = append(devices, &pluginapi.Device{ID: string(id), Health: health, Topology: topology})
		}
	}
	return devices
}

// containerResponse is what a container is given.
func containerResponse(edits device.Edits) *pluginapi.ContainerAllocateResponse {
	response := &pluginapi.ContainerAllocateResponse{Envs: edits.Env}
	for _, node := range edits.DeviceNodes {
		response.Devices = append(response.Devices, &pluginapi.DeviceSpec{
			HostPath: node.HostPath, ContainerPath: node.ContainerPath, Permissions: node.Permissions,
		})
	}
	for _, mount := range edits.Mounts {
		response.Mounts = append(response.Mounts, &pluginapi.Mount{
			HostPath: mount.HostPath, ContainerPath: mount.ContainerPath, ReadOnly: mount.ReadOnly,
		})
	}
	return response
}

// join adds the edits of another driver for the same container. The same thing
// twice is once; two values for one variable can not both be had.
func join(all *device.Edits, more device.Edits) error {
	for _, node := range more.DeviceNodes {
		if !slices.Contains(all.DeviceNodes, node) {
			all.DeviceNodes = append(all.DeviceNodes, node)
		}
	}
	for _, mount := range more.Mounts {
		if !slices.Contains(all.Mounts, mount) {
			all.Mounts = append(all.Mounts, mount)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(more.Env)) {
		value := more.Env[name]
		if other, taken := all.Env[name]; taken && other != value {
			return fmt.Errorf("two drivers want the variable %s, as %q and as %q: their devices can not be in one container", name, other, value)
		}
		if all.Env == nil {
			all.Env = make(map[string]string)
		}
		all.Env[name] = value
	}
	return nil
}

// grantID names a set of devices given together. It is the same whenever they
// are, so that preparing them again does the work once.
func grantID(resource string, ids []device.ID) string {
	sum := sha256.New()
	sum.Write([]byte(resource))
	for _, id := range slices.Sorted(slices.Values(ids)) {
		sum.Write([]byte{0})
		sum.Write([]byte(id))
	}
	return "plugin-" + hex.EncodeToString(sum.Sum(nil)[:10])
}

// deviceIDs takes ids over from the wire.
func deviceIDs(texts []string) []device.ID {
	ids := make([]device.ID, len(texts))
	for i, text := range texts {
		ids[i] = device.ID(text)
	}
	return ids
}
