package nvidia

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/device"
)

// Watch implements hardware.Driver. It ends by itself only with
// ErrDriverReplaced. One Watch runs at a time; a second is refused.
func (d *Driver) Watch(ctx context.Context, report func([]device.Device)) error {
	if !d.watching.TryLock() {
		return errors.New("the NVIDIA driver is watched already")
	}
	defer d.watching.Unlock()
	w := &watcher{
		Driver:    d,
		report:    report,
		questions: &questions{patience: d.config.Patience, out: map[string]chan struct{}{}},
		book:      newFactbook(),
		happened:  map[string][]string{},
	}
	defer w.close()

	ticks := time.NewTicker(d.config.Interval)
	defer ticks.Stop()
	for {
		if err := w.look(); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-ticks.C:
		case e := <-w.events():
			w.hear(e)
		}
	}
}

// watcher is one run of Watch.
type watcher struct {
	*Driver
	report    func([]device.Device)
	session   *session // nil while NVML is not open
	questions *questions
	book      *factbook
	happened  map[string][]string // events since the last look, by UUID
	unloaded  bool                // the driver was not loaded when last tried
	reported  []device.Device
	said      string         // what the log said last about NVML
	saidOf    map[int]string // and about GPUs that have no UUID, by index
}

// look brings what is known up to date and reports it when it has changed.
func (w *watcher) look() error {
	l := look{onBus: func(address string) bool { return onBus(w.host, address) }}
	l.sightings, l.err = w.see()
	w.say(l.err)
	l.at, l.happened = w.config.Now(), w.happened
	l.fresh = w.unloaded && l.err == nil
	w.unloaded = errors.Is(l.err, nvml.ERROR_DRIVER_NOT_LOADED) || w.unloaded && l.err != nil
	w.happened = map[string][]string{}

	w.mu.Lock()
	before := w.gpus
	w.gpus = merge(before, l, w.config.Health, w.config.Checks)
	after := w.gpus
	w.mu.Unlock()

	w.tell(before, after)
	w.tellUnknown(l.sightings, after)
	if now := devices(offers(after, w.config.MIG)); w.reported == nil || !reflect.DeepEqual(now, w.reported) {
		w.reported = clone(now)
		w.report(now)
	}
	w.letGo(after)
	if errors.Is(l.err, ErrDriverReplaced) {
		return l.err
	}
	return nil
}

// see asks NVML. A session that fails is replaced at once, since the failure to
// start another says more than its own.
func (w *watcher) see() (seen []sighting, err error) {
	if w.session != nil && w.session.outdated() {
		w.close()
	}
	for range 2 {
		if err = w.open(); err != nil {
			return nil, err
		}
		w.hearAll()
		if seen, err = w.session.look(); err == nil || errors.Is(err, errSilent) {
			return seen, err
		}
		w.close()
		w.book = newFactbook()
	}
	return nil, err
}

func (w *watcher) open() error {
	if w.session != nil {
		return nil
	}
	s, err := open(w.config.NVML, w.host, w.logger, w.questions, w.book)
	w.session = s
	return err
}

func (w *watcher) close() {
	if w.session != nil {
		w.session.close()
		w.session = nil
	}
}

// letGo closes NVML until the next look while a GPU has to be reset, since it
// can not be reset while anybody holds it open. Events are missed meanwhile;
// what they lead to is seen by looking.
func (w *watcher) letGo(gpus map[string]gpu) {
	for _, g := range gpus {
		if g.vitals.resetDue && !w.questions.busy() {
			w.close()
			return
		}
	}
}

func (w *watcher) events() <-chan event {
	if w.session == nil {
		return nil
	}
	return w.session.events
}

// hearAll takes the events that have come, so that one look serves them all.
func (w *watcher) hearAll() {
	for {
		select {
		case e := <-w.session.events:
			w.hear(e)
		default:
			return
		}
	}
}

func (w *watcher) hear(e event) {
	if e.xid == 0 || e.uuid == "" {
		return // the look that follows finds out
	}
	counts := w.config.Checks.Counts(e.xid)
	w.logger.Warn("the GPU reports an error", "gpu", e.uuid, "xid", e.xid, "counts", counts)
	if counts {
		w.happened[e.uuid] = append(w.happened[e.uuid], fmt.Sprintf("XID %d", e.xid))
	}
}
