package config

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/internal/strictyaml"
)

// Selection says which devices of a resource a rule is for. It is one of All,
// First and These.
type Selection interface{ isSelection() }

type (
	// All devices of the resource.
	All struct{}
	// First is the number of devices, counted from the lowest index.
	First int
	// These devices, by name: an index such as 0, the index of a GPU and of a
	// slice of it such as 0:1, or a UUID.
	These []string
)

func (All) isSelection()   {}
func (First) isSelection() {}
func (These) isSelection() {}

var (
	indexForm = regexp.MustCompile(`^(0|[1-9][0-9]{0,5})(:(0|[1-9][0-9]{0,5}))?$`)
	uuidForm  = regexp.MustCompile(`^(GPU|MIG)-[0-9A-Za-z/-]+$`)
)

// selection reads the value of the key devices.
func (f *fileReader) selection(n *yaml.Node, what string) Selection {
	switch {
	case n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int":
		return First(f.Number(n, what, 1, maxDevices))
	case n.Kind == yaml.SequenceNode:
		var these These
		for _, item := range f.List(n, what) {
			switch name := f.Text(item, what); {
			case name == "": // it has been noted
			case !indexForm.MatchString(name) && !uuidForm.MatchString(name):
				f.Wrong(item, "%s: %q is no device; write an index (0), a MIG index (0:1) or a UUID (GPU-…, MIG-…)", what, name)
			case slices.Contains(these, name):
				f.Wrong(item, "%s: %s is there twice", what, name)
			default:
				these = append(these, name)
			}
		}
		return these
	case n.Kind == yaml.ScalarNode && n.Value == "all":
	default:
		f.Wrong(n, "%s: wanted all, a number or a list, found %s", what, strictyaml.Describe(n))
	}
	return All{}
}

// overlaps says in words what two selections of one resource have in common
// on every node that has what they name. Where else they meet is seen on the
// node.
func overlaps(a, b Selection) (what string, ok bool) {
	_, aAll := a.(All)
	_, bAll := b.(All)
	if aAll || bAll {
		return "the same devices", true
	}
	_, aFirst := a.(First)
	_, bFirst := b.(First)
	if aFirst && bFirst {
		return "the first device", true
	}
	these, _ := a.(These)
	others, _ := b.(These)
	for _, name := range these {
		if slices.Contains(others, name) {
			return "device " + name, true
		}
	}
	return "", false
}

// isCalled reports whether a device is meant by a name.
func isCalled(d device.Device, name string) bool {
	return string(d.ID) == name || nameOf(d) == name
}

// nameOf is the short name of a device: its index, and the slice's if it is
// one.
func nameOf(d device.Device) string {
	if !isSlice(d) {
		return strconv.Itoa(d.Index)
	}
	return fmt.Sprintf("%d:%d", d.Index, sliceIndex(d))
}

// sliceIndex is the number of a slice on its GPU, or -1 when the driver does
// not say.
func sliceIndex(d device.Device) int {
	if index, ok := d.Attributes[device.AttributeMIGIndex].(device.Int); ok {
		return int(index)
	}
	return -1
}

// inOrder sorts devices by their numbers.
func inOrder(devices []device.Device) []device.Device {
	sorted := slices.Clone(devices)
	slices.SortFunc(sorted, func(a, b device.Device) int {
		return cmp.Or(
			cmp.Compare(a.Vendor, b.Vendor),
			cmp.Compare(a.Index, b.Index),
			cmp.Compare(sliceIndex(a), sliceIndex(b)),
			cmp.Compare(a.ID, b.ID),
		)
	})
	return sorted
}
