package ledger

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Refresh asks the kubelet, and where needed the API server, and takes in what
// they say. When the kubelet does not answer, nothing changes.
func (l *Ledger) Refresh(ctx context.Context) error {
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	before, started := l.Holds(), time.Now()
	containers, run, err := l.config.Kubelet.List(ctx)
	if err != nil {
		return fmt.Errorf("ask the kubelet who holds what: %w", err)
	}
	evidence := Evidence{
		Now:     time.Now(),
		Kubelet: containers,
		Run:     run,
		NoAPI:   l.config.Pods == nil,
		Ours:    l.config.Ours,
		Known:   l.config.Known,
	}
	evidence.Pods = l.ask(ctx, Questions(before, evidence))
	l.commit(before, Decide(before, evidence), started)
	return nil
}

// askPatience bounds the questions of one look. A Pod may be waiting for it.
const askPatience = 2 * time.Second

// ask puts the questions to the API server. It stops at the first failure:
// when the server is away, waiting for each Pod in turn would take long.
func (l *Ledger) ask(ctx context.Context, names []PodName) map[PodName]PodState {
	ctx, cancel := context.WithTimeout(ctx, askPatience)
	defer cancel()
	answers := make(map[PodName]PodState, len(names))
	for _, name := range names {
		uid, alive, err := l.config.Pods.Pod(ctx, name.Namespace, name.Name)
		if err != nil {
			l.config.Logger.Debug("the API server gave no answer; holds stay", "error", err)
			break
		}
		answers[name] = PodState{UID: uid, Alive: alive}
	}
	return answers
}

// commit takes over what was decided from answers that were asked for since
// started, and logs what changed for people.
func (l *Ledger) commit(before, after []Hold, started time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, grant := range l.grants {
		if grant.At.Before(started) {
			continue
		}
		// The device was given while the answers were under way: the uid may
		// be that of the Pod before, and is asked for again.
		for i := range after {
			after[i].verified = after[i].verified && !slices.Contains(grant.ids(), after[i].Device)
		}
	}
	changed := !slices.EqualFunc(before, after, sameForOthers)
	l.holds = after
	for id, grant := range l.grants {
		assigned := assign(grant, after)
		assigned.ended = over(assigned, after)
		if assigned.Pod != grant.Pod || assigned.ended != grant.ended {
			l.grants[id] = assigned
			changed = true
		}
	}
	if changed {
		l.touch()
	}
	l.logChanges(before, after)
}

// sameForOthers says whether two holds look the same from outside.
func sameForOthers(a, b Hold) bool {
	return a.key() == b.key() && a.Holder.UID == b.Holder.UID && a.Run == b.Run && a.Orphaned == b.Orphaned && a.MissingSince.IsZero() == b.MissingSince.IsZero()
}

func (l *Ledger) logChanges(before, after []Hold) {
	old := make(map[key]Hold, len(before))
	for _, hold := range before {
		old[hold.key()] = hold
	}
	for _, hold := range after {
		previous, known := old[hold.key()]
		delete(old, hold.key())
		switch {
		case !known:
			l.config.Logger.Info("device taken", "device", hold.Device, "holder", hold.Holder)
		case hold.Orphaned && !previous.Orphaned:
			l.config.Logger.Warn("the kubelet has forgotten who holds a device; it is given to nobody else until its Pod ends",
				"device", hold.Device, "holder", hold.Holder)
		}
	}
	for _, hold := range old {
		l.config.Logger.Info("device returned", "device", hold.Device, "holder", hold.Holder)
	}
}

// How long Claim waits, after a restart of the kubelet, for the news that a Pod
// has ended to reach the API server, and how often it asks.
const (
	claimPatience = 2 * time.Second
	claimPause    = 100 * time.Millisecond
)

// Claim returns the holds that stand in the way of giving the devices to
// somebody new; none means that they are free. A kubelet that has restarted may
// free the devices of a Pod a moment before the API server hears that the Pod
// has ended, so a hold is looked into for a short while before it counts.
func (l *Ledger) Claim(ctx context.Context, ids []device.ID) []Hold {
	if len(held(l.Holds(), ids)) == 0 {
		return nil
	}
	deadline := time.Now().Add(claimPatience)
	for {
		if err := l.Refresh(ctx); err != nil {
			l.config.Logger.Warn("could not make sure that a device is free", "error", err)
			l.refreshFromAPI(ctx, ids)
		}
		inTheWay := held(l.Holds(), ids)
		if l.config.Pods == nil {
			// With nobody else to ask, the kubelet is believed about a Pod
			// that it does not know: all Pods older than the one it is
			// admitting are in its list.
			inTheWay = slices.DeleteFunc(inTheWay, func(h Hold) bool { return !h.MissingSince.IsZero() && !h.podListed })
		}
		if len(inTheWay) == 0 || ctx.Err() != nil || time.Now().After(deadline) {
			return inTheWay
		}
		select {
		case <-ctx.Done():
			return inTheWay
		case <-time.After(claimPause):
		}
	}
}

// refreshFromAPI ends the holds on devices that the kubelet is giving away at
// this moment, where the API server says that the holder has ended. It is for
// when the kubelet's list can not be had.
func (l *Ledger) refreshFromAPI(ctx context.Context, ids []device.ID) {
	if l.config.Pods == nil {
		return
	}
	l.refreshing.Lock()
	defer l.refreshing.Unlock()
	before, started := l.Holds(), time.Now()
	var names []PodName
	for _, hold := range held(before, ids) {
		names = append(names, hold.Holder.podName())
	}
	answers := l.ask(ctx, names)
	after := slices.DeleteFunc(slices.Clone(before), func(hold Hold) bool {
		state, answered := answers[hold.Holder.podName()]
		return slices.Contains(ids, hold.Device) && answered && ended(hold, state)
	})
	l.commit(before, after, started)
}
