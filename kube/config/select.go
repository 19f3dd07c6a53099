package config

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// selected returns the devices that a rule is for, and notes those that it
// names and the node does not have.
func (p *planner) selected(rule *Rule) []device.Device {
	var candidates []device.Device
	for _, d := range p.devices {
		if p.resource[d.ID] == rule.Resource {
			candidates = append(candidates, d)
		}
	}
	switch selection := rule.Devices.(type) {
	case First:
		if len(candidates) < int(selection) {
			p.lacks(rule, fmt.Sprintf("wants %d devices", int(selection)), candidates)
			return candidates
		}
		return candidates[:selection]
	case These:
		var found []device.Device
		for _, name := range selection {
			i := slices.IndexFunc(candidates, func(d device.Device) bool { return isCalled(d, name) })
			switch {
			case i < 0:
				p.explain(rule, name, candidates)
			case slices.ContainsFunc(found, func(d device.Device) bool { return d.ID == candidates[i].ID }):
				p.wrong("%s: device %s (%s) is listed twice", rule.Where, nameOf(candidates[i]), candidates[i].ID)
			default:
				found = append(found, candidates[i])
			}
		}
		return found
	default:
		return candidates
	}
}

// explain says why a device that a rule names is not among its candidates.
func (p *planner) explain(rule *Rule, name string, candidates []device.Device) {
	var slicesOfIt []string
	for _, d := range p.devices {
		if isCalled(d, name) {
			p.absent = append(p.absent, fmt.Sprintf("%s: device %s is %s here, not %s", rule.Where, name, p.resource[d.ID], rule.Resource))
			return
		}
		parent := d.Attributes[device.AttributeParentUUID]
		if isSlice(d) && (fmt.Sprint(d.Index) == name || parent.String() == name) {
			slicesOfIt = append(slicesOfIt, nameOf(d))
		}
	}
	if len(slicesOfIt) > 0 {
		p.absent = append(p.absent, fmt.Sprintf("%s: GPU %s is partitioned; name its slices: %s", rule.Where, name, strings.Join(slicesOfIt, ", ")))
		return
	}
	p.lacks(rule, "names device "+name, candidates)
}

// lacks notes what a rule wants in vain, and what there is.
func (p *planner) lacks(rule *Rule, what string, candidates []device.Device) {
	there := "none"
	for i, d := range candidates {
		switch {
		case i == 0 && len(candidates) == 1:
			there = "device " + nameOf(d)
		case i == 0:
			there = "devices " + nameOf(d)
		default:
			there += ", " + nameOf(d)
		}
	}
	p.absent = append(p.absent, fmt.Sprintf("%s: it %s; of %s this node has %s", rule.Where, what, rule.Resource, there))
}
