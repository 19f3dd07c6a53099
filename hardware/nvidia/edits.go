package nvidia

import (
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// grantable is what has to be known of a device to put it into a container.
type grantable struct {
	id        device.ID
	minor     int        // of the GPU's node
	instances []instance // of MIG, for which there are nodes too
	driver    string     // version
}

// grantable is the GPU, or some slices of it, under the id of a device.
func (g gpu) grantable(id device.ID, slices ...slice) grantable {
	granted := grantable{id: id, minor: g.minor, driver: g.driver}
	for _, s := range slices {
		granted.instances = append(granted.instances, s.instance)
	}
	return granted
}

// controlNodes are the nodes of the driver as a whole. The first is needed for
// everything, the others by CUDA and its tools; they hold no GPU open.
var controlNodes = []string{"nvidiactl", "nvidia-uvm", "nvidia-uvm-tools"}

// edits decides what the granted devices, at least one, mean for a container.
// The host answers which nodes there are.
func edits(host fs.FS, devRoot string, granted []grantable, files []device.Mount) (device.Edits, error) {
	exists := func(file string) bool {
		_, err := fs.Stat(host, strings.TrimPrefix(file, "/"))
		return err == nil
	}
	var nodes []device.DeviceNode
	taken := map[string]bool{}
	add := func(name string) {
		if !taken[name] {
			taken[name] = true
			nodes = append(nodes, device.DeviceNode{
				HostPath:      path.Join(devRoot, "dev", name),
				ContainerPath: path.Join("/dev", name),
				Permissions:   "rw",
			})
		}
	}
	need := func(name string, id device.ID) error {
		if file := path.Join(devRoot, "dev", name); !exists(file) {
			return fmt.Errorf("prepare %s: the host has no %s; run nvidia-modprobe, or set the device root to the folder that holds dev", id, file)
		}
		add(name)
		return nil
	}

	if err := need(controlNodes[0], granted[0].id); err != nil {
		return device.Edits{}, err
	}
	for _, name := range controlNodes[1:] {
		if exists(path.Join(devRoot, "dev", name)) {
			add(name)
		}
	}
	var ids []string
	for _, g := range granted {
		ids = append(ids, string(g.id))
		names, err := capabilityNodes(host, g.minor, g.instances)
		if err != nil {
			return device.Edits{}, fmt.Errorf("prepare %s: %w", g.id, err)
		}
		for _, name := range append([]string{fmt.Sprintf("nvidia%d", g.minor)}, names...) {
			if err := need(name, g.id); err != nil {
				return device.Edits{}, err
			}
		}
	}
	return device.Edits{
		DeviceNodes: nodes,
		Mounts:      files,
		Env: map[string]string{
			"NVIDIA_VISIBLE_DEVICES":     strings.Join(ids, ","),
			"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
		},
	}, nil
}
