package nvidia

import (
	"errors"

	"github.com/kilter-dev/kilter/device"
)

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

// tell logs which GPUs have come and gone, and how they are.
func (w *watcher) tell(before, after map[string]gpu) {
	for uuid, g := range after {
		old, known := before[uuid]
		log := w.logger.With("gpu", uuid, "index", g.index, "state", g.record.State)
		switch {
		case !known:
			log.Info("found a GPU", "model", g.model, "reason", g.record.Reason)
		case old.record.State == g.record.State:
		case g.record.State == device.Healthy:
			log.Info("the GPU is well again", "was", old.record.Reason)
		default:
			log.Warn("the GPU is not offered", "reason", g.record.Reason)
		}
		if g.vitals.resetDue && !old.vitals.resetDue {
			log.Warn("the GPU has to be reset; NVML is closed between looks so that it can be")
		}
	}
	for uuid, g := range before {
		if _, still := after[uuid]; !still {
			w.logger.Warn("the GPU has left the machine", "gpu", uuid, "index", g.index)
		}
	}
}

// tellUnknown logs, once for each change, which GPUs NVML lists and can not
// open. Without their UUIDs they can not be reported.
func (w *watcher) tellUnknown(seen []sighting, known map[string]gpu) {
	indices := map[int]bool{}
	for _, g := range known {
		indices[g.index] = true
	}
	now := map[int]string{}
	for _, s := range seen {
		if s.err == nil || indices[s.index] {
			continue
		}
		if now[s.index] = s.err.Error(); now[s.index] != w.saidOf[s.index] {
			w.logger.Error("NVML lists a GPU and can not open it; it is not offered", "index", s.index, "error", s.err)
		}
	}
	w.saidOf = now
}

func clone(devices []device.Device) []device.Device {
	copied := make([]device.Device, len(devices))
	for i, d := range devices {
		copied[i] = d.Clone()
	}
	return copied
}
