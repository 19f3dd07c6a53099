package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// Plan says what the devices of a node are offered as. Each device is in one
// offer, except that one which is cut into shares of several sizes is in one
// for each of them.
type Plan struct {
	Offers []Offer
}

// Offer is a device, or a number of alike replicas of it, under a name.
type Offer struct {
	Device device.ID
	// Resource is the name by which Pods ask for it.
	Resource string
	// Strategy is how the device is shared; Whole when it is not.
	Strategy Strategy
	// OneEach refuses containers that ask for more than one replica.
	OneEach bool
	// Replicas are numbered from First on.
	First, Replicas int
	// Share is what each replica may use, where that is limited.
	Share Share
}

// Share is a part of a device. It limits nothing when it is zero.
type Share struct {
	MemoryBytes    int64
	ComputePercent int
}

// IDs returns the ids under which the kubelet knows what is offered: the
// device's own when it is whole, those of the replicas otherwise.
func (o Offer) IDs() []string {
	if o.Strategy == Whole {
		return []string{string(o.Device)}
	}
	ids := make([]string, o.Replicas)
	for i := range ids {
		ids[i] = ReplicaID(o.Device, o.First+i)
	}
	return ids
}

// AbsentError says which devices a configuration names that the node does not
// have, or not under that name. Its messages begin with file:line.
type AbsentError struct {
	Messages []string
}

func (e *AbsentError) Error() string { return strings.Join(e.Messages, "\n") }

// Plan decides what the devices of a node are offered as. It is a pure
// function.
//
// An error has a line for everything that is wrong, and there is no plan then,
// with one exception: when all that is wrong is an AbsentError, the plan for
// the devices that are there comes with it. Who takes a new configuration into
// use should refuse it for that, too; who plans again because a device was
// lost should go on with the others.
func (c Config) Plan(devices []device.Device) (Plan, error) {
	p := planner{config: c, devices: inOrder(devices), resource: map[device.ID]string{}, claimed: map[device.ID]*Rule{}}
	p.name()
	for i := range c.Sharing {
		p.claim(&c.Sharing[i])
	}
	offers := p.offers()
	p.compare(offers)
	if err := errors.Join(p.errs...); err != nil {
		if len(p.absent) > 0 {
			err = errors.Join(err, &AbsentError{p.absent})
		}
		return Plan{}, err
	}
	var plan Plan
	for _, o := range offers {
		plan.Offers = append(plan.Offers, o.Offer)
	}
	if len(p.absent) > 0 {
		return plan, &AbsentError{p.absent}
	}
	return plan, nil
}

// planner is a plan in the making.
type planner struct {
	config   Config
	devices  []device.Device
	resource map[device.ID]string // the name before sharing
	claimed  map[device.ID]*Rule
	absent   []string
	errs     []error
}

func (p *planner) wrong(format string, args ...any) {
	p.errs = append(p.errs, fmt.Errorf(format, args...))
}

// name gives each device its name.
func (p *planner) name() {
	for _, d := range p.devices {
		if _, twice := p.resource[d.ID]; twice {
			p.wrong("plan the devices: %s is there twice", d.ID)
			continue
		}
		resource, err := p.config.resourceOf(d)
		if err != nil {
			p.wrong("plan the devices: %w", err)
		}
		p.resource[d.ID] = resource
	}
}

// claim gives a rule the devices that it selects.
func (p *planner) claim(rule *Rule) {
	for _, d := range p.selected(rule) {
		if earlier := p.claimed[d.ID]; earlier != nil {
			p.wrong("%s: device %s (%s) is claimed at %s too; a device is shared in one way", rule.Where, nameOf(d), d.ID, earlier.Where)
			continue
		}
		if rule.Strategy == MPS && (d.Vendor != nvidia || isSlice(d)) {
			p.wrong("%s: device %s (%s) can not be shared by MPS: only NVIDIA's whole GPUs are", rule.Where, nameOf(d), d.ID)
		}
		p.claimed[d.ID] = rule
	}
}

// planned is an offer and what it comes from.
type planned struct {
	Offer
	device device.Device
	part   Part
	rule   *Rule // nil for a device that no rule is for
}

func (p *planner) offers() []planned {
	var all []planned
	for _, d := range p.devices {
		rule := p.claimed[d.ID]
		if rule == nil {
			all = append(all, planned{Offer: Offer{Device: d.ID, Resource: p.resource[d.ID], Strategy: Whole, Replicas: 1}, device: d})
			continue
		}
		first := 0
		for _, part := range rule.Parts {
			all = append(all, planned{device: d, part: part, rule: rule, Offer: Offer{
				Device: d.ID, Resource: part.Resource,
				Strategy: rule.Strategy, OneEach: rule.OneEach,
				First: first, Replicas: part.Replicas,
				Share: share(d, rule.Strategy, part),
			}})
			first += part.Replicas
		}
	}
	return all
}

// share is what a replica of a part may use of its device.
func share(d device.Device, strategy Strategy, part Part) Share {
	memory := d.Capacity.MemoryBytes
	switch {
	case strategy != MPS:
		return Share{}
	case part.Percent > 0:
		return Share{MemoryBytes: memory * int64(part.Percent) / 100, ComputePercent: part.Percent}
	default:
		return Share{MemoryBytes: memory / int64(part.Replicas), ComputePercent: 100 / part.Replicas}
	}
}

// compare refuses things of two sorts under one name.
func (p *planner) compare(offers []planned) {
	sorts := map[string]planned{}
	refused := map[string]bool{}
	for _, o := range offers {
		other, seen := sorts[o.Resource]
		if !seen {
			sorts[o.Resource] = o
			continue
		}
		if o.sort() == other.sort() || refused[o.Resource] {
			continue
		}
		refused[o.Resource] = true
		rule := o.rule
		if rule == nil {
			rule = other.rule
		}
		p.wrong("%s: under the name %s there would be device %s %s and device %s %s, and who asks for it could not know which they get; set rename or renameByDefault",
			rule.Where, o.Resource, nameOf(other.device), other.sort(), nameOf(o.device), o.sort())
	}
}

// sort says what somebody gets who asks for it.
func (o planned) sort() string {
	switch {
	case o.Strategy == MPS && o.part.Percent > 0:
		return fmt.Sprintf("in MPS shares of %d%%", o.part.Percent)
	case o.Strategy == MPS:
		return fmt.Sprintf("in %d equal MPS shares", o.part.Replicas)
	case o.Strategy == TimeSlicing:
		return "time-sliced"
	default:
		return "whole"
	}
}
