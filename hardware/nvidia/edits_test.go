package nvidia

import (
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh200"
	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

func node(name string) device.DeviceNode {
	return device.DeviceNode{HostPath: "/dev/" + name, ContainerPath: "/dev/" + name, Permissions: "rw"}
}

func TestPrepare(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	d := m.driver(t)
	devices := watch(t, d).first()
	got, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{devices[6].ID, devices[2].ID, devices[6].ID}})
	if err != nil {
		t.Fatal(err)
	}
	want := device.Edits{
		DeviceNodes: []device.DeviceNode{
			node("nvidiactl"), node("nvidia-uvm"), node("nvidia-uvm-tools"),
			node("nvidia6"), node("nvidia2"),
		},
		Mounts: []device.Mount{{HostPath: "/usr/local/nvidia", ContainerPath: "/usr/local/nvidia", ReadOnly: true}},
		Env: map[string]string{
			"NVIDIA_VISIBLE_DEVICES":     string(devices[6].ID + "," + devices[2].ID),
			"NVIDIA_DRIVER_CAPABILITIES": "compute,utility",
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestPrepareOnAnIncompleteHost(t *testing.T) {
	for name, test := range map[string]struct {
		damage func(t *testing.T, m *machine)
		config func(c *Config)
		want   string // in the error; empty when it works all the same
	}{
		"without the node of another GPU": {damage: func(t *testing.T, m *machine) { m.remove(t, "dev/nvidia4") }},
		"without the tools' node":         {damage: func(t *testing.T, m *machine) { m.remove(t, "dev/nvidia-uvm-tools") }},
		"without the GPU's node": {
			damage: func(t *testing.T, m *machine) { m.remove(t, "dev/nvidia3") },
			want:   "/dev/nvidia3",
		},
		"without the control node": {
			damage: func(t *testing.T, m *machine) { m.remove(t, "dev/nvidiactl") },
			want:   "/dev/nvidiactl",
		},
		"with files of another version": {
			damage: func(t *testing.T, m *machine) {
				m.remove(t, "usr/local/nvidia/lib64/libcuda.so.1")
				m.remove(t, "usr/local/nvidia/lib64/libcuda.so."+m.version)
				m.write(t, "usr/local/nvidia/lib64/libcuda.so.1.2.3", "")
			},
			want: "libcuda.so.550.54.15",
		},
		"with a driver root that is not there": {
			config: func(c *Config) { c.DriverRoot = "/opt/driver" },
			want:   "/opt/driver",
		},
		"with nodes elsewhere": {
			config: func(c *Config) { c.DevRoot = "/run/nvidia/driver" },
			want:   "/run/nvidia/driver/dev/nvidiactl",
		},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMachine(t, dgxh200.New(), h100)
			if test.damage != nil {
				test.damage(t, m)
			}
			c := m.config(t)
			if test.config != nil {
				test.config(&c)
			}
			d := newDriver(t, c)
			devices := watch(t, d).first()
			_, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{devices[3].ID}})
			switch {
			case test.want == "" && err != nil:
				t.Error(err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got the error %v, want one that names %s", err, test.want)
			}
		})
	}
}

func TestPrepareOfNothing(t *testing.T) {
	m := newMachine(t, dgxh200.New(), h100)
	d := m.driver(t)
	watch(t, d).first()
	if edits, err := d.Prepare(t.Context(), device.Grant{ID: "g"}); err == nil {
		t.Errorf("a grant without devices got %+v", edits)
	}
}
