package deviceplugin

import (
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/deviceplugin/kubelettest"
)

// use takes a configuration into use while the door is open.
func (r *rig) use(c *config.Config) {
	r.tb.Helper()
	if err := r.terms.Use(*c, r.inventory.Snapshot()); err != nil {
		r.tb.Fatal(err)
	}
}

// offered waits until these are the ids that the kubelet has of a resource.
func (r *rig) offered(resource string, ids ...string) {
	r.tb.Helper()
	r.Eventually(resource+" are "+strings.Join(ids, " "), func() bool {
		for _, id := range ids {
			if r.Device(resource, id).GetHealth() != pluginapi.Healthy {
				return false
			}
		}
		return r.Capacity(resource) == len(ids)
	})
}

func (r *rig) finish(pod kubelettest.Pod) {
	r.api.Delete(pod)
	r.End(pod.UID)
	r.ledger.Nudge()
}

func TestHeldDevicesOutliveAChangeOfTheConfiguration(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.offered(gpu, "gpu0::0", "gpu0::1", "gpu1::0", "gpu1::1")
	a, id := r.admit("a", "u1")
	if id != "gpu0::0" {
		t.Fatalf("given %s", id)
	}

	// Shared, then whole: what is held stays, and its device has no room for
	// others.
	r.use(configured(t, "version: v1"))
	r.offered(gpu, "gpu0::0", "gpu1")
	if note := r.door.Offers()[0].Note; !strings.Contains(note, "it stays as it was given, as nvidia.com/gpu, until nobody holds it") {
		t.Errorf("the note is %q", note)
	}
	b, id := r.admit("b", "u2")
	if id != "gpu1" {
		t.Fatalf("given %s", id)
	}
	if err := r.StartContainer(r.context(), a, "main", gpu); err != nil {
		t.Errorf("a container of the first Pod starts again: %v", err)
	}
	r.finish(a)
	r.offered(gpu, "gpu0", "gpu1")

	// Whole, then shared under another name.
	r.use(sliced(t, 2, renamed))
	r.offered(shared, "gpu0::0", "gpu0::1")
	r.offered(gpu, "gpu1")
	r.finish(b)
	r.offered(shared, "gpu0::0", "gpu0::1", "gpu1::0", "gpu1::1")
	r.offered(gpu)

	// More, and fewer, which touches nobody.
	c := r.podNamed("c", "u3")
	if _, _, err := r.Give(r.context(), c, "main", shared, "gpu0::1"); err != nil {
		t.Fatal(err)
	}
	r.AddPod(c)
	r.known("gpu0::1", "u3")
	r.use(sliced(t, 3, renamed))
	r.offered(shared, "gpu0::0", "gpu0::1", "gpu0::2", "gpu1::0", "gpu1::1", "gpu1::2")
	r.use(configured(t, `sharing: {timeSlicing: {resources: [
		{name: nvidia.com/gpu, devices: [0], replicas: 1, rename: nvidia.com/gpu.one}, {name: nvidia.com/gpu, devices: [1], replicas: 2, rename: nvidia.com/gpu.shared}]}}`))
	r.offered(shared, "gpu0::1", "gpu1::0", "gpu1::1")
	r.finish(c)
	r.offered("nvidia.com/gpu.one", "gpu0")
}

// What was given is not in the kubelet's list at once.
func TestWhatWasJustGivenCountsAsHeld(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.offered(gpu, "gpu0::0", "gpu0::1")
	if _, err := r.Client(gpu).Allocate(r.context(), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"gpu0::1"}}},
	}); err != nil {
		t.Fatal(err)
	}
	r.use(configured(t, ""))
	r.offered(gpu, "gpu0::1")
	if _, err := r.Client(gpu).Allocate(r.context(), &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"gpu0"}}},
	}); err == nil {
		t.Error("a device is shared and whole at once")
	}
}

// The same holds when the agent was started anew with another configuration,
// or with none at all.
func TestHeldDevicesOutliveARestartWithAnotherConfiguration(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.offered(gpu, "gpu0::0", "gpu0::1", "gpu1::0", "gpu1::1")
	a, id := r.admit("a", "u1")
	r.stop()

	r.configure(sliced(t, 2, renamed))
	r.open(r.file, r.PluginFolder, r.driver)
	r.offered(gpu, id)
	r.offered(shared, "gpu1::0", "gpu1::1")
	r.stop()

	r.configure(nil)
	r.open(r.file, r.PluginFolder, r.driver)
	r.offered(gpu, id, "gpu1")
	if _, _, err := r.Give(r.context(), r.podNamed("b", "u2"), "main", gpu, "gpu0"); err == nil {
		t.Error("a device of which a replica is held was given whole")
	}
	r.finish(a)
	r.offered(gpu, "gpu0", "gpu1")
}

func TestADeviceThatTheConfigurationDoesNotFit(t *testing.T) {
	r := newRigWith(t, configured(t, `sharing: {timeSlicing: {renameByDefault: true, resources: [
		{name: nvidia.com/gpu, devices: 2, replicas: 2}, {name: nvidia.com/gpu, devices: [2], replicas: 3}]}}`), newFakeDriver("nvidia", gpus(3)...))
	r.Start()
	r.ready(shared, 7)
	// Without the first GPU the first two are others, which overlap: what was
	// planned before stays.
	devices := gpus(5)
	r.driver.change(func([]device.Device) []device.Device { return devices[1:3] })
	r.offered(shared, "gpu1::0", "gpu1::1", "gpu2::0", "gpu2::1", "gpu2::2")
	r.Eventually("it is logged", func() bool { return r.log.count("does not fit the devices of this node") == 1 })
	r.driver.change(func([]device.Device) []device.Device { return devices[1:] })
	r.Eventually("the new ones are seen", func() bool { return len(r.door.Offers()) == 4 })
	var notes []string
	for _, offer := range r.door.Offers() {
		notes = append(notes, offer.Note)
	}
	for i, want := range []string{"", "", "is claimed at", "is claimed at"} {
		if !strings.Contains(notes[i], want) || want == "" && notes[i] != "" {
			t.Errorf("device %d: %q", i, notes[i])
		}
	}
	r.driver.change(func([]device.Device) []device.Device { return devices[:3] })
	r.ready(shared, 7)
	if diff := cmp.Diff([]string{"", "", ""}, []string{r.door.Offers()[0].Note, r.door.Offers()[1].Note, r.door.Offers()[2].Note}); diff != "" {
		t.Error(diff)
	}
}

// Another plugin gave a device under a name that the configuration has not any
// more, and there is no ledger that tells of it.
func TestWhatWasGivenUnderAnotherNameIsSeen(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.offered(gpu, "gpu0", "gpu1")
	a, _ := r.admit("a", "u1")
	r.stop()
	if err := os.Remove(r.file); err != nil {
		t.Fatal(err)
	}
	r.configure(sliced(t, 2, renamed))
	r.open(r.file, r.PluginFolder, r.driver)
	r.Eventually("the other one is shared", func() bool {
		if r.Device(shared, "gpu0::0") != nil {
			t.Fatal("the device that is held whole was shared for a moment")
		}
		return r.Device(shared, "gpu1::0") != nil
	})
	r.offered(shared, "gpu1::0", "gpu1::1")
	r.offered(gpu, "gpu0")
	r.finish(a)
	r.offered(shared, "gpu0::0", "gpu0::1", "gpu1::0", "gpu1::1")
}

// The holder has ended and the kubelet gives its replica on before we know:
// the device has waited for this moment, and is whole now.
func TestAReplicaThatShouldGoIsNotGivenOn(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.offered(gpu, "gpu0::0", "gpu0::1")
	a, id := r.admit("a", "u1")
	r.use(configured(t, ""))
	r.offered(gpu, id)
	r.api.Delete(a)
	r.End(a.UID)
	if _, _, err := r.Give(r.context(), r.podNamed("b", "u2"), "main", gpu, id); err == nil || !strings.Contains(err.Error(), `"gpu0::0" is n`) {
		t.Errorf("given on: %v", err)
	}
	r.offered(gpu, "gpu0")
}
