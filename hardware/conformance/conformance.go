// Package conformance is the suite that every hardware.Driver passes. It
// checks what the contract in package hardware promises, so that the rooms
// above may rely on it for hardware they have never seen.
//
// A driver's test calls Run. The static checks, Devices and Edits, are also
// of use on their own, where there is a list but no driver.
package conformance

import (
	"testing"
	"time"

	"github.com/kilter-dev/kilter/hardware"
)

// Subject is a driver on a machine whose hardware the test knows.
type Subject struct {
	Driver hardware.Driver

	// Devices is how many devices the machine has. Checks that need more than
	// that are left out: on an empty machine there is nothing to prepare.
	Devices int

	// SharedNodes are the host paths of the nodes that every grant may hold,
	// because they control the driver and not one device, as
	// /dev/nvidiactl does. Any other node belongs to one device.
	SharedNodes []string

	// Change, where it is set, makes a device of the machine change, so that
	// Watch has something new to report.
	Change func() error

	// Footprint, where it is set, describes what Prepare has left on the
	// machine: file names, partitions. Equal strings are equal footprints.
	Footprint func() (string, error)

	// Patience is how long the driver may take for what the contract wants
	// at once. Ten seconds when zero.
	Patience time.Duration
}

const defaultPatience = 10 * time.Second

// Run runs the driver through the suite. Every check opens a subject of its
// own, so open has to return a new driver each time; what it must clean up it
// leaves to t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) Subject) {
	t.Helper()
	for _, c := range checksFor(open(t)) {
		t.Run(c.name, func(t *testing.T) {
			if err := c.run(withDefaults(open(t))); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// check is one promise of the contract. It returns an error rather than fail
// a test, so that the suite can be tried on drivers that break the promise.
type check struct {
	name  string
	needs need
	run   func(Subject) error
}

// need is what a subject must offer for a check to have a meaning.
type need struct {
	devices int
	change  bool
	faults  bool
}

func checksFor(s Subject) []check {
	all := []check{
		{"name is a short constant", need{}, checkName},
		{"watch reports the full list at once", need{}, checkFirstReport},
		{"watch ends with the context", need{}, checkWatchEnds},
		{"watch can be called again", need{}, checkWatchAgain},
		{"watch reports a change", need{change: true}, checkChange},
		{"watch does not overlap reports", need{change: true}, checkOverlap},
		{"prepare gives sound edits", need{devices: 1}, checkEdits},
		{"prepare is idempotent", need{devices: 1}, checkIdempotent},
		{"prepare refuses unknown devices", need{}, checkUnknownOnly},
		{"prepare refuses a grant with an unknown device", need{devices: 1}, checkUnknownAmongKnown},
		{"prepare keeps devices apart", need{devices: 2}, checkApart},
		{"unprepare undoes prepare", need{devices: 1}, checkUnprepare},
		{"unprepare of an unknown grant is no error", need{}, checkUnprepareUnknown},
		{"concurrent use", need{devices: 1}, checkConcurrent},
		{"fault is reported until healed", need{devices: 1, faults: true}, checkFault},
		{"fault of an unknown device is refused", need{faults: true}, checkFaultUnknown},
		{"faults race with watch", need{devices: 1, faults: true}, checkFaultRace},
	}
	var chosen []check
	for _, c := range all {
		if c.needs.met(s) {
			chosen = append(chosen, c)
		}
	}
	return chosen
}

func (n need) met(s Subject) bool {
	_, injector := s.Driver.(hardware.FaultInjector)
	canChange := s.Change != nil || injector && s.Devices > 0
	return s.Devices >= n.devices && (canChange || !n.change) && (injector || !n.faults)
}

func withDefaults(s Subject) Subject {
	if s.Patience == 0 {
		s.Patience = defaultPatience
	}
	return s
}
