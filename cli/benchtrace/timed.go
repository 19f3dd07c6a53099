package benchtrace

import (
	"math/rand"
	"time"

	"github.com/kilter-dev/kilter/place/trace"
)

// timing is how long a policy took to decide.
type timing struct {
	Decisions int
	Total     time.Duration
	Longest   time.Duration
}

// timed makes a policy that is measured while it decides.
func timed(inner trace.Make, now func() time.Time, t *timing) trace.Make {
	return func(tr *trace.Trace, random *rand.Rand) trace.Policy {
		p := &timedPolicy{inner: inner(tr, random), now: now, timing: t}
		if b, ok := p.inner.(trace.Batcher); ok {
			return &timedBatcher{p, b}
		}
		return p
	}
}

type timedPolicy struct {
	inner trace.Policy
	now   func() time.Time
	*timing
}

func (t *timedPolicy) measure(pods int, decide func()) {
	begin := t.now()
	decide()
	took := t.now().Sub(begin)
	t.Decisions += pods
	t.Total += took
	t.Longest = max(t.Longest, took)
}

func (t *timedPolicy) Place(s *trace.State, p *trace.Pod) (at trace.Placement, ok bool) {
	t.measure(1, func() { at, ok = t.inner.Place(s, p) })
	return at, ok
}

// Learn counts too: it is part of deciding.
func (t *timedPolicy) Learn(s *trace.State, p *trace.Pod) {
	if l, ok := t.inner.(trace.Learner); ok {
		t.measure(0, func() { l.Learn(s, p) })
	}
}

func (t *timedPolicy) Leave(p *trace.Pod, at trace.Placement) {
	if l, ok := t.inner.(trace.Leaver); ok {
		t.measure(0, func() { l.Leave(p, at) })
	}
}

// timedBatcher is a timedPolicy that places several Pods at once.
type timedBatcher struct {
	*timedPolicy
	batcher trace.Batcher
}

func (t *timedBatcher) Batch() int { return t.batcher.Batch() }

func (t *timedBatcher) PlaceAll(s *trace.State, pods []*trace.Pod) (places []trace.Placement) {
	t.measure(len(pods), func() { places = t.batcher.PlaceAll(s, pods) })
	return places
}
