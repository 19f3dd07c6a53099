package node

import (
	"context"
	"log/slog"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
)

// teller tells Pods when a device of theirs falls sick or is well again.
type teller struct {
	node      string
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	// record is nil when there is no API server.
	record func(kube.PodEvent)
	logger *slog.Logger
}

// run tells until ctx ends.
func (t *teller) run(ctx context.Context) error {
	told := make(map[noticeKey]bool)
	remembered := make(map[device.ID]device.Device)
	var before inventory.Snapshot
	for {
		devicesChanged, holdsChanged := t.inventory.Changed(), t.ledger.Changed()
		snapshot := t.inventory.Snapshot()
		if len(inventory.Transitions(before, snapshot)) > 0 {
			// Those who hold it now are told, not those of some seconds ago.
			if err := t.ledger.Refresh(ctx); err != nil && ctx.Err() == nil {
				t.logger.Warn("could not look who holds a device whose health has changed", "error", err)
			}
		}
		before = snapshot
		for _, d := range snapshot.Devices {
			remembered[d.ID] = d
		}
		var events []kube.PodEvent
		events, told = notices(told, snapshot, t.addressable(t.ledger.Holds()), remembered, time.Now())
		for _, event := range events {
			t.tell(event)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-devicesChanged:
		case <-holdsChanged:
		}
	}
}

// addressable leaves out the holds whose Pod's uid is not known yet: an event
// without it would not be shown with the Pod. They are told when it is.
func (t *teller) addressable(holds []ledger.Hold) []ledger.Hold {
	if t.record == nil {
		return holds
	}
	var known []ledger.Hold
	for _, hold := range holds {
		if hold.Holder.UID != "" {
			known = append(known, hold)
		}
	}
	return known
}

func (t *teller) tell(event kube.PodEvent) {
	event.Node = t.node
	level := slog.LevelInfo
	if event.Type == kube.Warning {
		level = slog.LevelWarn
	}
	t.logger.Log(context.Background(), level, event.Message, "namespace", event.Namespace, "pod", event.Pod)
	if t.record != nil {
		t.record(event)
	}
}
