package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Reason is why some nodes can not serve a request: the first thing that is
// missing on them, and by how much.
type Reason struct {
	Text  string   `json:"text"`
	Nodes []string `json:"nodes"` // in the order of names
}

// Explain says, for every node that can not serve the request, what is
// missing there. Nodes that lack the same are together; the reason of the most
// nodes comes first. It is empty when every node could serve the request.
func (c *Cluster) Explain(r Request) ([]Reason, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	byText := map[string][]string{}
	for _, n := range c.nodes {
		if n == nil {
			continue
		}
		if text := c.missing(n, &r); text != "" {
			byText[text] = append(byText[text], n.name)
		}
	}
	reasons := make([]Reason, 0, len(byText))
	for text, nodes := range byText {
		slices.Sort(nodes)
		reasons = append(reasons, Reason{text, nodes})
	}
	slices.SortFunc(reasons, func(a, b Reason) int {
		return cmp.Or(cmp.Compare(len(b.Nodes), len(a.Nodes)), cmp.Compare(a.Text, b.Text))
	})
	return reasons, nil
}

// missing is the first thing that the request lacks on the node: first
// devices, then what is needed besides.
func (c *Cluster) missing(n *node, r *Request) string {
	for i := range r.Groups {
		if text := n.missingDevices(&r.Groups[i]); text != "" {
			if len(r.Groups) > 1 && r.Groups[i].Name != "" {
				return r.Groups[i].Name + ": " + text
			}
			return text
		}
	}
	switch {
	case n.free.CPUMilli < r.Host.CPUMilli:
		return fmt.Sprintf("%s of CPU are free, %s asked for: %s short", cores(n.free.CPUMilli),
			cores(r.Host.CPUMilli), cores(r.Host.CPUMilli-n.free.CPUMilli))
	case n.free.MemoryBytes < r.Host.MemoryBytes:
		return fmt.Sprintf("%s of memory are free, %s asked for: %s short", bytes(n.free.MemoryBytes),
			bytes(r.Host.MemoryBytes), bytes(r.Host.MemoryBytes-n.free.MemoryBytes))
	case n.free.Pods < r.Host.Pods:
		return "the node has as many Pods as it can have"
	case len(c.options(n, r)) == 0:
		return "each group of devices is there, but not all of them together"
	}
	return ""
}

// missingDevices is the first thing a group lacks on the node, as if it were
// alone.
func (n *node) missingDevices(g *Group) string {
	a := assignment{node: n, room: slices.Clone(n.room)}
	matching := n.matching(g.Selector)
	var match, well, large, fit int
	var most Amount // that is free on any of them
	for i := range n.devices {
		d := &n.devices[i]
		if !matching[i] {
			continue
		}
		match++
		if !d.Health.OK() {
			continue
		}
		well++
		if d.capacity().holds(g.Each) {
			large++
		}
		if a.fits(g, i) {
			fit++
		}
		most.MemoryBytes = max(most.MemoryBytes, a.room[i].MemoryBytes)
		most.ComputeMilli = max(most.ComputeMilli, a.room[i].ComputeMilli)
	}
	switch {
	case len(n.devices) == 0:
		return "the node has no devices"
	case match == 0:
		return fmt.Sprintf("none of the %s matches %s", devices(len(n.devices)), g.Selector.Name)
	case match < g.Count:
		return fmt.Sprintf("%s will do, %d asked for: %d short", devices(match), g.Count, g.Count-match)
	case well < g.Count:
		return fmt.Sprintf("%d of %s healthy, %d asked for: %d short", well, areDevices(match), g.Count, g.Count-well)
	case large < g.Count:
		return fmt.Sprintf("%d of %s large enough for %s, %d asked for", large, areDevices(well), amount(g.Each), g.Count)
	case fit < g.Count && g.whole():
		return fmt.Sprintf("%d of %s unused, %d asked for: %d short", fit, areDevices(well), g.Count, g.Count-fit)
	case fit < g.Count && g.Count == 1:
		return shortOf(g.Each, most)
	case fit < g.Count:
		return fmt.Sprintf("%d of %s room for %s, %d asked for: %d short", fit, haveDevices(well), amount(g.Each), g.Count, g.Count-fit)
	case g.Links == LinksRequired && len(a.choices(g)) == 0:
		return fmt.Sprintf("no %d of the %s that are free are all linked to each other", g.Count, devices(fit))
	}
	return ""
}

// shortOf says what no device has enough of.
func shortOf(asked, most Amount) string {
	var short []string
	if asked.MemoryBytes > most.MemoryBytes {
		short = append(short, fmt.Sprintf("at most %s of a device's memory are free, %s asked for: %s short",
			bytes(most.MemoryBytes), bytes(asked.MemoryBytes), bytes(asked.MemoryBytes-most.MemoryBytes)))
	}
	if asked.ComputeMilli > most.ComputeMilli {
		short = append(short, fmt.Sprintf("at most %s of a device's compute are free, %s asked for: %s short",
			percent(most.ComputeMilli), percent(asked.ComputeMilli), percent(asked.ComputeMilli-most.ComputeMilli)))
	}
	if len(short) == 0 {
		return fmt.Sprintf("no single device has %s free", amount(asked))
	}
	return strings.Join(short, "; ")
}
