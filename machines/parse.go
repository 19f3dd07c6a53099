package machines

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/internal/strictyaml"
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

// reader reads machines.
type reader struct{ *strictyaml.Reader }

// Parse reads a machine. The file's name gives the machine its name and
// stands in the errors: one "file:line: message" for every mistake.
func Parse(filename string, data []byte) (Machine, error) {
	r := &reader{strictyaml.New(filename)}
	machine := Machine{Name: nameOf(filename)}
	if root := r.Document(data, "machine"); root != nil {
		r.machine(root, &machine)
	} else if r.Mistakes() == 0 {
		r.Wrong(&yaml.Node{Line: 1}, "the file is empty")
	}
	if err := r.Err(); err != nil {
		return Machine{}, err
	}
	return machine, nil
}

func (r *reader) machine(root *yaml.Node, machine *Machine) {
	m := r.Mapping(root, "machine",
		[]string{"description", "driver", "cuda", "models", "devices"}, []string{"links"})

	machine.Description = r.TextAt(m, "description")
	machine.DriverVersion = r.FormAt(m, "driver", versionForm, "a version such as 570.86.15")
	machine.CUDAVersion = r.FormAt(m, "cuda", versionForm, "a version such as 12.8")

	models := map[string]Model{}
	if m.Has("models") {
		for key, value := range r.Pairs(m.Values["models"], "models") {
			models[key.Value] = r.model(value, "model "+key.Value)
		}
	}
	if m.Has("devices") {
		machine.Devices = r.devices(m.Values["devices"], models)
	}
	// Without devices every link is wrong, and saying so helps nobody.
	if m.Has("links") && len(machine.Devices) > 0 {
		machine.Links = r.links(m.Values["links"], len(machine.Devices))
	}
}

func (r *reader) model(n *yaml.Node, what string) Model {
	m := r.Mapping(n, what,
		[]string{"name", "architecture", "computeCapability", "memory", "multiprocessors"}, nil)
	model := Model{
		Name:              r.TextAt(m, "name"),
		Architecture:      r.TextAt(m, "architecture"),
		ComputeCapability: r.FormAt(m, "computeCapability", capabilityForm, "a version such as 9.0"),
	}
	if text := r.TextAt(m, "memory"); text != "" {
		amount, err := memory(text)
		if err != nil {
			r.Wrong(m.Values["memory"], "%s: memory: %v", what, err)
		}
		model.MemoryBytes = amount
	}
	if m.Has("multiprocessors") {
		model.Multiprocessors = r.Number(m.Values["multiprocessors"], what+": multiprocessors", 1, maxCount)
	}
	return model
}

// devices reads the list; one that is wrong still has its place in it, so
// that the links are checked against the right number.
func (r *reader) devices(n *yaml.Node, models map[string]Model) []Device {
	items := r.List(n, "devices")
	if len(items) > maxDevices {
		r.Wrong(items[maxDevices], "devices: a machine has %d of them at most", maxDevices)
		items = items[:maxDevices]
	}
	devices := make([]Device, len(items))
	at := map[string]int{}
	for i, item := range items {
		what := fmt.Sprintf("device %d", i)
		m := r.Mapping(item, what, []string{"model", "pci"}, []string{"numa"})
		devices[i].NUMANode = device.UnknownNUMANode
		if m.Has("numa") {
			devices[i].NUMANode = r.Number(m.Values["numa"], what+": numa", 0, maxNUMANode)
		}
		if name := r.TextAt(m, "model"); name != "" {
			model, known := models[name]
			if !known {
				r.Wrong(m.Values["model"], "%s: model %q is not defined; defined are %s", what, name, names(models))
			}
			devices[i].Model = model
		}
		pci := r.FormAt(m, "pci", pciForm, "a PCI address in the kernel's form, such as 0000:3b:00.0")
		if first, taken := at[pci]; taken && pci != "" {
			r.Wrong(m.Values["pci"], "%s: device %d already has the PCI address %s", what, first, pci)
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
