//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kilter-dev/kilter/test/sight"
)

func TestNodesAdvertiseWhatTheyHave(t *testing.T) {
	for node, want := range map[string]int64{small: smallCount, big: bigCount} {
		capacity, allocatable := counts(t, node)
		if capacity != want || allocatable != want {
			t.Errorf("%s: capacity %d, allocatable %d, want %d", node, capacity, allocatable, want)
		}
	}
}

// checkSight holds what every container must find true: it sees the nodes of
// exactly these devices, may open them and no other, also when it makes the
// node itself.
func checkSight(t *testing.T, seen sight.Sight, indexes []int) {
	t.Helper()
	var nodes []string
	for _, node := range seen.Nodes {
		if strings.TrimLeft(strings.TrimPrefix(node, "/dev/nvidia"), "0123456789") == "" {
			nodes = append(nodes, node)
		}
	}
	var want []string
	for _, index := range indexes {
		want = append(want, fmt.Sprintf("/dev/nvidia%d", index))
	}
	if !slices.Equal(nodes, want) {
		t.Errorf("sees %v, want %v", nodes, want)
	}
	for node, answer := range seen.Open {
		if answer != sight.Allowed {
			t.Errorf("open %s: %s", node, answer)
		}
	}
	for minor, answer := range seen.SelfMade {
		wanted := sight.Refused
		if slices.Contains(indexes, minor) {
			wanted = sight.Allowed
		}
		if answer != wanted {
			t.Errorf("open a self-made node of device %d: %s, want %s", minor, answer, wanted)
		}
	}
}

// indexesOf translates ids to indexes, in order.
func indexesOf(t *testing.T, node string, wanted []string) []int {
	t.Helper()
	var indexes []int
	for _, d := range devices(t, node) {
		if slices.Contains(wanted, string(d.ID)) {
			indexes = append(indexes, d.Index)
		}
	}
	if len(indexes) != len(wanted) {
		t.Fatalf("%v are not all devices of %s", wanted, node)
	}
	return indexes
}

func TestPodSeesItsOwnDevicesOnly(t *testing.T) {
	given := hold(t, "own", big, 2)
	if len(given) != 2 {
		t.Fatalf("was given %v", given)
	}
	seen := see(t, "own", "main")
	checkSight(t, seen, indexesOf(t, big, given))
	for _, control := range []string{"/dev/nvidiactl", "/dev/nvidia-uvm"} {
		if !slices.Contains(seen.Nodes, control) {
			t.Errorf("does not see %s", control)
		}
	}
	if len(seen.DriverFolder) == 0 {
		t.Error("sees no driver folder")
	}
	if seen.DriverFolderWrite != "EROFS" {
		t.Errorf("writing to the driver folder: %s", seen.DriverFolderWrite)
	}
	for _, d := range devices(t, big) {
		want := 0
		if slices.Contains(given, string(d.ID)) {
			want = 1
		}
		if len(d.Holders) != want {
			t.Errorf("device %d is shown with %d holders, not %d", d.Index, len(d.Holders), want)
		}
	}
}

func TestPodWithoutRequestSeesNothing(t *testing.T) {
	create(t, pod("none", big, container("main", 0)))
	waitPhase(t, "none", corev1.PodSucceeded)
	seen := see(t, "none", "main")
	checkSight(t, seen, nil)
	if len(seen.Nodes) > 0 || seen.Visible != "" || seen.DriverFolder != nil {
		t.Errorf("sees %+v", seen)
	}
}

func TestNinthPodWaitsForADevice(t *testing.T) {
	holders := map[string]string{}
	for i := range bigCount {
		name := fmt.Sprintf("one-of-eight-%d", i)
		create(t, pod(name, big, container("main", 1, "-until-told")))
	}
	for i := range bigCount {
		name := fmt.Sprintf("one-of-eight-%d", i)
		waitPhase(t, name, corev1.PodRunning)
		given := ids(see(t, name, "main"))
		if len(given) != 1 || holders[given[0]] != "" {
			t.Fatalf("%s was given %v, which %s has", name, given, holders[given[0]])
		}
		holders[given[0]] = name
	}
	create(t, pod("ninth", big, container("main", 1, "-until-told")))
	waitPending(t, "ninth", "Insufficient nvidia.com/gpu")
	remove(t, "one-of-eight-3")
	waitPhase(t, "ninth", corev1.PodRunning)
	if given := ids(see(t, "ninth", "main")); len(given) != 1 || holders[given[0]] != "one-of-eight-3" {
		t.Errorf("the ninth Pod was given %v; the Pod that ended had another", given)
	}
}

func TestContainersOfAPod(t *testing.T) {
	p := pod("several", big, container("first", 1, "-until-told"), container("second", 2, "-until-told"))
	p.Spec.InitContainers = []corev1.Container{container("init", 2)}
	create(t, p)
	waitPhase(t, "several", corev1.PodRunning)
	first, second := ids(see(t, "several", "first")), ids(see(t, "several", "second"))
	if len(first) != 1 || len(second) != 2 || slices.Contains(second, first[0]) {
		t.Errorf("two containers were given %v and %v", first, second)
	}
	// What the init container had goes to the containers after it: the Pod
	// takes three devices, not five.
	for _, id := range ids(see(t, "several", "init")) {
		if !slices.Contains(append(first, second...), id) {
			t.Errorf("the init container's %s was not used again", id)
		}
	}
	held := 0
	for _, d := range devices(t, big) {
		held += len(d.Holders)
	}
	if held != 3 {
		t.Errorf("%d devices are held, not 3", held)
	}
}

func TestFourDevicesFitTheBigNodeOnly(t *testing.T) {
	create(t, pod("four", "", container("main", 4, "-until-told")))
	if p := waitPhase(t, "four", corev1.PodRunning); p.Spec.NodeName != big {
		t.Errorf("a Pod with four devices runs on %s", p.Spec.NodeName)
	}
}

// What Kubernetes does with requests that are not a plain count.
func TestOddRequests(t *testing.T) {
	submit := func(name string, requests, limits corev1.ResourceList) error {
		p := pod(name, "", container("main", 0))
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{Requests: requests, Limits: limits}
		_, err := suite.client.CoreV1().Pods(namespace).Create(context.Background(), p, metav1.CreateOptions{})
		if err == nil {
			t.Cleanup(func() { remove(t, name) })
		}
		return err
	}
	list := func(count string) corev1.ResourceList { return corev1.ResourceList{gpu: resource.MustParse(count)} }

	t.Run("zero is no request", func(t *testing.T) {
		if err := submit("zero", nil, list("0")); err != nil {
			t.Fatal(err)
		}
		waitPhase(t, "zero", corev1.PodSucceeded)
		checkSight(t, see(t, "zero", "main"), nil)
	})
	for name, c := range map[string]struct {
		requests, limits corev1.ResourceList
		refusal          string
	}{
		"a fraction is refused":             {nil, list("1500m"), "must be an integer"},
		"a request without limit":           {list("1"), nil, "Limit must be set for non overcommitable resources"},
		"a request that is not the limit":   {list("1"), list("2"), "must be equal to nvidia.com/gpu limit"},
		"a request that is above the limit": {list("2"), list("1"), "must be equal to nvidia.com/gpu limit"},
	} {
		t.Run(name, func(t *testing.T) {
			err := submit("odd", c.requests, c.limits)
			if err == nil || !strings.Contains(err.Error(), c.refusal) {
				t.Errorf("the API server says %v, not %q", err, c.refusal)
			}
		})
	}
	t.Run("more than any node has", func(t *testing.T) {
		if err := submit("too-many", nil, list("9")); err != nil {
			t.Fatal(err)
		}
		waitPending(t, "too-many", "2 Insufficient nvidia.com/gpu")
	})
}
