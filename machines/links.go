package machines

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

var pairForm = regexp.MustCompile(`^([0-9]{1,9})-([0-9]{1,9})$`)

// linkReader reads the groups of links of a machine with so many devices.
type linkReader struct {
	*reader
	devices int
	byPair  map[[2]int]Link
}

// links reads a list of groups. A group has either the lanes of every single
// pair, or one number of lanes between all of some devices.
func (r *reader) links(n *yaml.Node, devices int) []Link {
	l := &linkReader{reader: r, devices: devices, byPair: map[[2]int]Link{}}
	for i, item := range r.List(n, "links") {
		l.group(item, fmt.Sprintf("link group %d", i))
	}
	var links []Link
	for _, link := range l.byPair {
		links = append(links, link)
	}
	slices.SortFunc(links, func(a, b Link) int { return cmp.Or(a.A-b.A, a.B-b.B) })
	return links
}

func (l *linkReader) group(n *yaml.Node, what string) {
	m := l.Mapping(n, what, []string{"kind", "laneBandwidth"}, []string{"between", "lanes", "pairs"})
	if n.Kind != yaml.MappingNode {
		return
	}

	kind := device.LinkKind(l.TextAt(m, "kind"))
	if kind != "" && kind != device.NVLink && kind != device.NVSwitch {
		l.Wrong(m.Values["kind"], "%s: kind: %q is neither %s nor %s", what, kind, device.NVLink, device.NVSwitch)
	}
	var lane rate
	if text := l.TextAt(m, "laneBandwidth"); text != "" {
		var err error
		if lane, err = parseRate(text); err != nil {
			l.Wrong(m.Values["laneBandwidth"], "%s: laneBandwidth: %v", what, err)
		}
	}
	link := func(at *yaml.Node, a, b, lanes int) {
		bandwidth := int64(0)
		if lane.mbps != nil {
			bandwidth = lane.over(lanes)
		}
		l.add(at, what, Link{A: min(a, b), B: max(a, b), Kind: kind, Lanes: lanes, BandwidthMBps: bandwidth})
	}

	switch {
	case m.Has("between") == m.Has("pairs"):
		l.Wrong(n, "%s: it has either the key \"between\" or the key \"pairs\"", what)
	case m.Has("between"):
		l.joinAll(m, link)
	case m.Has("lanes"):
		l.Wrong(m.Values["lanes"], "%s: lanes go with \"between\"; each of the pairs has its own number", what)
	case kind == device.NVSwitch:
		l.Wrong(m.Values["pairs"], "%s: a switch links all of its devices, so it has \"between\", not \"pairs\"", what)
	default:
		l.joinPairs(m, link)
	}
}

// joinAll links each of some devices with every other of them.
func (l *linkReader) joinAll(m strictyaml.Mapping, link func(at *yaml.Node, a, b, lanes int)) {
	if !m.Has("lanes") {
		l.Wrong(m.Node, "%s: the key \"lanes\" is missing", m.What)
		return
	}
	lanes := l.Number(m.Values["lanes"], m.What+": lanes", 1, maxLanes)
	n := m.Values["between"]
	var members []int
	switch {
	case n.Kind == yaml.ScalarNode && n.Value == "all":
		for i := range l.devices {
			members = append(members, i)
		}
	case n.Kind == yaml.SequenceNode:
		for _, item := range n.Content {
			before := l.Mistakes()
			number := l.Number(item, m.What+": between", 0, maxCount)
			if l.Mistakes() > before {
				return
			}
			members = append(members, number)
		}
	default:
		l.Wrong(n, "%s: between: wanted all or a list of devices, found %s", m.What, strictyaml.Describe(n))
		return
	}
	if len(members) < 2 {
		l.Wrong(n, "%s: between: it takes two devices to make a link", m.What)
	}
	for i, a := range members {
		for _, b := range members[i+1:] {
			link(n, a, b, lanes)
		}
	}
}

// joinPairs links two devices for each key, such as "0-3", with as many lanes as
// its value.
func (l *linkReader) joinPairs(m strictyaml.Mapping, link func(at *yaml.Node, a, b, lanes int)) {
	what := m.What + ": pairs"
	for key, value := range l.Pairs(m.Values["pairs"], what) {
		ends := pairForm.FindStringSubmatch(key.Value)
		if ends == nil {
			l.Wrong(key, "%s: %q is not two devices such as 0-3", what, key.Value)
			continue
		}
		a, _ := strconv.Atoi(ends[1])
		b, _ := strconv.Atoi(ends[2])
		link(key, a, b, l.Number(value, what+": "+key.Value, 1, maxLanes))
	}
}

func (l *linkReader) add(at *yaml.Node, what string, link Link) {
	pair := [2]int{link.A, link.B}
	_, taken := l.byPair[pair]
	switch {
	case link.A == link.B:
		l.Wrong(at, "%s: device %d is linked to itself", what, link.A)
	case link.B >= l.devices:
		l.Wrong(at, "%s: there is no device %d; they are numbered from 0 to %d", what, link.B, l.devices-1)
	case taken:
		l.Wrong(at, "%s: devices %d and %d are linked twice", what, link.A, link.B)
	default:
		l.byPair[pair] = link
	}
}
