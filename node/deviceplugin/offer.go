package deviceplugin

import (
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/ledger"
)

// Offer is how one device stands with the kubelet.
type Offer struct {
	Device device.Device
	// Resource is the name by which Pods ask for it; empty when it has no
	// name that Kubernetes takes.
	Resource string
	// Holds are the containers that have it.
	Holds []ledger.Hold
	// Offered says whether the kubelet may give it to somebody new, or has.
	Offered bool
	// Note says why it is not offered, or what is unusual about it.
	Note string
}

// Offers says of each device whether it is offered, and if not, why. It is a
// pure function.
func Offers(devices []device.Device, holds []ledger.Hold) []Offer {
	offers := make([]Offer, len(devices))
	for i, d := range devices {
		offer := Offer{Device: d}
		for _, hold := range holds {
			if hold.Device == d.ID {
				offer.Holds = append(offer.Holds, hold)
			}
		}
		offer.Resource, offer.Note = resourceOf(d)
		if offer.Note == "" {
			offer.Note = reasonAgainst(d)
		}
		offer.Offered = offer.Note == ""
		if offer.Offered {
			offer.Note = remark(offer.Holds)
		}
		offers[i] = offer
	}
	return offers
}

func resourceOf(d device.Device) (name, note string) {
	name, err := kube.ResourceName(d)
	if err != nil {
		return "", err.Error()
	}
	return name, ""
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

// remark tells of a hold that the kubelet has forgotten. The device is offered
// all the same: the scheduler still counts what its Pod asked for, so taking
// it out of the node's count would leave one more unused. The kubelet is kept
// from it by the preference, and by Allocate in the end.
func remark(holds []ledger.Hold) string {
	for _, hold := range holds {
		if hold.Orphaned {
			return fmt.Sprintf("it is kept for %s, which the kubelet has lost track of, until that Pod ends", hold.Holder)
		}
	}
	return ""
}
