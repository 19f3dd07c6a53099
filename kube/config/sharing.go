package config

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/internal/strictyaml"
	"github.com/kilter-dev/kilter/kube"
)

const (
	// The list of all replicas goes to the kubelet in one message of 4 MiB at
	// most: this many of each of sixteen devices fit.
	maxReplicas = 4096
	// An MPS server takes this many clients.
	maxMPSReplicas = 48
	// No machine has more.
	maxDevices = 1024
)

// Rule is one entry of sharing: some devices, and how they are shared.
type Rule struct {
	// Where the rule stands, as file:line.
	Where string
	// Resource is the name that the devices have before they are shared.
	Resource string
	Devices  Selection
	Strategy Strategy
	// OneEach refuses containers that ask for more than one replica.
	OneEach bool
	// Parts are what each of the devices is cut into, at least one.
	Parts []Part
}

// Part is a number of alike replicas of a device.
type Part struct {
	// Resource is the name that they are offered under.
	Resource string
	Replicas int
	// Percent is how much of the device each of them has. When it is 0, the
	// device is divided equally by MPS, and not at all by time-slicing.
	Percent int
}

// entry is a rule and where it was written.
type entry struct {
	rule Rule
	node *yaml.Node
	what string
}

// sharing reads one of the two sections.
func (f *fileReader) sharing(n *yaml.Node, place string, strategy Strategy) {
	optional := slices.DeleteFunc(keysBelow(place), func(key string) bool { return key == "resources" })
	m := f.Mapping(n, place, []string{"resources"}, optional)
	withSuffix := has(m, "renameByDefault") && f.Bool(m.Values["renameByDefault"], place+".renameByDefault")
	oneEach := strategy == MPS
	if key := "failRequestsGreaterThanOne"; has(m, key) {
		oneEach = f.Bool(m.Values[key], place+"."+key)
	}
	if !m.Has("resources") {
		return
	}
	list := place + ".resources"
	for i, item := range f.List(m.Values["resources"], list) {
		r := ruleReader{fileReader: f, strategy: strategy, withSuffix: withSuffix}
		if rule, ok := r.rule(item, fmt.Sprintf("%s[%d]", list, i), keysBelow(list+"[]")); ok {
			rule.OneEach = oneEach && rule.Strategy != Whole
			f.entries = append(f.entries, entry{rule, item, fmt.Sprintf("%s[%d]", list, i)})
		}
	}
}

// ruleReader reads one entry of a section.
type ruleReader struct {
	*fileReader
	strategy   Strategy
	withSuffix bool
}

// rule reports whether what it returns is free of mistakes.
func (r ruleReader) rule(n *yaml.Node, what string, keys []string) (Rule, bool) {
	before := r.Mistakes()
	optional := slices.DeleteFunc(keys, func(key string) bool { return key == "name" })
	m := r.Mapping(n, what, []string{"name"}, optional)
	rule := Rule{Where: r.At(n), Devices: All{}, Strategy: r.strategy, Resource: r.resourceName(m, "name")}
	r.checkResource(m, rule.Resource)
	if has(m, "devices") {
		rule.Devices = r.selection(m.Values["devices"], what+": devices")
	}
	switch {
	case n.Kind != yaml.MappingNode:
	case has(m, "replicas") && has(m, "shares"):
		r.Wrong(m.Values["shares"], "%s: it has either replicas, which are equal, or shares", what)
	case has(m, "shares"):
		rule.Parts = r.shares(m, rule.Resource)
	case has(m, "replicas"):
		rule.Parts = r.replicas(m, rule.Resource)
		if rule.Parts[0].Replicas == 1 {
			rule.Strategy = Whole
		}
	default:
		r.Wrong(n, "%s: the key \"replicas\" is missing", what)
	}
	return rule, r.Mistakes() == before
}

// checkResource refuses what can not be shared in this way on any node.
func (r ruleReader) checkResource(m strictyaml.Mapping, resource string) {
	vendor, kind, _ := strings.Cut(resource, "/")
	switch {
	case resource == "" || r.strategy != MPS:
	case vendor != nvidia:
		r.Wrong(m.Values["name"], "%s: %s can not be shared by MPS, which is for NVIDIA's GPUs", m.What, resource)
	case strings.HasPrefix(kind, "mig-"):
		r.Wrong(m.Values["name"], "%s: %s can not be shared by MPS: only whole GPUs are", m.What, resource)
	}
}

// replicas reads how many equal replicas a device has.
func (r ruleReader) replicas(m strictyaml.Mapping, resource string) []Part {
	most := maxReplicas
	if r.strategy == MPS {
		most = maxMPSReplicas
	}
	count := r.Number(m.Values["replicas"], m.What+": replicas", 1, most)
	return []Part{{Resource: r.offered(m, resource, count > 1), Replicas: count}}
}

// offered is the name for the replicas that m describes.
func (r ruleReader) offered(m strictyaml.Mapping, resource string, shared bool) string {
	switch name := r.resourceName(m, "rename"); {
	case name != "":
		return name
	case !shared || !r.withSuffix || resource == "":
		return resource
	}
	name := resource + sharedSuffix
	if _, _, err := kube.ParseResourceName(name); err != nil {
		r.Wrong(m.Node, "%s: renameByDefault: %v", m.What, err)
	}
	return name
}
