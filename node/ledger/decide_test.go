package ledger

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

const gpu = "nvidia.com/gpu"

var (
	start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	now   = start.Add(time.Hour)
)

// hold is a hold of default/<pod>/main as known from an earlier look.
func hold(id device.ID, pod, uid string) Hold {
	return Hold{
		Device: id, Resource: gpu, Since: start, verified: uid != "", podListed: true,
		Holder: Holder{Namespace: "default", Pod: pod, UID: uid, Container: "main"},
	}
}

func (h Hold) missing(since time.Duration) Hold {
	h.MissingSince, h.podListed = now.Add(-since), false
	return h
}

func (h Hold) forgotten(since time.Duration) Hold {
	h.MissingSince, h.podListed = now.Add(-since), true
	return h
}

func (h Hold) by(run string) Hold { h.Run = run; return h }

func (h Hold) orphaned() Hold { h.Orphaned = true; return h }

func (h Hold) seen(at time.Time) Hold { h.Since = at; return h }

func (h Hold) fromFile() Hold { h.verified, h.podListed = false, false; return h }

// lists is the kubelet's list of default/<pod>/main with the given devices.
func lists(pod string, ids ...device.ID) Container {
	container := Container{Namespace: "default", Pod: pod, Container: "main"}
	if len(ids) > 0 {
		container.Devices = map[string][]device.ID{gpu: ids}
	}
	return container
}

func pod(name string) PodName { return PodName{"default", name} }

func TestDecide(t *testing.T) {
	alive := func(uid string) PodState { return PodState{UID: uid, Alive: true} }
	tests := map[string]struct {
		before  []Hold
		kubelet []Container
		pods    map[PodName]PodState
		noAPI   bool
		run     string
		want    []Hold
		// asks are the Pods that must be looked up first.
		asks []PodName
	}{
		"a new holder gets its uid": {
			kubelet: []Container{lists("a", "0")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1").seen(now)},
		},
		"a new holder while the API server is away has no uid yet": {
			kubelet: []Container{lists("a", "0")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "").seen(now)},
		},
		"a holder that stays is not asked about again": {
			before:  []Hold{hold("0", "a", "u1")},
			kubelet: []Container{lists("a", "0")},
			want:    []Hold{hold("0", "a", "u1")},
		},
		"a resource of somebody else is none of ours": {
			kubelet: []Container{{Namespace: "default", Pod: "a", Container: "main", Devices: map[string][]device.ID{"other.com/nic": {"n0"}}}},
			want:    []Hold{},
		},
		"a resource that has a hold is ours before its driver has reported": {
			before:  []Hold{{Device: "x0", Resource: "other.com/nic", Since: start, verified: true, podListed: true, Holder: Holder{"default", "a", "u1", "main"}}},
			kubelet: []Container{{Namespace: "default", Pod: "a", Container: "main", Devices: map[string][]device.ID{"other.com/nic": {"x0"}}}},
			want:    []Hold{{Device: "x0", Resource: "other.com/nic", Since: start, verified: true, podListed: true, Holder: Holder{"default", "a", "u1", "main"}}},
		},

		"a Pod that has ended gives its device back": {
			before: []Hold{hold("0", "a", "u1")},
			pods:   map[PodName]PodState{pod("a"): {UID: "u1"}},
			asks:   []PodName{pod("a")},
			want:   []Hold{},
		},
		"a deleted Pod gives its device back": {
			before: []Hold{hold("0", "a", "u1")},
			pods:   map[PodName]PodState{pod("a"): {}},
			asks:   []PodName{pod("a")},
			want:   []Hold{},
		},
		"a deleted Pod that the kubelet still lists keeps its device": {
			before:  []Hold{hold("0", "a", "u1")},
			kubelet: []Container{lists("a", "0")},
			pods:    map[PodName]PodState{pod("a"): {}},
			want:    []Hold{hold("0", "a", "u1")},
		},
		"the kubelet lists nothing after a start: nobody loses anything": {
			before: []Hold{hold("0", "a", "u1"), hold("1", "b", "u2")},
			pods:   map[PodName]PodState{pod("a"): alive("u1"), pod("b"): alive("u2")},
			asks:   []PodName{pod("a"), pod("b")},
			want:   []Hold{hold("0", "a", "u1").missing(0), hold("1", "b", "u2").missing(0)},
		},
		"the kubelet lists nothing and the API server is away: all stays": {
			before: []Hold{hold("0", "a", "u1")},
			asks:   []PodName{pod("a")},
			want:   []Hold{hold("0", "a", "u1").missing(0)},
		},
		"listed again after that": {
			before:  []Hold{hold("0", "a", "u1").missing(10 * time.Second)},
			kubelet: []Container{lists("a", "0")},
			want:    []Hold{hold("0", "a", "u1")},
		},

		"the kubelet that listed it lists it no more: it is over": {
			before:  []Hold{hold("0", "a", "u1").by("run-1"), hold("1", "b", "u2").by("run-1")},
			kubelet: []Container{lists("a")},
			run:     "run-1",
			want:    []Hold{},
		},
		"the kubelet that listed it lists somebody else beside it": {
			before:  []Hold{hold("0", "a", "u1").by("run-1")},
			kubelet: []Container{lists("b", "1")},
			pods:    map[PodName]PodState{pod("b"): alive("u2")},
			run:     "run-1",
			asks:    []PodName{pod("b")},
			want:    []Hold{hold("1", "b", "u2").by("run-1").seen(now)},
		},
		"a restarted kubelet forgot: an orphan at once": {
			before:  []Hold{hold("0", "a", "u1").by("run-1")},
			kubelet: []Container{lists("a")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			run:     "run-2",
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1").by("run-1").forgotten(0).orphaned()},
		},
		"a restarted kubelet remembers: it is that one's hold now": {
			before:  []Hold{hold("0", "a", "u1").by("run-1")},
			kubelet: []Container{lists("a", "0")},
			run:     "run-2",
			want:    []Hold{hold("0", "a", "u1").by("run-2")},
		},
		"a restarted kubelet lists nothing yet": {
			before: []Hold{hold("0", "a", "u1").by("run-1")},
			pods:   map[PodName]PodState{pod("a"): alive("u1")},
			run:    "run-2",
			asks:   []PodName{pod("a")},
			want:   []Hold{hold("0", "a", "u1").by("run-1").missing(0)},
		},
		"a restarted kubelet forgot, and the API server is away: an orphan too": {
			before:  []Hold{hold("0", "a", "u1")},
			kubelet: []Container{lists("a")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1").forgotten(0).orphaned()},
		},
		"a living Pod that the kubelet does not list at all: an orphan after long": {
			before: []Hold{hold("0", "a", "u1").missing(lostAfter), hold("1", "b", "u2").missing(lostAfter - 1)},
			pods:   map[PodName]PodState{pod("a"): alive("u1"), pod("b"): alive("u2")},
			asks:   []PodName{pod("a"), pod("b")},
			want:   []Hold{hold("0", "a", "u1").missing(lostAfter).orphaned(), hold("1", "b", "u2").missing(lostAfter - 1)},
		},
		"an orphan stays one while its Pod lives": {
			before:  []Hold{hold("0", "a", "u1").forgotten(time.Hour).orphaned()},
			kubelet: []Container{lists("a"), lists("b", "1")},
			pods:    map[PodName]PodState{pod("a"): alive("u1"), pod("b"): alive("u2")},
			asks:    []PodName{pod("a"), pod("b")},
			want:    []Hold{hold("0", "a", "u1").forgotten(time.Hour).orphaned(), hold("1", "b", "u2").seen(now)},
		},
		"an orphan whose Pod has ended gives its device back": {
			before:  []Hold{hold("0", "a", "u1").forgotten(time.Hour).orphaned()},
			kubelet: []Container{lists("a")},
			pods:    map[PodName]PodState{pod("a"): {UID: "u1"}},
			asks:    []PodName{pod("a")},
			want:    []Hold{},
		},
		"an orphan that the kubelet remembers is none any more": {
			before:  []Hold{hold("0", "a", "u1").forgotten(time.Hour).orphaned()},
			kubelet: []Container{lists("a", "0")},
			want:    []Hold{hold("0", "a", "u1")},
		},
		"the container was given another device instead": {
			before:  []Hold{hold("0", "a", "u1").forgotten(time.Hour).orphaned()},
			kubelet: []Container{lists("a", "1")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("1", "a", "u1").seen(now)},
		},
		"another container of the Pod was given a device: the first keeps its own": {
			before: []Hold{hold("0", "a", "u1").forgotten(time.Minute).orphaned()},
			kubelet: []Container{lists("a"), {
				Namespace: "default", Pod: "a", Container: "side", Devices: map[string][]device.ID{gpu: {"1"}},
			}},
			pods: map[PodName]PodState{pod("a"): alive("u1")},
			asks: []PodName{pod("a")},
			want: []Hold{
				hold("0", "a", "u1").forgotten(time.Minute).orphaned(),
				{Device: "1", Resource: gpu, Since: now, verified: true, podListed: true, Holder: Holder{"default", "a", "u1", "side"}},
			},
		},
		"another Pod has the device now": {
			before:  []Hold{hold("0", "a", "u1")},
			kubelet: []Container{lists("a"), lists("b", "0")},
			pods:    map[PodName]PodState{pod("a"): alive("u1"), pod("b"): alive("u2")},
			asks:    []PodName{pod("b")},
			want:    []Hold{hold("0", "b", "u2").seen(now)},
		},

		"the name was used again: the Pod before is gone": {
			before:  []Hold{hold("0", "web-0", "u1")},
			kubelet: []Container{lists("web-0")}, // the new one, not given anything yet
			pods:    map[PodName]PodState{pod("web-0"): alive("u2")},
			asks:    []PodName{pod("web-0")},
			want:    []Hold{},
		},
		"the name was used again, and got another device": {
			before:  []Hold{hold("0", "web-0", "u1").forgotten(time.Hour).orphaned()},
			kubelet: []Container{lists("web-0", "3")},
			pods:    map[PodName]PodState{pod("web-0"): alive("u2")},
			asks:    []PodName{pod("web-0")},
			want:    []Hold{hold("3", "web-0", "u2").seen(now)},
		},
		"the name was used again while no agent ran, with the same device": {
			before:  []Hold{hold("0", "web-0", "u1").fromFile()},
			kubelet: []Container{lists("web-0", "0")},
			pods:    map[PodName]PodState{pod("web-0"): alive("u2")},
			asks:    []PodName{pod("web-0")},
			want:    []Hold{hold("0", "web-0", "u2").seen(now)},
		},
		"a hold from the file is looked up once": {
			before:  []Hold{hold("0", "a", "u1").fromFile()},
			kubelet: []Container{lists("a", "0")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1")},
		},
		"a hold without a uid, not listed, and a Pod of that name lives: it stays": {
			before: []Hold{hold("0", "a", "")},
			pods:   map[PodName]PodState{pod("a"): alive("u9")},
			asks:   []PodName{pod("a")},
			want:   []Hold{hold("0", "a", "u9").missing(0)},
		},

		"an init container's device is reused by the app's container": {
			// The init container's grant was never listed; the app's is.
			kubelet: []Container{lists("a", "0")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1").seen(now)},
		},
		"while the init container runs nobody is listed": {
			kubelet: []Container{lists("a")},
			want:    []Hold{},
		},
		"a list that names a device twice for one container counts it once": {
			kubelet: []Container{lists("a", "0", "0"), lists("a", "0")},
			pods:    map[PodName]PodState{pod("a"): alive("u1")},
			asks:    []PodName{pod("a")},
			want:    []Hold{hold("0", "a", "u1").seen(now)},
		},

		"no API server: the kubelet's word counts after a grace": {
			before: []Hold{hold("0", "a", "").missing(lostAfter), hold("1", "b", "").missing(lostAfter - 1)},
			noAPI:  true,
			want:   []Hold{hold("1", "b", "").missing(lostAfter - 1)},
		},
		"no API server: a Pod that is listed without its device keeps it": {
			before:  []Hold{hold("0", "a", "").forgotten(time.Hour)},
			kubelet: []Container{lists("a")},
			noAPI:   true,
			want:    []Hold{hold("0", "a", "").forgotten(time.Hour).orphaned()},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			evidence := Evidence{
				Now: now, Kubelet: test.kubelet, NoAPI: test.noAPI, Run: test.run,
				Ours: func(resource string) bool { return resource == gpu },
			}
			if diff := cmp.Diff(test.asks, Questions(test.before, evidence)); diff != "" {
				t.Errorf("questions (-want +got):\n%s", diff)
			}
			evidence.Pods = test.pods
			got := Decide(test.before, evidence)
			if diff := cmp.Diff(test.want, got, cmp.AllowUnexported(Hold{})); diff != "" {
				t.Errorf("holds (-want +got):\n%s", diff)
			}
		})
	}
}
