package health

import (
	"slices"
	"strings"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Policy says how long things take.
type Policy struct {
	// Confirm is how long a doubt lasts until it is believed.
	Confirm time.Duration
	// Settle is how long a suspect GPU has to be quiet to be healthy again.
	Settle time.Duration
	// Trial is how long a GPU that was unhealthy has to be quiet.
	Trial time.Duration
	// Longest is what Settle and Trial double up to with relapses.
	Longest time.Duration
	// Memory is how long trouble is remembered: what comes later is no relapse.
	Memory time.Duration
}

// DefaultPolicy is for looks every few seconds.
var DefaultPolicy = Policy{
	Confirm: 30 * time.Second,
	Settle:  30 * time.Second,
	Trial:   time.Minute,
	Longest: time.Hour,
	Memory:  time.Hour,
}

// Record is where a GPU stands and what is remembered of it. The zero value is
// a GPU that was not looked at yet.
type Record struct {
	device.Health

	cause    string    // why it is not healthy
	happened []string  // the events since it was healthy, each once
	unjudged bool      // one of them nobody can say the end of
	doubted  time.Time // since when there is doubt; zero while there is none
	quiet    time.Time // since when nothing speaks against it; zero while something does
	trouble  time.Time // when something last spoke against it
	relapses int
}

// manyEvents is how many events a reason lists; a storm of them has no use.
const manyEvents = 5

// Step returns the record after a look.
func (p Policy) Step(r Record, l Look, now time.Time) Record {
	if l.Fresh {
		r.unjudged = false
	}
	faults, doubts := l.standing()
	if len(faults)+len(doubts)+len(l.Happened) == 0 {
		return p.quiet(r, l, now)
	}
	return p.trouble(r, l, faults, doubts, now)
}

// trouble is a step with something that speaks against the GPU.
func (p Policy) trouble(r Record, l Look, faults, doubts []string, now time.Time) Record {
	if r.State == device.Healthy {
		if !r.trouble.IsZero() && now.Sub(r.trouble) < p.Memory {
			r.relapses++
		} else {
			r.relapses = 0
		}
	}
	r.trouble, r.quiet = now, time.Time{}
	r.happened = remember(r.happened, l.Happened)
	if len(l.Happened) > 0 && !l.Recovery.Known {
		r.unjudged = true
	}
	if len(doubts) == 0 {
		r.doubted = time.Time{}
	} else if r.doubted.IsZero() {
		r.doubted = now
	}

	r.cause = strings.Join(slices.Concat(faults, r.happened, doubts), "; ")
	confirmed := len(doubts) > 0 && now.Sub(r.doubted) >= p.Confirm
	switch {
	case len(faults) > 0, r.unjudged, confirmed, r.State == device.Unhealthy, r.State == device.Recovering:
		return r.enter(device.Unhealthy, now)
	default:
		return r.enter(device.Suspect, now)
	}
}

// remember adds events that are not known yet. It does not write into what
// earlier records hold.
func remember(known, events []string) []string {
	for _, e := range events {
		if len(known) < manyEvents && !slices.Contains(known, e) {
			known = append(slices.Clip(known), e)
		}
	}
	return known
}

// quiet is a step with nothing that speaks against the GPU.
func (p Policy) quiet(r Record, l Look, now time.Time) Record {
	if r.quiet.IsZero() {
		r.quiet, r.doubted = now, time.Time{}
	}
	switch r.State {
	case device.Suspect:
		if l.Probed && now.Sub(r.quiet) >= p.longer(p.Settle, r.relapses) {
			return r.enter(device.Healthy, now)
		}
	case device.Unhealthy:
		if !r.unjudged && l.Probed {
			return r.enter(device.Recovering, now)
		}
	case device.Recovering:
		if l.Probed && now.Sub(r.Since) >= p.longer(p.Trial, r.relapses) {
			return r.enter(device.Healthy, now)
		}
	default:
		return r.enter(device.Healthy, now)
	}
	return r
}

// longer doubles a time for each relapse, up to the longest.
func (p Policy) longer(d time.Duration, relapses int) time.Duration {
	for range relapses {
		if d *= 2; d >= p.Longest {
			return p.Longest
		}
	}
	return d
}

// enter moves to a state, or stays in it with a new reason.
func (r Record) enter(state device.HealthState, now time.Time) Record {
	if r.State != state {
		r.State, r.Since = state, now
	}
	switch {
	case state == device.Healthy:
		r.Reason, r.cause, r.happened = "", "", nil
	case state == device.Recovering:
		r.Reason = "on trial after: " + r.cause
	case r.unjudged:
		r.Reason = r.cause + "; this driver can not say whether the GPU has recovered: reset it and load the driver anew"
	default:
		r.Reason = r.cause
	}
	return r
}
