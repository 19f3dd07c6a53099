package conformance

import (
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

func TestDevices(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(d []device.Device)
		says  string
	}{
		{"sound", func([]device.Device) {}, ""},
		{"no id", func(d []device.Device) { d[0].ID = "" }, "has no id"},
		{"same id", func(d []device.Device) { d[1].ID = d[0].ID }, "reported twice"},
		{"no vendor", func(d []device.Device) { d[0].Vendor = "" }, "is not a domain"},
		{"vendor without a dot", func(d []device.Device) { d[0].Vendor = "nvidia" }, "is not a domain"},
		{"no kind", func(d []device.Device) { d[0].Kind = "" }, "is not a name"},
		{"negative index", func(d []device.Device) { d[0].Index = -1 }, "index -1"},
		{"unknown NUMA node", func(d []device.Device) { d[0].NUMANode = device.UnknownNUMANode }, ""},
		{"impossible NUMA node", func(d []device.Device) { d[0].NUMANode = -2 }, "NUMA node -2"},
		{"no PCI address", func(d []device.Device) { d[0].PCIAddress = "" }, ""},
		{"wide PCI domain", func(d []device.Device) { d[0].PCIAddress = "10000:e1:00.0" }, ""},
		{"padded PCI domain", func(d []device.Device) { d[0].PCIAddress = "00000000:07:00.0" }, "the kernel's form"},
		{"upper-case PCI address", func(d []device.Device) { d[0].PCIAddress = "0000:3B:00.0" }, "the kernel's form"},
		{"negative memory", func(d []device.Device) { d[0].Capacity.MemoryBytes = -1 }, "is negative"},
		{"no health", func(d []device.Device) { d[0].Health = device.Health{} }, "is not known"},
		{"healthy with a reason", func(d []device.Device) { d[0].Health.Reason = "fine" }, "healthy, but"},
		{"unhealthy without", func(d []device.Device) { d[0].Health.State = device.Unhealthy }, "without a reason"},
		{"suspect", func(d []device.Device) { d[0].Health = device.Health{State: device.Suspect, Reason: "warm"} }, ""},
		{"recovering without a reason", func(d []device.Device) { d[0].Health.State = device.Recovering }, "without a reason"},
		{"invented health", func(d []device.Device) { d[0].Health.State = "Tired" }, "is not known"},
		{"nil attribute", func(d []device.Device) { d[0].Attributes["x"] = nil }, "lacks a name or a value"},
		{"architecture is a number", func(d []device.Device) { d[0].Attributes[device.AttributeArchitecture] = device.Int(9) }, "not a String"},
		{"version is a string", func(d []device.Device) { d[0].Attributes[device.AttributeCUDAVersion] = device.String("12.8") }, "not a Version"},
		{"link to nowhere", func(d []device.Device) { d[0].Links[0].Peer = "away" }, "is not reported"},
		{"link to itself", func(d []device.Device) { d[0].Links[0].Peer = d[0].ID }, "leads to itself"},
		{"link twice", func(d []device.Device) { d[0].Links[1] = d[0].Links[0] }, "is reported twice"},
		{"link with one end", func(d []device.Device) { d[0].Links = nil }, "reported the same by its peer"},
		{"link with unequal ends", func(d []device.Device) { d[0].Links[0].Lanes++ }, "reported the same by its peer"},
		{"link of no kind", func(d []device.Device) { d[0].Links[0].Kind = "" }, "has no kind"},
		{"link with negative lanes", func(d []device.Device) { d[0].Links[0].Lanes = -1 }, "negative number of lanes"},
	} {
		t.Run(test.name, func(t *testing.T) {
			devices := newFake(3).devices
			test.spoil(devices)
			expect(t, Devices(devices), test.says)
		})
	}
}

func TestEdits(t *testing.T) {
	sound := func() device.Edits {
		return device.Edits{
			DeviceNodes: []device.DeviceNode{
				{HostPath: "/dev/card0", ContainerPath: "/dev/card0", Permissions: "r"},
				{HostPath: "/dev/card1", ContainerPath: "/dev/card1", Permissions: "mwr"},
			},
			Mounts: []device.Mount{{HostPath: "/opt", ContainerPath: "/opt", ReadOnly: true}},
			Env:    map[string]string{"A": "b=c"},
		}
	}
	for _, test := range []struct {
		name  string
		spoil func(e *device.Edits)
		says  string
	}{
		{"sound", func(*device.Edits) {}, ""},
		{"nothing", func(e *device.Edits) { *e = device.Edits{} }, ""},
		{"relative host path", func(e *device.Edits) { e.DeviceNodes[0].HostPath = "dev/card0" }, "host path"},
		{"relative container path", func(e *device.Edits) { e.Mounts[0].ContainerPath = "" }, "container path"},
		{"path with dots", func(e *device.Edits) { e.Mounts[0].HostPath = "/opt/../etc" }, "not absolute and clean"},
		{"no permissions", func(e *device.Edits) { e.DeviceNodes[0].Permissions = "" }, "permissions"},
		{"unknown permission", func(e *device.Edits) { e.DeviceNodes[0].Permissions = "rx" }, "permissions"},
		{"repeated permission", func(e *device.Edits) { e.DeviceNodes[0].Permissions = "rr" }, "permissions"},
		{"path twice", func(e *device.Edits) { e.Mounts[0].ContainerPath = "/dev/card0" }, "used twice"},
		{"writable mount", func(e *device.Edits) { e.Mounts[0].ReadOnly = false }, "can be written"},
		{"env with equals", func(e *device.Edits) { e.Env["A=B"] = "" }, "can not be passed"},
		{"env with nul", func(e *device.Edits) { e.Env["A"] = "\x00" }, "can not be passed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			edits := sound()
			test.spoil(&edits)
			expect(t, Edits(edits), test.says)
		})
	}
}

func expect(t *testing.T, err error, says string) {
	t.Helper()
	switch {
	case says == "" && err != nil:
		t.Errorf("refused: %v", err)
	case says != "" && (err == nil || !strings.Contains(err.Error(), says)):
		t.Errorf("got %v, want it to say %q", err, says)
	}
}
