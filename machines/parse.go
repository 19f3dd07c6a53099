package machines

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/device"
)

const (
	// A machine of today has sixteen at most. The limit is what the vendor's
	// driver can number.
	maxDevices  = 64
	maxNUMANode = 1023
)

var (
	versionForm    = regexp.MustCompile(`^[0-9]{1,6}(\.[0-9]{1,6}){1,3}$`)
	capabilityForm = regexp.MustCompile(`^[0-9]{1,3}\.[0-9]{1,3}$`)
	pciForm        = regexp.MustCompile(`^([0-9a-f]{4}|[1-9a-f][0-9a-f]{4,7}):[0-9a-f]{2}:[01][0-9a-f]\.[0-7]$`)
)

// Parse reads a machine. The file's name gives the machine its name and
// stands in the errors: one "file:line: message" for every mistake.
func Parse(filename string, data []byte) (Machine, error) {
	r := &reader{filename: filename}
	machine := Machine{Name: nameOf(filename)}
	if root := r.document(data); root != nil {
		r.machine(root, &machine)
	}
	if err := r.err(); err != nil {
		return Machine{}, err
	}
	return machine, nil
}

func (r *reader) machine(root *yaml.Node, machine *Machine) {
	m := r.mapping(root, "machine",
		[]string{"description", "driver", "cuda", "models", "devices"}, []string{"links"})

	machine.Description = r.text(m, "description")
	machine.DriverVersion = r.form(m, "driver", versionForm, "a version such as 570.86.15")
	machine.CUDAVersion = r.form(m, "cuda", versionForm, "a version such as 12.8")

	models := map[string]Model{}
	if m.has("models") {
		for key, value := range r.pairs(m.values["models"], "models") {
			models[key.Value] = r.model(value, "model "+key.Value)
		}
	}
	if m.has("devices") {
		machine.Devices = r.devices(m.values["devices"], models)
	}
	// Without devices every link is wrong, and saying so helps nobody.
	if m.has("links") && len(machine.Devices) > 0 {
		machine.Links = r.links(m.values["links"], len(machine.Devices))
	}
}

func (r *reader) model(n *yaml.Node, what string) Model {
	m := r.mapping(n, what,
		[]string{"name", "architecture", "computeCapability", "memory", "multiprocessors"}, nil)
	model := Model{
		Name:              r.text(m, "name"),
		Architecture:      r.text(m, "architecture"),
		ComputeCapability: r.form(m, "computeCapability", capabilityForm, "a version such as 9.0"),
	}
	if text := r.text(m, "memory"); text != "" {
		amount, err := memory(text)
		if err != nil {
			r.wrong(m.values["memory"], "%s: memory: %v", what, err)
		}
		model.MemoryBytes = amount
	}
	if m.has("multiprocessors") {
		model.Multiprocessors = r.number(m.values["multiprocessors"], what+": multiprocessors", 1, maxCount)
	}
	return model
}

// devices reads the list; one that is wrong still has its place in it, so
// that the links are checked against the right number.
func (r *reader) devices(n *yaml.Node, models map[string]Model) []Device {
	items := r.list(n, "devices")
	if len(items) > maxDevices {
		r.wrong(items[maxDevices], "devices: a machine has %d of them at most", maxDevices)
		items = items[:maxDevices]
	}
	devices := make([]Device, len(items))
	at := map[string]int{}
	for i, item := range items {
		what := fmt.Sprintf("device %d", i)
		m := r.mapping(item, what, []string{"model", "pci"}, []string{"numa"})
		devices[i].NUMANode = device.UnknownNUMANode
		if m.has("numa") {
			devices[i].NUMANode = r.number(m.values["numa"], what+": numa", 0, maxNUMANode)
		}
		if name := r.text(m, "model"); name != "" {
			model, known := models[name]
			if !known {
				r.wrong(m.values["model"], "%s: model %q is not defined; defined are %s", what, name, names(models))
			}
			devices[i].Model = model
		}
		pci := r.form(m, "pci", pciForm, "a PCI address in the kernel's form, such as 0000:3b:00.0")
		if first, taken := at[pci]; taken && pci != "" {
			r.wrong(m.values["pci"], "%s: device %d already has the PCI address %s", what, first, pci)
		} else {
			at[pci] = i
		}
		devices[i].PCIAddress = pci
	}
	return devices
}

func names(models map[string]Model) string {
	if len(models) == 0 {
		return "none"
	}
	var all []string
	for name := range models {
		all = append(all, name)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}
