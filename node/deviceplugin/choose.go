package deviceplugin

import (
	"cmp"
	"errors"
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/terms"
)

// choice is a choice of ids to be made for one container.
type choice struct {
	offers      map[device.ID]Offer
	among, must []device.ID // those that must be chosen are among them
	count       int
	prefer      Prefer
}

// decide makes the choice: of whole devices those that work well together, of
// shared ones replicas by the policy.
func (c choice) decide(view *terms.View) ([]device.ID, error) {
	shared := slices.ContainsFunc(c.among, func(id device.ID) bool { return c.offers[id].Shared })
	if !shared {
		return c.prefer(c.devices(), c.among, c.must, c.count)
	}
	policy := config.Distributed
	if view != nil {
		policy = view.Policy
	}
	return c.replicas(policy)
}

// devices are those behind the offers, each once.
func (c choice) devices() []device.Device {
	seen := make(map[device.ID]bool)
	devices := make([]device.Device, 0, len(c.offers))
	for _, offer := range c.offers {
		if !seen[offer.Device.ID] {
			seen[offer.Device.ID] = true
			devices = append(devices, offer.Device)
		}
	}
	device.Sort(devices)
	return devices
}

// stock is what there is of one device while replicas are chosen.
type stock struct {
	id     device.ID
	free   []device.ID // the lowest number first
	chosen int
	inUse  int // by others and, while choosing, by the chosen
}

// replicas chooses one replica after the other. Distributed, the next is of a
// device that this container has not yet, or least of, and then of the one
// with the fewest in use; packed, of the one with the most in use. Among
// equals, that device is taken which works well with those chosen before.
func (c choice) replicas(policy config.AllocationPolicy) ([]device.ID, error) {
	stocks := c.stocks()
	chosen := slices.Clone(c.must)
	devices := c.devices()
	for len(chosen) < c.count {
		best := bestStocks(stocks, policy)
		// Of several that are equally good, as many are chosen together as
		// are still wanted: pairs are worth more than one after the other.
		want := 1
		if policy == config.Distributed {
			want = min(len(best), c.count-len(chosen))
		}
		picked, err := c.pick(devices, stocks, best, want)
		if err == nil && len(picked) == 0 {
			err = errors.New("nothing was chosen")
		}
		if err != nil {
			return nil, err
		}
		for _, s := range picked {
			chosen = append(chosen, s.free[0])
			s.free = s.free[1:]
			s.chosen++
			s.inUse++
		}
	}
	return chosen, nil
}

// stocks says what there is of each device, in the order of their ids.
func (c choice) stocks() []*stock {
	byDevice := make(map[device.ID]*stock)
	var stocks []*stock
	isMust := setOf(c.must)
	for _, id := range c.among {
		offer := c.offers[id]
		s := byDevice[offer.Device.ID]
		if s == nil {
			s = &stock{id: offer.Device.ID, inUse: len(offer.IDs)}
			byDevice[s.id] = s
			stocks = append(stocks, s)
		}
		if isMust[id] {
			s.chosen++
			continue
		}
		s.free = append(s.free, id)
		s.inUse--
	}
	for _, s := range stocks {
		slices.SortFunc(s.free, byNumber)
	}
	slices.SortFunc(stocks, func(a, b *stock) int { return cmp.Compare(a.id, b.id) })
	return stocks
}

func byNumber(a, b device.ID) int {
	_, x, _ := config.SplitID(string(a))
	_, y, _ := config.SplitID(string(b))
	return cmp.Compare(x, y)
}

// bestStocks returns those that the policy takes next, all equally good.
func bestStocks(stocks []*stock, policy config.AllocationPolicy) []*stock {
	compare := func(a, b *stock) int {
		if policy == config.Packed {
			return cmp.Compare(b.inUse, a.inUse)
		}
		return cmp.Or(cmp.Compare(a.chosen, b.chosen), cmp.Compare(a.inUse, b.inUse))
	}
	var best []*stock
	for _, s := range stocks {
		switch {
		case len(s.free) == 0:
			continue
		case len(best) > 0 && compare(s, best[0]) > 0:
			continue
		case len(best) > 0 && compare(s, best[0]) < 0:
			best = best[:0]
		}
		best = append(best, s)
	}
	return best
}

// pick takes so many of the candidates as go best with the devices that are
// chosen already.
func (c choice) pick(devices []device.Device, all, candidates []*stock, want int) ([]*stock, error) {
	if want == len(candidates) {
		return candidates, nil
	}
	var have []device.ID
	for _, s := range all {
		// A candidate that is had already would be chosen by that alone.
		if s.chosen > 0 && !slices.Contains(candidates, s) {
			have = append(have, s.id)
		}
	}
	ids := slices.Clone(have)
	for _, s := range candidates {
		ids = append(ids, s.id)
	}
	preferred, err := c.prefer(devices, ids, have, len(have)+want)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(s *stock) bool { return !slices.Contains(preferred, s.id) }), nil
}
