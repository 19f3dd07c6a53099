package ledger

import (
	"context"
	"time"
)

// How often the kubelet is asked, by what there is to learn.
const (
	// busyPause is while grants wait for their Pods or a Pod is ending.
	busyPause = time.Second
	// orphanPause is while an orphaned hold waits for its Pod to end, or the
	// kubelet or the API server is away.
	orphanPause = 2 * time.Second
	// idlePause is otherwise. Whoever needs to know exactly asks for a
	// Refresh.
	idlePause = 10 * time.Second
)

// Run keeps the ledger up to date and saved until ctx ends.
func (l *Ledger) Run(ctx context.Context) error {
	for {
		l.refreshLogged(ctx)
		l.save()
		if !l.rest(ctx) {
			l.save()
			return nil
		}
	}
}

// rest waits until it is time to look again: after the pause, or a second
// after the last look when somebody asked for one. Changes that others make
// meanwhile are saved at once, and may make the pause shorter.
func (l *Ledger) rest(ctx context.Context) bool {
	looked := time.Now()
	soonest := time.After(busyPause)
	var nudged <-chan struct{}
	for {
		changed := l.Changed()
		l.save()
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		case <-soonest:
			soonest, nudged = nil, l.nudged
		case <-nudged:
			return true
		case <-time.After(time.Until(looked.Add(l.pause()))):
			return true
		}
	}
}

func (l *Ledger) pause() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	pause := idlePause
	if l.silent {
		pause = orphanPause
	}
	for _, hold := range l.holds {
		switch {
		case !hold.MissingSince.IsZero() && !hold.Orphaned:
			pause = min(pause, busyPause)
		case hold.Orphaned || hold.Holder.UID == "" && l.config.Pods != nil:
			pause = min(pause, orphanPause)
		}
	}
	for _, grant := range l.grants {
		if grant.Pod == nil && time.Since(grant.At) < freshFor {
			pause = min(pause, busyPause)
		}
	}
	return pause
}

// refreshLogged refreshes and logs when the kubelet stops and starts
// answering.
func (l *Ledger) refreshLogged(ctx context.Context) {
	err := l.Refresh(ctx)
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	wasSilent := l.silent
	l.silent = err != nil
	l.mu.Unlock()
	switch {
	case err != nil && !wasSilent:
		l.config.Logger.Warn("the kubelet does not say who holds what; what is known stays", "error", err)
	case err == nil && wasSilent:
		l.config.Logger.Info("the kubelet says again who holds what")
	}
}

// save writes the file if something changed since the last time.
func (l *Ledger) save() {
	l.mu.Lock()
	if !l.unsaved {
		l.mu.Unlock()
		return
	}
	s := state{Schema: schema, BootID: l.config.BootID, Holds: append([]Hold{}, l.holds...)}
	for _, grant := range l.grants {
		s.Grants = append(s.Grants, grant)
	}
	l.unsaved = false
	l.mu.Unlock()
	err := writeState(l.config.File, s)
	if err != nil && !l.unsaveable {
		l.config.Logger.Error("could not save the ledger; it is tried again", "file", l.config.File, "error", err)
	}
	l.unsaveable = err != nil
	if err != nil {
		l.mu.Lock()
		l.unsaved = true
		l.mu.Unlock()
	}
}
