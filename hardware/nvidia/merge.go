package nvidia

import (
	"cmp"
	"errors"
	"time"

	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// errLost says that NVML does not list a GPU that is still on the bus.
var errLost = errors.New("NVML no longer lists the GPU; reset it or restart the machine")

// look is all that one look at the machine brought.
type look struct {
	at        time.Time
	sightings []sighting
	err       error                     // why there are none at all
	happened  map[string][]string       // events by UUID
	fresh     bool                      // the driver was loaded anew
	onBus     func(address string) bool // whether the machine still has the GPU
}

// merge joins what is known with a new look. It is pure. A GPU that the look
// has nothing good to say about stays as it was, but sick; one that has also
// left the machine is forgotten.
func merge(known map[string]gpu, l look, policy health.Policy, checks health.Checks) map[string]gpu {
	merged := map[string]gpu{}
	failed := map[int]error{}
	for _, s := range l.sightings {
		if s.err != nil {
			failed[s.index] = s.err
			continue
		}
		before, seenBefore := known[s.facts.uuid]
		if !seenBefore {
			before.vitals = s.vitals // its counters did not count up before our eyes
		}
		seen := s.vitals.look(before.vitals)
		seen.Happened = append(seen.Happened, l.happened[s.facts.uuid]...)
		if checks.Off() {
			seen = health.Look{Recovery: health.NoneDue, Probed: true}
		}
		seen.Fresh = l.fresh
		merged[s.facts.uuid] = gpu{
			facts:  s.facts,
			index:  s.index,
			mig:    s.mig,
			vitals: s.vitals,
			record: policy.Step(before.record, seen, l.at),
		}
	}
	for uuid, g := range known {
		if _, seen := merged[uuid]; seen || !l.onBus(g.place.address) {
			continue
		}
		err := cmp.Or(l.err, failed[g.index], errLost)
		g.record = policy.Step(g.record, health.Look{
			Signs:    []health.Sign{{Weight: weightOf(err), Reason: err.Error()}},
			Happened: l.happened[uuid],
			// It gives no judgement now, but it will when it is back.
			Recovery: health.Recovery{Known: g.vitals.recovery.Known},
		}, l.at)
		merged[uuid] = g
	}
	return merged
}
