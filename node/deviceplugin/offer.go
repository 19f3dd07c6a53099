package deviceplugin

import (
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
)

// Offer is how one device stands with the kubelet.
type Offer struct {
	Device device.Device
	// Resource is the name by which Pods ask for it; empty when it has no
	// name that Kubernetes takes.
	Resource string
	// IDs are those by which the kubelet knows it: the device's own, or those
	// of its replicas when it is shared.
	IDs []device.ID
	// Shared says that each of the IDs can be somebody else's.
	Shared bool
	// OneEach refuses containers that ask for more than one replica.
	OneEach bool
	// Holds are the containers that have it, or a replica of it.
	Holds []ledger.Hold
	// Offered says whether the kubelet may give it to somebody new, or has.
	Offered bool
	// Note says why it is not offered, or what is unusual about it.
	Note string
}

// Standing is all that says how the devices stand.
type Standing struct {
	Devices []device.Device
	Holds   []ledger.Hold
	// Pending is what was given and is not among the holds yet.
	Pending []ledger.Hold
	// Terms say what each device is offered as; nil when each is offered
	// whole under its own name.
	Terms *terms.View
}

// Offers says of each device whether it is offered, and if not, why. It is a
// pure function.
func Offers(now Standing) []Offer {
	offers := make([]Offer, len(now.Devices))
	holds, pending := byDevice(now.Holds), byDevice(now.Pending)
	for i, d := range now.Devices {
		wanted, note := wantedTerms(d, now.Terms)
		offer := settle(wanted, holds[d.ID], pending[d.ID])
		offer.Device = d
		if offer.Resource == "" {
			offer.Note = note
		} else {
			offer.Note = reasonAgainst(d)
		}
		offer.Offered = offer.Note == ""
		if offer.Offered {
			offer.Note = remark(offer, wanted)
		}
		offers[i] = offer
	}
	return offers
}

func byDevice(holds []ledger.Hold) map[device.ID][]ledger.Hold {
	found := make(map[device.ID][]ledger.Hold)
	for _, hold := range holds {
		found[hold.Of()] = append(found[hold.Of()], hold)
	}
	return found
}

// wantedTerms are those on which a device should be offered. Without a name in
// them, the note says why.
func wantedTerms(d device.Device, view *terms.View) (wanted config.Offer, note string) {
	name, err := kube.ResourceName(d)
	switch {
	case err != nil:
		return config.Offer{}, err.Error()
	case view == nil:
		return config.Offer{Device: d.ID, Resource: name, Strategy: config.Whole, Replicas: 1}, ""
	}
	wanted, planned := view.Offers[d.ID]
	switch {
	case planned:
		return wanted, ""
	case view.Problem != "":
		return wanted, "the configuration does not fit it: " + view.Problem
	default:
		return wanted, "it is new and being looked at"
	}
}

// reasonAgainst says why a device can not be given to somebody new, or
// nothing.
func reasonAgainst(d device.Device) string {
	if d.Health.OK() {
		return ""
	}
	reason := "it is " + strings.ToLower(string(d.Health.State))
	if d.Health.State == "" {
		reason = "its health is not known"
	}
	if d.Health.Reason != "" {
		reason += ": " + d.Health.Reason
	}
	return reason
}

// remark tells of a hold that the kubelet has forgotten, or that keeps the
// device from being offered otherwise. The device is offered all the same: the
// scheduler still counts what its Pod asked for, so taking it out of the
// node's count would leave one more unused. The kubelet is kept from it by the
// preference, and by Allocate in the end.
func remark(offer Offer, wanted config.Offer) string {
	for _, hold := range offer.Holds {
		if hold.Orphaned {
			return fmt.Sprintf("it is kept for %s, which the kubelet has lost track of, until that Pod ends", hold.Holder)
		}
	}
	if wanted.Resource != offer.Resource || (wanted.Strategy != config.Whole) != offer.Shared {
		return fmt.Sprintf("it stays as it was given, as %s, until nobody holds it; then the configuration applies", offer.Resource)
	}
	return ""
}
