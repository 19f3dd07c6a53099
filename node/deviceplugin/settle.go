package deviceplugin

import (
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/ledger"
)

// settle says under which name and ids a device is offered: as it is wanted,
// unless somebody holds it in another way. What is held then stays as it was
// given, and nothing else of the device is offered until it is free: were the
// other replicas given on, it might never be, and under one name there would
// be things of two sorts. So a device is never whole and shared at once. It is
// a pure function of what is wanted and held, so a restart changes nothing.
func settle(wanted config.Offer, holds, pending []ledger.Hold) Offer {
	offer := Offer{Resource: wanted.Resource, Shared: wanted.Strategy != config.Whole, OneEach: wanted.OneEach, Holds: holds}
	if wanted.Resource != "" {
		offer.IDs = deviceIDs(wanted.IDs())
	}
	taken := slices.Concat(holds, pending)
	if len(taken) == 0 {
		return offer
	}
	given := make([]device.ID, 0, len(taken))
	asWanted := wanted.Resource != ""
	for _, hold := range taken {
		_, _, replica := config.SplitID(string(hold.Device))
		asWanted = asWanted && hold.Resource == wanted.Resource && replica == offer.Shared
		if hold.Resource == taken[0].Resource {
			given = append(given, hold.Device)
		}
	}
	given = unique(given)
	if asWanted {
		offer.IDs = keep(given, offer.IDs)
		return offer
	}
	_, _, replica := config.SplitID(string(taken[0].Device))
	return Offer{Resource: taken[0].Resource, Shared: replica, IDs: given, Holds: holds}
}

// keep returns as many ids as are wanted, those that are given among them: a
// replica with a high number stays when there are to be fewer.
func keep(given, wanted []device.ID) []device.ID {
	isGiven, isWanted := setOf(given), setOf(wanted)
	extra := slices.DeleteFunc(slices.Clone(given), func(id device.ID) bool { return isWanted[id] })
	room := max(len(wanted)-len(given), 0) // for those that nobody has
	kept := make([]device.ID, 0, len(wanted))
	for _, id := range wanted {
		switch {
		case isGiven[id]:
		case room == 0:
			continue
		default:
			room--
		}
		kept = append(kept, id)
	}
	return append(kept, extra...)
}

func setOf(ids []device.ID) map[device.ID]bool {
	set := make(map[device.ID]bool, len(ids))
	for _, id := range ids {
		set[id] = true
	}
	return set
}
