package config

import (
	"fmt"

	"github.com/kilter-dev/kilter/internal/strictyaml"
)

// shares reads the sizes that a device is cut into. Each has a name of its
// own: with one name for two sizes, nobody could ask for the one that they need.
func (r ruleReader) shares(m strictyaml.Mapping, resource string) []Part {
	if has(m, "rename") {
		r.Wrong(m.Values["rename"], "%s: rename: with shares, each of them has its own rename", m.What)
	}
	list := m.Values["shares"]
	items := r.List(list, m.What+": shares")
	var parts []Part
	names := map[string]bool{}
	percent, count := 0, 0
	for i, item := range items {
		what := fmt.Sprintf("%s: shares[%d]", m.What, i)
		share := r.Mapping(item, what, []string{"percent"}, []string{"replicas", "rename"})
		part := Part{Replicas: 1}
		if has(share, "percent") {
			part.Percent = r.Number(share.Values["percent"], what+": percent", 1, 100)
		}
		if has(share, "replicas") {
			part.Replicas = r.Number(share.Values["replicas"], what+": replicas", 1, maxMPSReplicas)
		}
		part.Resource = r.offered(share, resource, true)
		switch {
		case len(items) > 1 && !has(share, "rename"):
			r.Wrong(item, "%s: the key \"rename\" is missing: shares of several sizes need a name each", what)
		case names[part.Resource] && part.Resource != "":
			r.Wrong(item, "%s: rename: another share is called %s; each size needs a name of its own", what, part.Resource)
		}
		names[part.Resource] = true
		percent += part.Percent * part.Replicas
		count += part.Replicas
		parts = append(parts, part)
	}
	if percent > 100 {
		r.Wrong(list, "%s: shares: they make %d percent of a device", m.What, percent)
	}
	if count > maxMPSReplicas {
		r.Wrong(list, "%s: shares: they are %d, and an MPS server takes %d clients", m.What, count, maxMPSReplicas)
	}
	return parts
}
