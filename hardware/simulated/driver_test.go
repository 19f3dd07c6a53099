package simulated

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/hardware/conformance"
	"github.com/kilter-dev/kilter/machines"
)

func load(t *testing.T, name string) machines.Machine {
	t.Helper()
	m, err := machines.Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// open returns a driver that replays the machine in the folder.
func open(t *testing.T, machine, root string, change ...func(*Config)) *Driver {
	t.Helper()
	config := Config{Machine: load(t, machine), NodeName: "node-a", Root: root}
	for _, c := range change {
		c(&config)
	}
	d, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// look watches until the first report, which it returns.
func look(t *testing.T, d *Driver) []device.Device {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var devices []device.Device
	if err := d.Watch(ctx, func(reported []device.Device) { devices = reported; cancel() }); err != nil {
		t.Fatal(err)
	}
	return devices
}

// tree lists all that is below a folder, with what tells nodes and files
// apart.
func tree(t *testing.T, folder string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var found unix.Stat_t
		if err := unix.Lstat(path, &found); err != nil {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		lines = append(lines, fmt.Sprintf("%s %o %d:%d", name, found.Mode, unix.Major(found.Rdev), unix.Minor(found.Rdev)))
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func TestConformance(t *testing.T) {
	for _, name := range machines.Names() {
		t.Run(name, func(t *testing.T) {
			conformance.Run(t, func(t *testing.T) conformance.Subject {
				root := filepath.Join(t.TempDir(), "node", "simulated")
				d := open(t, name, root, func(c *Config) { c.HostRoot = "/var/lib/kilter/simulated" })
				return conformance.Subject{
					Driver:  d,
					Devices: len(d.devices),
					SharedNodes: []string{
						"/var/lib/kilter/simulated/dev/nvidiactl",
						"/var/lib/kilter/simulated/dev/nvidia-uvm",
					},
					Footprint: func() (string, error) { return strings.Join(tree(t, root), "\n"), nil },
				}
			})
		})
	}
}

func TestFolder(t *testing.T) {
	root := filepath.Join(t.TempDir(), "simulated")
	old := unix.Umask(0o077) // as strict an agent as there is
	defer unix.Umask(old)
	look(t, open(t, "t4x2", root))

	want := []string{
		". 40700 0:0",
		"dev 40755 0:0",
		"dev/nvidia-uvm 20666 60:254",
		"dev/nvidia0 20666 60:0",
		"dev/nvidia1 20666 60:1",
		"dev/nvidiactl 20666 60:255",
		"driver 40755 0:0",
		"driver/bin 40755 0:0",
		"driver/lib64 40755 0:0",
		"driver/version 100644 0:0",
	}
	if got := tree(t, root); !slices.Equal(got, want) {
		t.Errorf("the folder has\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	version, err := os.ReadFile(filepath.Join(root, "driver", "version"))
	if err != nil {
		t.Fatal(err)
	}
	wantVersion := `# This is a simulated driver, made by Kilter. There is no GPU behind it.
simulated: true
machine: t4x2
driver: 550.54.15
cuda: 12.4
`
	if string(version) != wantVersion {
		t.Errorf("the version file says\n%s", version)
	}
}

func TestEdits(t *testing.T) {
	d := open(t, "h100x8", t.TempDir(), func(c *Config) { c.HostRoot = "/host/sim" })
	devices := look(t, d)
	edits, err := d.Prepare(t.Context(), device.Grant{
		ID:      "g",
		Devices: []device.ID{devices[5].ID, devices[2].ID, devices[5].ID},
	})
	if err != nil {
		t.Fatal(err)
	}
	wantNodes := []device.DeviceNode{
		{HostPath: "/host/sim/dev/nvidiactl", ContainerPath: "/dev/nvidiactl", Permissions: "rw"},
		{HostPath: "/host/sim/dev/nvidia-uvm", ContainerPath: "/dev/nvidia-uvm", Permissions: "rw"},
		{HostPath: "/host/sim/dev/nvidia2", ContainerPath: "/dev/nvidia2", Permissions: "rw"},
		{HostPath: "/host/sim/dev/nvidia5", ContainerPath: "/dev/nvidia5", Permissions: "rw"},
	}
	if !slices.Equal(edits.DeviceNodes, wantNodes) {
		t.Errorf("device nodes are %+v", edits.DeviceNodes)
	}
	wantMounts := []device.Mount{{HostPath: "/host/sim/driver", ContainerPath: "/usr/local/nvidia", ReadOnly: true}}
	if !slices.Equal(edits.Mounts, wantMounts) {
		t.Errorf("mounts are %+v", edits.Mounts)
	}
	if got, want := edits.Env["NVIDIA_VISIBLE_DEVICES"], string(devices[2].ID+","+devices[5].ID); got != want {
		t.Errorf("visible devices are %s, want %s", got, want)
	}
	if got := edits.Env["NVIDIA_DRIVER_CAPABILITIES"]; got != "compute,utility" {
		t.Errorf("driver capabilities are %s", got)
	}
	if _, err := d.Prepare(t.Context(), device.Grant{ID: "g"}); err == nil || !strings.Contains(err.Error(), "names no device") {
		t.Errorf("a grant of nothing: %v", err)
	}
}

func TestDevices(t *testing.T) {
	d := look(t, open(t, "mixed", t.TempDir()))[1]
	wantAttributes := map[string]device.Attribute{
		device.AttributeArchitecture:      device.String("Ada Lovelace"),
		device.AttributeComputeCapability: device.Version("8.9"),
		device.AttributeDriverVersion:     device.Version("570.86.15"),
		device.AttributeCUDAVersion:       device.Version("12.8"),
		AttributeSimulated:                device.Bool(true),
	}
	for name, want := range wantAttributes {
		if d.Attributes[name] != want {
			t.Errorf("attribute %s is %v, want %v", name, d.Attributes[name], want)
		}
	}
	if d.Model != "NVIDIA L40S" || d.Capacity.MemoryBytes != 46068<<20 || d.Index != 1 {
		t.Errorf("the second device is %+v", d)
	}
	other := look(t, open(t, "mixed", t.TempDir(), func(c *Config) { c.NodeName = "node-b" }))[1]
	if other.ID == d.ID {
		t.Errorf("two nodes have the device %s", d.ID)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*Config)
		says   string
	}{
		{"no root", func(c *Config) { c.Root = "" }, "is not the absolute path"},
		{"relative root", func(c *Config) { c.Root = "sim" }, "is not the absolute path"},
		{"the real /dev", func(c *Config) { c.Root = "//" }, "is not the absolute path"},
		{"relative host root", func(c *Config) { c.HostRoot = "sim" }, `HostRoot "sim"`},
		{"no node", func(c *Config) { c.NodeName = "" }, "the node's name is missing"},
		{"no machine", func(c *Config) { c.Machine = machines.Machine{} }, "the machine has no devices"},
	} {
		config := Config{Machine: load(t, "t4x2"), NodeName: "n", Root: "/sim"}
		test.change(&config)
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), test.says) {
			t.Errorf("%s: %v", test.name, err)
		}
	}
}

func TestUnknownDevicesAreNamedOnce(t *testing.T) {
	d := open(t, "t4x2", t.TempDir())
	_, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{"b", "a", "b"}})
	var unknown *hardware.UnknownDeviceError
	if !errors.As(err, &unknown) || !slices.Equal(unknown.IDs, []device.ID{"a", "b"}) {
		t.Errorf("got %v", err)
	}
	if got := tree(t, d.disk.path); len(got) != 1 {
		t.Errorf("a refused grant left %v", got)
	}
}
