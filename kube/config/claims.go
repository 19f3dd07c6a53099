package config

import (
	"slices"
	"strings"
)

// claims compares the rules with each other, when all have been read.
func (f *fileReader) claims() {
	for i, e := range f.entries {
		if !f.isName(e.rule.Resource) {
			f.Wrong(e.node, "%s: name: nothing is called %s; there are %s", e.what, e.rule.Resource, strings.Join(f.knownNames(), ", "))
		}
		for _, earlier := range f.entries[:i] {
			if earlier.rule.Resource != e.rule.Resource {
				continue
			}
			if what, both := overlaps(earlier.rule.Devices, e.rule.Devices); both {
				f.Wrong(e.node, "%s: %s claims %s of %s too; a device is shared in one way, so list the devices of each", e.what, earlier.rule.Where, what, e.rule.Resource)
			}
		}
		f.into.config.Sharing = append(f.into.config.Sharing, e.rule)
	}
}

// isName reports whether a device can have the name. Other vendors' devices
// have names that are not known here.
func (f *fileReader) isName(resource string) bool {
	vendor, kind, _ := strings.Cut(resource, "/")
	return vendor != nvidia || kind == "gpu" || strings.HasPrefix(kind, "mig-") ||
		slices.Contains(f.knownNames(), resource)
}

func (f *fileReader) knownNames() []string {
	known := []string{nvidia + "/gpu", nvidia + "/mig-…"}
	for _, name := range f.into.config.Names {
		if !slices.Contains(known, name.Resource) {
			known = append(known, name.Resource)
		}
	}
	return known
}
