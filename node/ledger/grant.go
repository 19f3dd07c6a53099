package ledger

import (
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Grant is a set of devices that was prepared for a container. The Pod is not
// known at that moment, and is filled in when the kubelet lists it.
type Grant struct {
	device.Grant
	// Replicas are the ids by which the kubelet knows what was given, when
	// that is not the devices themselves.
	Replicas []device.ID `json:"replicas,omitempty"`
	// Resource is the name by which it was asked for, as long as the kubelet
	// may not have listed it.
	Resource string `json:"-"`
	// Driver is the name of the driver that prepared it.
	Driver string    `json:"driver"`
	At     time.Time `json:"at"`
	// Pod is who has it; its container is left open, because an init
	// container may have the same devices as a later one.
	Pod *Holder `json:"pod,omitempty"`

	// ended remembers that others were told that the grant is over.
	ended bool
}

// ids are those by which the kubelet knows what was given.
func (g Grant) ids() []device.ID {
	if len(g.Replicas) > 0 {
		return g.Replicas
	}
	return g.Devices
}

// pending says whether the grant was just made and is not in the kubelet's
// list yet.
func (g Grant) pending(now time.Time) bool {
	return g.Pod == nil && g.Resource != "" && now.Sub(g.At) < freshFor
}

// freshFor is how long the kubelet may take to list the devices of a grant.
// After that, nobody waits for it any more.
const freshFor = 30 * time.Second

// assign finds the Pod for a grant that has none yet. Only holds that are not
// older than the grant count: before it, the devices were somebody else's.
//
// A grant may stay without a Pod for long: the Pod was not admitted after all,
// or only an init container has the devices, and the kubelet does not list
// those. It then falls to the next Pod that has one of the devices, and is
// over with that, which is late but never too early.
func assign(grant Grant, holds []Hold) Grant {
	if grant.Pod != nil {
		return grant
	}
	for _, hold := range holds {
		if hold.Since.Before(grant.At) || !slices.Contains(grant.ids(), hold.Device) {
			continue
		}
		grant.Pod = podOf(hold)
		return grant
	}
	return grant
}

func podOf(hold Hold) *Holder {
	return &Holder{Namespace: hold.Holder.Namespace, Pod: hold.Holder.Pod, UID: hold.Holder.UID}
}

// over says whether nobody has the grant any more. One that was given before
// the machine was started anew has no time.
func over(grant Grant, holds []Hold) bool {
	if grant.Pod == nil {
		return grant.At.IsZero()
	}
	for _, hold := range holds {
		sameUID := grant.Pod.UID == "" || hold.Holder.UID == "" || grant.Pod.UID == hold.Holder.UID
		if hold.Holder.podName() == grant.Pod.podName() && sameUID {
			return false
		}
	}
	return true
}
