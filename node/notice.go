package node

import (
	"fmt"
	"strings"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
)

// noticeKey is a device of a Pod.
type noticeKey struct {
	device         device.ID
	namespace, pod string
	uid            string
}

// notices says which Pods should be told what, given which were told that a
// device of theirs is sick, and returns which have been told after that. It is
// a pure function of the state, not of how it came about, so that nothing is
// missed or told twice when the agent starts anew. remembered describes
// devices that may have vanished.
func notices(told map[noticeKey]bool, snapshot inventory.Snapshot, holds []ledger.Hold, remembered map[device.ID]device.Device, now time.Time) ([]kube.PodEvent, map[noticeKey]bool) {
	var events []kube.PodEvent
	next := make(map[noticeKey]bool)
	for _, hold := range holds {
		key := noticeKey{hold.Of(), hold.Holder.Namespace, hold.Holder.Pod, hold.Holder.UID}
		if next[key] {
			continue // another container of the Pod, or another replica
		}
		d, present := snapshot.Device(hold.Of())
		if !present {
			d = remembered[hold.Of()]
		}
		event := kube.PodEvent{
			Namespace: hold.Holder.Namespace, Pod: hold.Holder.Pod, UID: hold.Holder.UID,
			Time: now.Truncate(time.Second),
		}
		if present && !d.Health.Since.IsZero() {
			event.Time = d.Health.Since
		}
		reason, sick := sickness(d, present, snapshot.Complete)
		switch {
		case sick:
			next[key] = true
			event.Type, event.Reason = kube.Warning, kube.ReasonDeviceUnhealthy
			event.Message = fmt.Sprintf("%s: %s. The Pod keeps the device; nobody else is given it until it is well again.", describe(hold, d), reason)
		case told[key] && present && d.Health.OK():
			event.Type, event.Reason = kube.Normal, kube.ReasonDeviceRecovered
			event.Message = fmt.Sprintf("%s is well again.", describe(hold, d))
		default:
			// Not known, suspect or on trial: what was told still stands.
			if told[key] {
				next[key] = true
			}
			continue
		}
		if !sick || !told[key] {
			events = append(events, event)
		}
	}
	return events, next
}

// sickness says whether, and why, a Pod should be told that its device is
// sick. A device that is not in the list counts only once all drivers have
// reported.
func sickness(d device.Device, present, complete bool) (reason string, sick bool) {
	switch {
	case !present:
		return "the device has vanished: its driver does not report it any more", complete
	case d.Health.State != device.Unhealthy:
		return "", false
	case d.Health.Reason == "":
		return "the device is unhealthy", true
	}
	return strings.TrimRight(d.Health.Reason, ". "), true
}

// describe is "nvidia.com/gpu 3 (NVIDIA H100 80GB HBM3, GPU-…)".
func describe(hold ledger.Hold, d device.Device) string {
	if d.ID == "" {
		return fmt.Sprintf("%s %s", hold.Resource, hold.Of())
	}
	return fmt.Sprintf("%s %d (%s, %s)", hold.Resource, d.Index, d.Model, d.ID)
}
