package deviceplugin

import (
	"context"
	"fmt"
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/node/ledger"
)

// Prefer chooses count of the available devices, those in must included, so
// that they work well together.
type Prefer func(devices []device.Device, available, must []device.ID, count int) ([]device.ID, error)

// prefer makes a choice for the kubelet. It is advice; Allocate is the judge.
// An id that has vanished meanwhile is left out, and one that the ledger knows
// to be held is taken only when there are not enough others: the kubelet takes
// it for free, so it has forgotten the holder, or the holder has just ended.
func (g *giver) prefer(ctx context.Context, resource string, available, must []device.ID, count int) ([]device.ID, error) {
	offers := g.offers(resource)
	if anyHeld(offers, available) {
		// The news of an end may not have reached us yet.
		if err := g.ledger.Refresh(ctx); err != nil {
			g.logger.Debug("could not look at who holds what", "error", err)
		}
		offers = g.offers(resource)
	}
	must = unique(must)
	for _, id := range must {
		if _, known := offers[id]; !known {
			return nil, &refusalError{resource, []string{fmt.Sprintf("%q must be chosen and is no device of this node", id)}}
		}
	}
	isMust := setOf(must)
	known := unique(slices.DeleteFunc(slices.Concat(must, available), func(id device.ID) bool {
		_, found := offers[id]
		return !found
	}))
	if count < 0 || count < len(must) || count > len(known) {
		return nil, &refusalError{resource, []string{
			fmt.Sprintf("asked to choose %d devices, %d of them fixed, out of %d", count, len(must), len(known)),
		}}
	}
	free := slices.DeleteFunc(slices.Clone(known), func(id device.ID) bool {
		return (offers[id].holds(id) || !offers[id].Offered) && !isMust[id]
	})
	if count <= len(free) {
		known = free
	}
	choice := choice{offers: offers, among: known, must: must, count: count, prefer: g.preferred}
	chosen, err := choice.decide(g.terms.View())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", resource, err)
	}
	return chosen, nil
}

func anyHeld(offers map[device.ID]Offer, ids []device.ID) bool {
	return slices.ContainsFunc(ids, func(id device.ID) bool { return offers[id].holds(id) })
}

// holds says whether somebody has what the kubelet knows by this id.
func (o Offer) holds(id device.ID) bool {
	return slices.ContainsFunc(o.Holds, func(hold ledger.Hold) bool { return hold.Device == id })
}

// unique keeps the first of each id.
func unique(ids []device.ID) []device.ID {
	seen := make(map[device.ID]bool, len(ids))
	return slices.DeleteFunc(slices.Clone(ids), func(id device.ID) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}
