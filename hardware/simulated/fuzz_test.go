package simulated

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/conformance"
	"github.com/kilter-dev/kilter/machines"
)

// FuzzReplay replays whatever passes for a machine, and checks what the driver
// makes of it. Nothing is written.
func FuzzReplay(f *testing.F) {
	files, err := filepath.Glob("../../machines/*.yaml")
	if err != nil || len(files) == 0 {
		f.Fatal("the recorded machines are not found", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		machine, err := machines.Parse("m.yaml", data)
		if err != nil {
			return
		}
		d, err := New(Config{Machine: machine, NodeName: "n", Root: "/sim"})
		if err != nil {
			t.Fatal(err)
		}
		d.faults = map[device.ID]fault{d.devices[0].ID: {Reason: "sick"}}
		devices, _, err := d.snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if err := conformance.Devices(devices); err != nil {
			t.Error(err)
		}
		if err := conformance.Edits(d.edits(devices)); err != nil {
			t.Error(err)
		}
	})
}
