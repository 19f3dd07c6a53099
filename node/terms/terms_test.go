package terms

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/inventory"
)

func read(t *testing.T, text string) config.Config {
	t.Helper()
	c, _, err := config.Read(config.Sources{File: &config.File{Name: "config.yaml", Data: []byte(text)}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// with is a node with the GPUs of these numbers.
func with(numbers ...int) inventory.Snapshot {
	snapshot := inventory.Snapshot{Complete: true}
	for _, i := range numbers {
		snapshot.Devices = append(snapshot.Devices, device.Device{ID: device.ID(fmt.Sprintf("GPU-%d", i)), Vendor: "nvidia.com", Kind: "gpu", Index: i})
	}
	return snapshot
}

// shown is what there is of each GPU.
func shown(view *View) map[device.ID]string {
	text := make(map[device.ID]string)
	for id, offer := range view.Offers {
		text[id] = fmt.Sprintf("%d %s", offer.Replicas, strings.TrimPrefix(offer.Resource, "nvidia.com/"))
	}
	return text
}

func newTerms(t *testing.T, text string) (*Terms, *bytes.Buffer) {
	t.Helper()
	log := &bytes.Buffer{}
	terms, err := New(read(t, text), slog.New(slog.NewTextHandler(log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	return terms, log
}

const (
	byMPS   = "version: v1\nsharing:\n  mps:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 2}\n"
	twoEach = "sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}"
	onlyOne = "sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, devices: [1], replicas: 2}]}}"
)

func TestMPSIsRefused(t *testing.T) {
	want := "config.yaml:5: sharing nvidia.com/gpu by MPS is not there yet; use timeSlicing, or take the entry out"
	if _, err := New(read(t, byMPS), slog.New(slog.DiscardHandler)); err == nil || err.Error() != want {
		t.Errorf("at the start: %v", err)
	}
	terms, _ := newTerms(t, twoEach)
	if err := terms.Use(read(t, byMPS), with(0)); err == nil || err.Error() != want {
		t.Errorf("while running: %v", err)
	}
	// What stays whole needs no MPS.
	if _, err := New(read(t, "sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 1}]}}"), slog.New(slog.DiscardHandler)); err != nil {
		t.Error(err)
	}
}

func TestWithoutAConfiguration(t *testing.T) {
	var terms *Terms
	terms.Look(with(0))
	if terms.View() != nil || terms.Changed() != nil {
		t.Error("no configuration has terms")
	}
}

func TestDevicesComeAndGo(t *testing.T) {
	terms, log := newTerms(t, onlyOne)
	incomplete := with()
	incomplete.Complete = false
	terms.Look(incomplete)
	if log.Len() > 0 {
		t.Errorf("a device is missed before all drivers have reported: %s", log)
	}
	changed := terms.Changed()
	terms.Look(with(0, 1))
	select {
	case <-changed:
	default:
		t.Error("the change is not announced")
	}
	if diff := cmp.Diff(map[device.ID]string{"GPU-0": "1 gpu", "GPU-1": "2 gpu.shared"}, shown(terms.View())); diff != "" {
		t.Error(diff)
	}
	changed = terms.Changed()
	terms.Look(with(0, 1))
	select {
	case <-changed:
		t.Error("a change is announced where there is none")
	default:
	}
	for range 2 {
		terms.Look(with(0))
	}
	if diff := cmp.Diff(map[device.ID]string{"GPU-0": "1 gpu"}, shown(terms.View())); diff != "" {
		t.Error(diff)
	}
	if n := strings.Count(log.String(), "config.yaml:1: it names device 1"); n != 1 {
		t.Errorf("the loss was logged %d times:\n%s", n, log)
	}
}

func TestANewConfigurationHasToFit(t *testing.T) {
	terms, _ := newTerms(t, twoEach)
	terms.Look(with(0, 2))
	before := shown(terms.View())
	for name, test := range map[string]struct{ text, want string }{
		"a device that is not there": {onlyOne, "config.yaml:1: it names device 1; of nvidia.com/gpu this node has devices 0, 2"},
		"two sorts under one name":   {"sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, devices: [0], replicas: 2}]}}", "config.yaml:1: under the name nvidia.com/gpu"},
	} {
		if err := terms.Use(read(t, test.text), with(0, 2)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(before, shown(terms.View())); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
	if err := terms.Use(read(t, "flags: {plugin: {sharedDevicesAllocationPolicy: packed}}"), with(0, 2)); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(map[device.ID]string{"GPU-0": "1 gpu", "GPU-2": "1 gpu"}, shown(terms.View())); diff != "" || terms.View().Policy != config.Packed {
		t.Error(diff, terms.View().Policy)
	}
}

// A device that Kubernetes has no name for is in nobody's way.
func TestDeviceWithoutAName(t *testing.T) {
	terms, log := newTerms(t, twoEach)
	snapshot := with(0)
	snapshot.Devices = append(snapshot.Devices, device.Device{ID: "odd", Vendor: "no domain!", Kind: "nic"})
	terms.Look(snapshot)
	if diff := cmp.Diff(map[device.ID]string{"GPU-0": "2 gpu"}, shown(terms.View())); diff != "" || log.Len() > 0 {
		t.Errorf("%s\n%s", diff, log)
	}
}
