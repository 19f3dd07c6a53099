package health

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// policy has round times: a doubt counts after 3 s, quiet after 4 s, a trial
// lasts 6 s, no wait is longer than 40 s, and trouble is forgotten after 100 s.
var policy = Policy{
	Confirm: 3 * time.Second,
	Settle:  4 * time.Second,
	Trial:   6 * time.Second,
	Longest: 40 * time.Second,
	Memory:  100 * time.Second,
}

var (
	well   = Look{Recovery: NoneDue, Probed: true}
	doubt  = Look{Recovery: NoneDue, Signs: []Sign{{Doubt, "no answer"}}}
	fault  = Look{Recovery: NoneDue, Signs: []Sign{{Fault, "lost"}}}
	reset  = Look{Recovery: Recovery{Known: true, Due: "a reset"}, Probed: true}
	xid    = Look{Recovery: NoneDue, Happened: []string{"XID 94"}, Probed: true}
	unwell = Look{Recovery: NoneDue} // nothing against it, but the probe did not pass

	// A driver that gives no judgement.
	oldWell  = Look{Probed: true}
	oldXID   = Look{Happened: []string{"XID 94"}, Probed: true}
	oldFault = Look{Signs: []Sign{{Fault, "lost"}}}
	oldFresh = Look{Fresh: true, Probed: true}
)

// seen is a look some seconds after the one before, and the state it leads to.
type seen struct {
	after int
	look  Look
	want  device.HealthState
}

const (
	ok      = device.Healthy
	suspect = device.Suspect
	sick    = device.Unhealthy
	trial   = device.Recovering
)

func TestStep(t *testing.T) {
	for name, looks := range map[string][]seen{
		"well from the start":         {{0, well, ok}, {1, well, ok}, {1000, well, ok}},
		"a fault at first sight":      {{0, fault, sick}},
		"a doubt at first sight":      {{0, doubt, suspect}, {1, well, suspect}, {4, well, ok}},
		"a fault makes sick at once":  {{0, well, ok}, {1, fault, sick}},
		"a reset that is due as well": {{0, well, ok}, {1, reset, sick}, {1000, reset, sick}},

		"a doubt passes":               {{0, well, ok}, {1, doubt, suspect}, {1, well, suspect}, {3, well, suspect}, {1, well, ok}},
		"a doubt that lasts":           {{0, well, ok}, {1, doubt, suspect}, {2, doubt, suspect}, {1, doubt, sick}},
		"a doubt with pauses":          {{0, well, ok}, {1, doubt, suspect}, {2, well, suspect}, {2, doubt, suspect}, {2, doubt, suspect}, {1, doubt, sick}},
		"a doubt turns into a fault":   {{0, well, ok}, {1, doubt, suspect}, {1, fault, sick}},
		"suspect until a probe passes": {{0, well, ok}, {1, doubt, suspect}, {1, unwell, suspect}, {50, unwell, suspect}, {1, well, ok}},

		"an event that leads to nothing":  {{0, well, ok}, {1, xid, suspect}, {1, well, suspect}, {4, well, ok}},
		"events that keep coming":         {{0, well, ok}, {1, xid, suspect}, {3, xid, suspect}, {3, xid, suspect}, {1, well, suspect}, {4, well, ok}},
		"an event, then a reset is due":   {{0, well, ok}, {1, xid, suspect}, {1, reset, sick}},
		"an event while it is on trial":   {{0, fault, sick}, {1, well, trial}, {1, xid, sick}},
		"an old doubt is not a new one":   {{0, well, ok}, {1, xid, suspect}, {3, doubt, suspect}, {2, doubt, suspect}, {1, doubt, sick}},
		"an event while a doubt is young": {{0, well, ok}, {1, doubt, suspect}, {1, xid, suspect}},

		"the way back":                  {{0, well, ok}, {1, fault, sick}, {1, well, trial}, {5, well, trial}, {1, well, ok}},
		"no way back past a reset":      {{0, reset, sick}, {100, reset, sick}, {1, well, trial}},
		"no way back unprobed":          {{0, fault, sick}, {100, unwell, sick}, {1, well, trial}},
		"a trial needs its probes":      {{0, fault, sick}, {1, well, trial}, {6, unwell, trial}, {1, well, ok}},
		"a doubt ends the trial":        {{0, fault, sick}, {1, well, trial}, {5, doubt, sick}, {1, well, trial}, {5, well, trial}, {1, well, ok}},
		"a fault ends the trial":        {{0, fault, sick}, {1, well, trial}, {5, fault, sick}},
		"a doubt keeps it sick":         {{0, fault, sick}, {1, doubt, sick}, {1, well, trial}},
		"a trial counts from its start": {{0, fault, sick}, {50, unwell, sick}, {1, well, trial}, {5, well, trial}, {1, well, ok}},

		"a relapse takes twice as long": {
			{0, well, ok},
			{1, fault, sick}, {1, well, trial}, {6, well, ok},
			{1, fault, sick}, {1, well, trial}, {11, well, trial}, {1, well, ok},
			{1, fault, sick}, {1, well, trial}, {23, well, trial}, {1, well, ok},
			{1, fault, sick}, {1, well, trial}, {39, well, trial}, {1, well, ok}, // not 48
			{1, fault, sick}, {1, well, trial}, {39, well, trial}, {1, well, ok},
		},
		"a doubtful relapse as well": {
			{0, well, ok},
			{1, doubt, suspect}, {1, well, suspect}, {4, well, ok},
			{1, doubt, suspect}, {1, well, suspect}, {7, well, suspect}, {1, well, ok},
		},
		"trouble is forgotten": {
			{0, well, ok},
			{1, fault, sick}, {1, well, trial}, {6, well, ok},
			{1, fault, sick}, {1, well, trial}, {12, well, ok},
			{100, fault, sick}, {1, well, trial}, {6, well, ok},
		},

		"an event without a judge":          {{0, oldWell, ok}, {1, oldXID, sick}, {1000, oldWell, sick}},
		"until the driver is loaded anew":   {{0, oldWell, ok}, {1, oldXID, sick}, {1, oldFault, sick}, {1, oldFresh, trial}, {6, oldWell, ok}},
		"a fault without a judge goes away": {{0, oldWell, ok}, {1, oldFault, sick}, {1, oldWell, trial}, {6, oldWell, ok}},
	} {
		t.Run(name, func(t *testing.T) {
			now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
			var r Record
			for i, s := range looks {
				now = now.Add(time.Duration(s.after) * time.Second)
				before := r
				r = policy.Step(r, s.look, now)
				if r.State != s.want {
					t.Fatalf("look %d: %s, want %s", i, r.State, s.want)
				}
				if (r.Reason == "") != (r.State == device.Healthy) {
					t.Errorf("look %d: %s with the reason %q", i, r.State, r.Reason)
				}
				since := now
				if r.State == before.State {
					since = before.Since
				}
				if r.Since != since {
					t.Errorf("look %d: %s since %s, want %s", i, r.State, r.Since, since)
				}
			}
		})
	}
}

func TestReasons(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var r Record
	step := func(l Look, want string) {
		t.Helper()
		now = now.Add(time.Second)
		if r = policy.Step(r, l, now); r.Reason != want {
			t.Errorf("the reason is %q, want %q", r.Reason, want)
		}
	}
	step(well, "")
	step(xid, "XID 94")
	step(well, "XID 94")
	step(Look{Happened: []string{"XID 95", "XID 94"}, Recovery: NoneDue}, "XID 94; XID 95")
	step(reset, "NVML says that it needs a reset; XID 94; XID 95")
	step(doubt, "XID 94; XID 95; no answer")
	step(well, "on trial after: XID 94; XID 95; no answer")
	now = now.Add(time.Hour)
	step(well, "")
	step(oldXID, "XID 94; this driver can not say whether the GPU has recovered: reset it and load the driver anew")
}

// A storm of events must neither fill the reason nor reach into records that
// were handed out before.
func TestStorm(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	r := policy.Step(Record{}, xid, now)
	kept := r
	for i := range 1000 {
		r = policy.Step(r, Look{Recovery: NoneDue, Happened: []string{fmt.Sprint("event ", i)}}, now)
	}
	if n := strings.Count(r.Reason, ";"); n != manyEvents-1 {
		t.Errorf("the reason lists %d events: %s", n+1, r.Reason)
	}
	if again := policy.Step(kept, doubt, now); again.Reason != "XID 94; no answer" {
		t.Errorf("an earlier record was changed: %q", again.Reason)
	}
}

// Whatever is seen, a GPU is healthy only after its waits, and one that is
// well for long enough always becomes healthy.
func FuzzStep(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5})
	looks := []Look{well, doubt, fault, reset, xid, unwell}
	f.Fuzz(func(t *testing.T, script []byte) {
		now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		var r Record
		for _, b := range script {
			look := looks[int(b)%len(looks)]
			before := r
			now = now.Add(time.Duration(b/16) * time.Second)
			r = policy.Step(r, look, now)
			if r.State == device.Healthy && (len(look.Signs) > 0 || look.Recovery.Due != "" || len(look.Happened) > 0) {
				t.Fatalf("healthy in spite of %+v", look)
			}
			if r.State == device.Healthy && (before.State == device.Unhealthy || before.State == device.Recovering && now.Sub(before.Since) < policy.Trial) {
				t.Fatalf("healthy too soon after %s", before.State)
			}
		}
		for range 3 {
			now = now.Add(policy.Longest)
			r = policy.Step(r, well, now)
		}
		if r.State != device.Healthy {
			t.Fatalf("well for long, and still %s: %s", r.State, r.Reason)
		}
	})
}
