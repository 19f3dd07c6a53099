package ledger

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Kubelet says who was given what.
type Kubelet interface {
	// List returns all containers of the node's Pods, those without devices
	// too, and a name for this run of the kubelet that no other run has.
	List(ctx context.Context) (containers []Container, run string, err error)
}

// Pods is the API server's view of Pods.
type Pods interface {
	// Pod returns the uid of the Pod that has this name now, empty when there
	// is none, and whether it lives.
	Pod(ctx context.Context, namespace, name string) (uid string, alive bool, err error)
}

// Config is what a ledger is made of.
type Config struct {
	// File keeps the ledger over restarts.
	File string
	// BootID changes when the machine starts.
	BootID string

	Kubelet Kubelet
	// Pods may be nil, when there is no API server.
	Pods Pods
	// Ours says which resources are this agent's, and Known which devices are,
	// under whatever name somebody holds them. Known may be nil.
	Ours  func(resource string) bool
	Known func(id device.ID) bool

	Logger *slog.Logger
}

// Ledger knows who holds what. Its methods may be called from several
// goroutines.
type Ledger struct {
	config Config

	// refreshing is held while the kubelet and the API server are asked, so
	// that answers are taken in the order in which they were given.
	refreshing sync.Mutex

	mu      sync.Mutex
	holds   []Hold
	grants  map[string]Grant
	changed chan struct{}
	unsaved bool

	nudged chan struct{}
	// silent and unsaveable remember what was logged, to log it once.
	silent     bool
	unsaveable bool
}

// New returns an empty ledger.
func New(config Config) *Ledger {
	return &Ledger{
		config:  config,
		grants:  make(map[string]Grant),
		changed: make(chan struct{}),
		nudged:  make(chan struct{}, 1),
	}
}

// Load reads the file. What can not be read is moved aside and logged, and the
// ledger starts from the kubelet's word alone. After a reboot nobody holds
// anything, and all grants are over.
func (l *Ledger) Load() error {
	s, err := readState(l.config.File)
	if errors.Is(err, errMalformed) {
		aside := l.config.File + ".malformed"
		l.config.Logger.Error("the ledger's file can not be used; it was moved aside, and who holds what is asked of the kubelet",
			"file", l.config.File, "moved_to", aside, "error", err)
		if err := os.Rename(l.config.File, aside); err != nil {
			return fmt.Errorf("move the malformed ledger aside: %w", err)
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	rebooted := s.BootID != l.config.BootID
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, grant := range s.Grants {
		if rebooted {
			grant.At, grant.Pod = time.Time{}, nil
		}
		l.grants[grant.ID] = grant
	}
	if rebooted {
		if len(s.Holds) > 0 {
			l.config.Logger.Info("the machine was started anew; earlier holds are over", "holds", len(s.Holds))
		}
		return nil
	}
	l.holds = s.Holds
	sortHolds(l.holds)
	return nil
}

// Holds returns who holds what, sorted by device.
func (l *Ledger) Holds() []Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.holds)
}

// Changed returns a channel that is closed at the next change of holds or
// grants. Take it before looking, or a change in between goes by unseen.
func (l *Ledger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

// Nudge asks for a look at the kubelet's list soon: something has happened
// that may have changed it.
func (l *Ledger) Nudge() {
	select {
	case l.nudged <- struct{}{}:
	default:
	}
}

// Granted takes note that a grant was prepared for somebody new.
func (l *Ledger) Granted(grants ...Grant) {
	l.mu.Lock()
	for _, grant := range grants {
		l.grants[grant.ID] = grant
	}
	l.touch()
	l.mu.Unlock()
	l.Nudge()
}

// Ensure takes note that a grant was prepared once more for the Pod that has
// its devices, as before every start of a container. A grant that is in the
// book and not over stays as it is.
func (l *Ledger) Ensure(grant Grant) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if known, found := l.grants[grant.ID]; found && !over(known, l.holds) {
		return
	}
	if holds := held(l.holds, grant.ids()); len(holds) > 0 {
		grant.Pod = podOf(holds[0])
	}
	l.grants[grant.ID] = grant
	l.touch()
}

// Pending returns what was given a moment ago and is not in the kubelet's list
// yet, as holds of nobody.
func (l *Ledger) Pending() []Hold {
	l.mu.Lock()
	defer l.mu.Unlock()
	var pending []Hold
	for _, grant := range l.grants {
		if !grant.pending(time.Now()) {
			continue
		}
		for _, id := range grant.ids() {
			pending = append(pending, Hold{Device: id, Resource: grant.Resource, Since: grant.At})
		}
	}
	sortHolds(pending)
	return pending
}

// Over returns the grants that nobody has any more. Each is returned until it
// is forgotten.
func (l *Ledger) Over() []Grant {
	l.mu.Lock()
	defer l.mu.Unlock()
	var ended []Grant
	for _, grant := range l.grants {
		if over(grant, l.holds) {
			ended = append(ended, grant)
		}
	}
	slices.SortFunc(ended, func(a, b Grant) int { return a.At.Compare(b.At) })
	return ended
}

// Forget strikes a grant out.
func (l *Ledger) Forget(grantID string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.grants, grantID)
	l.touch()
}

// touch marks a change. The caller holds mu.
func (l *Ledger) touch() {
	l.unsaved = true
	close(l.changed)
	l.changed = make(chan struct{})
}

// held returns the holds on any of the devices.
func held(holds []Hold, ids []device.ID) []Hold {
	var found []Hold
	for _, hold := range holds {
		if slices.Contains(ids, hold.Device) {
			found = append(found, hold)
		}
	}
	return found
}
