package ledger

import (
	"time"

	"github.com/kilter-dev/kilter/device"
)

// Evidence is what is known at one moment.
type Evidence struct {
	Now time.Time

	// Kubelet is what the kubelet lists, whole.
	Kubelet []Container

	// Run names this run of the kubelet: it changes when the kubelet restarts.
	// Empty when it can not be told.
	Run string

	// Pods is what the API server says of Pods, by name. A Pod that is not in
	// the map was not asked about, or there was no answer.
	Pods map[PodName]PodState

	// NoAPI says that there is no API server to ask, ever. The kubelet's word
	// then counts after a grace.
	NoAPI bool

	// Ours says which resources are this agent's.
	Ours func(resource string) bool

	// Known says whether a device is of this node, whatever it is called: a
	// configuration may have given it another name before. It may be nil.
	Known func(id device.ID) bool
}

// PodState is the Pod that has a name now.
type PodState struct {
	// UID is empty when there is no such Pod.
	UID string
	// Alive is false for a Pod that has ended.
	Alive bool
}

// lostAfter is how long a Pod may be missing from the list of a restarted
// kubelet, which lists nothing for a while after its start, before its hold is
// taken for forgotten.
const lostAfter = 30 * time.Second

// Decide says who holds what after the evidence, given who did before. It is
// a pure function.
func Decide(before []Hold, evidence Evidence) []Hold {
	listed := readList(before, evidence)
	after := make([]Hold, 0, len(before))
	known := make(map[key]Hold, len(before))
	for _, hold := range before {
		known[hold.key()] = hold
	}
	for _, hold := range listed.holds {
		after = append(after, confirm(hold, known, evidence))
	}
	for _, hold := range before {
		if listed.keys[hold.key()] {
			continue
		}
		if kept, stays := judge(hold, listed, evidence); stays {
			after = append(after, kept)
		}
	}
	sortHolds(after)
	return after
}

// confirm completes a hold that the kubelet lists with what was known of it.
func confirm(hold Hold, known map[key]Hold, evidence Evidence) Hold {
	if old, found := known[hold.key()]; found {
		hold.Since, hold.Holder.UID, hold.verified = old.Since, old.Holder.UID, old.verified
	}
	if state, answered := evidence.Pods[hold.Holder.podName()]; answered && !hold.verified && state.UID != "" {
		if hold.Holder.UID != "" && hold.Holder.UID != state.UID {
			hold.Since = evidence.Now
		}
		hold.Holder.UID, hold.verified = state.UID, true
	}
	return hold
}

// judge says whether a hold that the kubelet does not list stays.
func judge(hold Hold, listed list, evidence Evidence) (Hold, bool) {
	if listed.devices[hold.Device] {
		return hold, false // given to somebody else since
	}
	if listed.containers[containerKey{hold.Holder.podName(), hold.Holder.Container, hold.Resource}] {
		return hold, false // the container was given other devices instead
	}
	if hold.Run != "" && hold.Run == evidence.Run {
		return hold, false // who listed it knows that it is over
	}
	state, answered := evidence.Pods[hold.Holder.podName()]
	if answered {
		if ended(hold, state) {
			return hold, false
		}
		hold.Holder.UID, hold.verified = state.UID, true
	}
	if hold.MissingSince.IsZero() {
		hold.MissingSince = evidence.Now
	}
	hold.podListed = listed.pods[hold.Holder.podName()]
	missing := evidence.Now.Sub(hold.MissingSince)
	if evidence.NoAPI && !hold.podListed && missing >= lostAfter {
		return hold, false
	}
	if missing >= lostAfter || hold.podListed {
		hold.Orphaned = true
	}
	return hold, true
}

// ended says whether the API server's answer means that the holder is no more.
// A hold whose uid is not known is given the benefit of the doubt.
func ended(hold Hold, state PodState) bool {
	another := hold.Holder.UID != "" && hold.Holder.UID != state.UID
	return state.UID == "" || another || !state.Alive
}

// Questions says which Pods the API server should be asked about, given the
// evidence without its answers.
func Questions(before []Hold, evidence Evidence) []PodName {
	if evidence.NoAPI {
		return nil
	}
	var names []PodName
	asked := make(map[PodName]bool)
	for _, hold := range Decide(before, evidence) {
		name := hold.Holder.podName()
		if (!hold.MissingSince.IsZero() || !hold.verified) && !asked[name] {
			asked[name] = true
			names = append(names, name)
		}
	}
	return names
}

// list is the kubelet's list, arranged for looking things up.
type list struct {
	holds   []Hold
	keys    map[key]bool
	devices map[device.ID]bool
	pods    map[PodName]bool
	// containers has those that were given devices of a resource.
	containers map[containerKey]bool
}

type containerKey struct {
	pod       PodName
	container string
	resource  string
}

func readList(before []Hold, evidence Evidence) list {
	// A resource that has a hold is ours even when its driver has not
	// reported yet, as after a start.
	ours := make(map[string]bool)
	for _, hold := range before {
		ours[hold.Resource] = true
	}
	listed := list{
		keys:       make(map[key]bool),
		devices:    make(map[device.ID]bool),
		pods:       make(map[PodName]bool),
		containers: make(map[containerKey]bool),
	}
	for _, container := range evidence.Kubelet {
		listed.pods[container.podName()] = true
		for resource, devices := range container.Devices {
			isOurs := ours[resource] || evidence.Ours(resource)
			for _, id := range devices {
				hold := Hold{
					Device:    id,
					Resource:  resource,
					Holder:    Holder{Namespace: container.Namespace, Pod: container.Pod, Container: container.Container},
					Since:     evidence.Now,
					Run:       evidence.Run,
					podListed: true,
				}
				foreign := !isOurs && (evidence.Known == nil || !evidence.Known(hold.Of()))
				if foreign || listed.keys[hold.key()] {
					continue
				}
				listed.holds = append(listed.holds, hold)
				listed.keys[hold.key()] = true
				listed.devices[id] = true
				listed.containers[containerKey{container.podName(), container.Container, resource}] = true
			}
		}
	}
	return listed
}
