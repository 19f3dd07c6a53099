package cli

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/machines"
	"github.com/kilter-dev/kilter/node/local"
)

var update = flag.Bool("update", false, "write the golden files anew")

func report(t *testing.T, node, machine string) local.Report {
	t.Helper()
	recorded, err := machines.Load(machine)
	if err != nil {
		t.Fatal(err)
	}
	r := local.Report{Node: node}
	for _, d := range recorded.On(node) {
		r.Devices = append(r.Devices, local.Device{Device: d, Resource: "nvidia.com/gpu", Door: local.DoorDevicePlugin, Offered: true})
	}
	return r
}

// What a person sees, for each recorded machine and for what can be unusual.
func TestDevicesTable(t *testing.T) {
	var out bytes.Buffer
	for _, machine := range machines.Names() {
		if err := printDevices(&out, []local.Report{report(t, machine, machine)}); err != nil {
			t.Fatal(err)
		}
		out.WriteByte('\n')
	}
	busy := report(t, "busy", "t4x2")
	busy.Devices[0].Holders = []local.Holder{{Namespace: "default", Pod: "train-0", Container: "main"}, {Namespace: "team", Pod: "infer", Container: "server"}}
	busy.Devices[0].Note = "it is kept for default/train-0/main, which the kubelet has lost track of, until that Pod ends"
	busy.Devices[1].Health = device.Health{State: device.Unhealthy, Reason: "XID 79: fallen off the bus"}
	busy.Devices[1].Offered, busy.Devices[1].NUMANode, busy.Devices[1].Capacity.MemoryBytes = false, device.UnknownNUMANode, 0
	if err := printDevices(&out, []local.Report{busy, {Node: "empty"}}); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "devices.golden")
	if *update {
		if err := os.WriteFile(golden, out.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(out.Bytes(), want) {
		t.Errorf("the tables are not those of %s; if that is meant, run with -update. They are:\n%s", golden, out.String())
	}
}

func TestMemoryAsPeopleSayIt(t *testing.T) {
	for bytes, want := range map[int64]string{0: "-", 512 << 20: "512 MiB", 15360 << 20: "15 GiB", 81559 << 20: "80 GiB", 143771 << 20: "140 GiB"} {
		if got := memory(bytes); got != want {
			t.Errorf("%d bytes are %q, want %q", bytes, got, want)
		}
	}
}
