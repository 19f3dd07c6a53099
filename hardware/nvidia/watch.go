package nvidia

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// errLost says that NVML does not list a GPU that is still on the bus.
var errLost = errors.New("NVML no longer lists the GPU; reset it or restart the machine")

// Watch implements hardware.Driver. It ends by itself only with
// ErrDriverReplaced. One Watch runs at a time; a second is refused.
func (d *Driver) Watch(ctx context.Context, report func([]device.Device)) error {
	if !d.watching.TryLock() {
		return errors.New("the NVIDIA driver is watched already")
	}
	defer d.watching.Unlock()
	w := &watcher{Driver: d, report: report}
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
		}
	}
}

// watcher is one run of Watch.
type watcher struct {
	*Driver
	report   func([]device.Device)
	session  *session // nil while NVML is not open
	reported []device.Device
	said     string // what the log said last about NVML
}

// look brings what is known up to date and reports it when it has changed.
func (w *watcher) look() error {
	var seen []sighting
	err := w.open()
	if err == nil {
		if seen, err = w.session.look(); err != nil && !errors.Is(err, errSilent) {
			w.close() // and start anew with the next look
		}
	}
	w.say(err)

	w.mu.Lock()
	w.gpus = merge(w.gpus, seen, err, func(address string) bool { return onBus(w.host, address) }, w.config.Now())
	now := devices(w.gpus)
	w.mu.Unlock()

	if w.reported == nil || !reflect.DeepEqual(now, w.reported) {
		w.reported = clone(now)
		w.report(now)
	}
	if errors.Is(err, ErrDriverReplaced) {
		return err
	}
	return nil
}

func (w *watcher) open() error {
	if w.session != nil {
		return nil
	}
	s, err := open(w.config.NVML, w.host, w.config.Patience)
	w.session = s
	return err
}

func (w *watcher) close() {
	if w.session != nil {
		w.session.close()
		w.session = nil
	}
}

// say logs how NVML is, once for each change.
func (w *watcher) say(err error) {
	now := "NVML works"
	if err != nil {
		now = err.Error()
	}
	if now == w.said {
		return
	}
	w.said = now
	switch {
	case err == nil:
		w.logger.Info(now, "driverVersion", w.session.driver, "cudaVersion", w.session.cuda)
	case errors.Is(err, errNoLibrary):
		w.logger.Info(now)
	default:
		w.logger.Error("NVML does not work; its GPUs are not offered, and it is tried again", "error", err)
	}
}

func clone(devices []device.Device) []device.Device {
	copied := make([]device.Device, len(devices))
	for i, d := range devices {
		copied[i] = d.Clone()
	}
	return copied
}
