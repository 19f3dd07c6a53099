// Package terms keeps on what terms the node's devices are offered: under
// which name, and whole or as how many replicas. It applies the configuration
// to the devices that are there, again whenever either changes.
//
// A new configuration is taken into use only when it fits the node in full.
// One that is in use and fits no more, because a device was lost or added,
// goes on for the devices that it fitted; others are not offered, with the
// reason.
package terms

import (
	"fmt"
	"log/slog"
	"reflect"
	"sync"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/inventory"
)

// Terms are those that hold at the moment. The methods may be called from
// several goroutines. A nil Terms has no configuration: its View is nil.
type Terms struct {
	logger *slog.Logger

	mu     sync.Mutex
	config config.Config
	view   View
	// logged is the problem that was logged last, to log it once.
	logged string
	// changed is closed, and made anew, at every change.
	changed chan struct{}
}

// View is what holds for the devices of one moment. It is not changed once it
// is made.
type View struct {
	// Offers are what the devices are offered as.
	Offers map[device.ID]config.Offer
	// Problem is why a device has no offer; empty when it has just appeared.
	Problem string
	// Policy says which replicas are given first.
	Policy config.AllocationPolicy
}

// Lacks says whether nothing is said of a device yet.
func (v *View) Lacks(d device.Device) bool {
	_, planned := v.Offers[d.ID]
	return !planned
}

// New returns terms by the configuration, or says why it can not be used.
// Nothing is offered until the first Look.
func New(c config.Config, logger *slog.Logger) (*Terms, error) {
	if err := check(c); err != nil {
		return nil, err
	}
	return &Terms{logger: logger, config: c, view: View{Policy: c.AllocationPolicy}, changed: make(chan struct{})}, nil
}

// check refuses what the agent can not do yet.
func check(c config.Config) error {
	for _, rule := range c.Sharing {
		if rule.Strategy == config.MPS {
			return fmt.Errorf("%s: sharing %s by MPS is not there yet; use timeSlicing, or take the entry out", rule.Where, rule.Resource)
		}
	}
	return nil
}

// View returns what holds now; nil when there is no configuration, and every
// device is whole and has its own name.
func (t *Terms) View() *View {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	view := t.view
	return &view
}

// Changed returns a channel that is closed at the next change; nil, which
// blocks, when there is no configuration.
func (t *Terms) Changed() <-chan struct{} {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.changed
}

// Look applies the configuration to the devices as they are now.
func (t *Terms) Look(now inventory.Snapshot) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	offers, absent, err := plan(t.config, now.Devices)
	view := View{Offers: offers, Policy: t.config.AllocationPolicy}
	if err != nil {
		view.Offers, view.Problem = t.view.Offers, err.Error()
	}
	t.set(view)
	problem := view.Problem + absent
	if !now.Complete || problem == t.logged {
		return
	}
	t.logged = problem
	switch {
	case view.Problem != "":
		t.logger.Error("the configuration does not fit the devices of this node; those that it fitted before stay as they are", "error", err)
	case absent != "":
		t.logger.Warn("the configuration names devices that this node does not have; the others are offered", "error", absent)
	}
}

// Use takes a new configuration into use, or says why it does not fit, and
// everything stays as it is.
func (t *Terms) Use(c config.Config, now inventory.Snapshot) error {
	if err := check(c); err != nil {
		return err
	}
	offers, absent, err := plan(c, now.Devices)
	switch {
	case err != nil:
		return err
	case absent != "" && now.Complete:
		return fmt.Errorf("%s", absent)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.config, t.logged = c, ""
	t.set(View{Offers: offers, Policy: c.AllocationPolicy})
	return nil
}

// set takes over a view. The caller holds mu.
func (t *Terms) set(view View) {
	if reflect.DeepEqual(view, t.view) {
		return
	}
	t.view = view
	close(t.changed)
	t.changed = make(chan struct{})
}
