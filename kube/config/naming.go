package config

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/internal/strictyaml"
	"github.com/kilter-dev/kilter/kube"
)

const (
	nvidia       = "nvidia.com"
	sharedSuffix = ".shared"
)

// Naming gives NVIDIA's devices a resource name by what they are.
type Naming struct {
	// MIG says whether it is for the slices of partitioned GPUs, by their
	// profile, or for whole ones, by their model.
	MIG bool
	// Pattern is matched in full; * stands for any text.
	Pattern  string
	Resource string
}

// resources reads the list of patterns for GPUs, and that for MIG slices.
func (f *fileReader) resources(n *yaml.Node, place string) {
	m := f.Mapping(n, place, nil, keysBelow(place))
	for _, key := range keysBelow(place) {
		if !has(m, key) {
			continue
		}
		list := place + "." + key
		for i, item := range f.List(m.Values[key], list) {
			what := fmt.Sprintf("%s[%d]", list, i)
			entry := f.Mapping(item, what, keysBelow(list+"[]"), nil)
			f.into.config.Names = append(f.into.config.Names, Naming{
				MIG:      key == "mig",
				Pattern:  f.TextAt(entry, "pattern"),
				Resource: f.resourceName(entry, "name"),
			})
		}
	}
}

// resourceName reads a name, to which NVIDIA's domain may be added.
func (f *fileReader) resourceName(m strictyaml.Mapping, key string) string {
	if !has(m, key) {
		return ""
	}
	name := f.TextAt(m, key)
	if name == "" {
		return ""
	}
	if !strings.Contains(name, "/") {
		name = nvidia + "/" + name
	}
	if _, _, err := kube.ParseResourceName(name); err != nil {
		f.Wrong(m.Values[key], "%s: %s: %v", m.What, key, err)
		return ""
	}
	return name
}

// resourceOf is the name of a device before anything is shared.
func (c Config) resourceOf(d device.Device) (string, error) {
	if d.Vendor == nvidia {
		fact := d.Model
		if isSlice(d) {
			fact = ""
			if profile, ok := d.Attributes[device.AttributeProfile]; ok {
				fact = profile.String()
			}
		}
		for _, name := range c.Names {
			if name.MIG == isSlice(d) && matches(name.Pattern, fact) {
				return name.Resource, nil
			}
		}
	}
	return kube.ResourceName(d)
}

// isSlice reports whether a device is a part of another one.
func isSlice(d device.Device) bool {
	_, cut := d.Attributes[device.AttributeParentUUID]
	return cut
}

// matches compares a text with a pattern in which * stands for any text.
func matches(pattern, text string) bool {
	parts := strings.Split(pattern, "*")
	first, last := parts[0], parts[len(parts)-1]
	if len(parts) == 1 {
		return pattern == text
	}
	rest, begins := strings.CutPrefix(text, first)
	if !begins {
		return false
	}
	for _, part := range parts[1 : len(parts)-1] {
		_, after, found := strings.Cut(rest, part)
		if !found {
			return false
		}
		rest = after
	}
	return strings.HasSuffix(rest, last)
}
