package place

import (
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// WholeCompute is the compute of a whole device, in the unit of
// Amount.ComputeMilli.
const WholeCompute = 1000

// Host is what a Pod takes of its node besides devices.
type Host struct {
	CPUMilli    int64 `json:"cpuMilli"`
	MemoryBytes int64 `json:"memoryBytes"`
	Pods        int64 `json:"pods"`
}

func (h Host) plus(other Host, times int64) Host {
	return Host{h.CPUMilli + times*other.CPUMilli, h.MemoryBytes + times*other.MemoryBytes, h.Pods + times*other.Pods}
}

// Amount is a part of one device.
type Amount struct {
	MemoryBytes int64 `json:"memoryBytes"`
	// ComputeMilli is in thousandths of the device.
	ComputeMilli int64 `json:"computeMilli"`
}

func (a Amount) plus(other Amount, times int64) Amount {
	return Amount{a.MemoryBytes + times*other.MemoryBytes, a.ComputeMilli + times*other.ComputeMilli}
}

// holds reports whether the amount has room for the other.
func (a Amount) holds(other Amount) bool {
	return a.MemoryBytes >= other.MemoryBytes && a.ComputeMilli >= other.ComputeMilli
}

// Request is what one Pod asks for. A request without groups asks for no
// device.
type Request struct {
	Host   Host
	Groups []Group
}

// Group asks for several devices alike. The devices of a group are different
// ones; parts of two groups may be on one device.
type Group struct {
	// Name stands in explanations and in the parts of an offer.
	Name  string
	Count int
	// Each is what is wanted of each device. Zero is the whole device, which
	// must be unused then.
	Each     Amount
	Selector Selector
	Links    LinkWish
	Rank     Rank
}

// Selector says which devices will do. Name identifies it: selectors with the
// same name match the same devices, for as long as a device does not change.
// The zero selector matches all.
type Selector struct {
	Name  string
	Match func(device.Device) bool
}

// LinkWish says what links between the devices of a group are worth.
type LinkWish string

const (
	// LinksIgnored prefers linked devices only among equals.
	LinksIgnored LinkWish = ""
	// LinksPreferred puts bandwidth between the devices before all else.
	LinksPreferred LinkWish = "Preferred"
	// LinksRequired also wants a direct link between every two devices.
	LinksRequired LinkWish = "Required"
)

// Rank says which devices are better, where several would do.
type Rank string

const (
	// Pack keeps the cluster able to serve what is usually asked of it, and
	// among equals fills the fullest node.
	Pack Rank = ""
	// Spread prefers the least used node, and on it the least used devices.
	Spread Rank = "Spread"
	// MostPowerful prefers the device with the most memory, then the highest
	// compute capability, then the most multiprocessors.
	MostPowerful Rank = "MostPowerful"
	// SmallestFit is the reverse of MostPowerful, among those that suffice.
	SmallestFit Rank = "SmallestFit"
)

// Validate says what is wrong with the request.
func (r *Request) Validate() error {
	if r.Host.CPUMilli < 0 || r.Host.MemoryBytes < 0 || r.Host.Pods < 0 {
		return fmt.Errorf("request: CPU, memory and Pods can not be negative: %+v", r.Host)
	}
	for i := range r.Groups {
		if err := r.Groups[i].validate(); err != nil {
			return fmt.Errorf("request: group %q: %w", r.Groups[i].Name, err)
		}
	}
	return nil
}

func (g *Group) validate() error {
	switch g.Links {
	case LinksIgnored, LinksPreferred, LinksRequired:
	default:
		return fmt.Errorf("unknown wish for links %q: use %q or %q", g.Links, LinksPreferred, LinksRequired)
	}
	switch g.Rank {
	case Pack, Spread, MostPowerful, SmallestFit:
	default:
		return fmt.Errorf("unknown rank %q: use %q, %q or %q", g.Rank, Spread, MostPowerful, SmallestFit)
	}
	switch {
	case g.Count < 1:
		return fmt.Errorf("a count of %d devices; leave the group out to ask for none", g.Count)
	case g.Each.MemoryBytes < 0, g.Each.ComputeMilli < 0:
		return fmt.Errorf("an amount can not be negative: %+v", g.Each)
	case g.Each.ComputeMilli > WholeCompute:
		return fmt.Errorf("%d thousandths are more than a device", g.Each.ComputeMilli)
	case g.Selector.Match != nil && g.Selector.Name == "":
		return fmt.Errorf("a selector needs a name")
	case g.Selector.Match == nil && g.Selector.Name != "":
		return fmt.Errorf("selector %q has nothing to match with", g.Selector.Name)
	}
	return nil
}

// whole reports whether the group asks for whole devices.
func (g *Group) whole() bool { return g.Each == Amount{} }

// key is the same for requests that ask for the same.
func (r *Request) key() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d %d %d", r.Host.CPUMilli, r.Host.MemoryBytes, r.Host.Pods)
	for i := range r.Groups {
		g := &r.Groups[i]
		fmt.Fprintf(&b, "|%q %d %d %d %q %s %s", g.Name, g.Count, g.Each.MemoryBytes, g.Each.ComputeMilli,
			g.Selector.Name, g.Links, g.Rank)
	}
	return b.String()
}
