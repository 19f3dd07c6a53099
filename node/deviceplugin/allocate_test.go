package deviceplugin

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/node/deviceplugin/kubelettest"
)

func TestDevicesAreAdvertisedWithHealthAndTopology(t *testing.T) {
	devices := gpus(4)
	devices[3].NUMANode = device.UnknownNUMANode
	r := newRig(t, newFakeDriver("nvidia", devices...))
	r.Start()
	r.ready(gpu, 4)
	if diff := cmp.Diff(&pluginapi.Device{
		ID: "gpu2", Health: pluginapi.Healthy,
		Topology: &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: 1}}},
	}, r.Device(gpu, "gpu2"), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if topology := r.Device(gpu, "gpu3").GetTopology(); topology != nil {
		t.Errorf("a device of unknown NUMA node has the topology %v", topology)
	}

	r.driver.setHealth("gpu1", "it has fallen off the bus")
	r.Eventually("gpu1 is sick", func() bool { return r.Healthy(gpu) == 3 && r.Capacity(gpu) == 4 })
	r.driver.setHealth("gpu1", "")
	r.ready(gpu, 4)

	r.driver.change(func([]device.Device) []device.Device { return nil })
	r.Eventually("no device is left", func() bool { return r.Capacity(gpu) == 0 })
	if n := r.Plugins(gpu); n != 1 {
		t.Errorf("%d plugins after the last device vanished, want 1 that reports none", n)
	}
	r.driver.change(func([]device.Device) []device.Device { return gpus(2) })
	r.ready(gpu, 2)
}

func TestEachResourceHasItsPlugin(t *testing.T) {
	nic := device.Device{ID: "nic0", Vendor: "example.com", Kind: "nic", Health: device.Health{State: device.Healthy}}
	odd := device.Device{ID: "odd0", Vendor: "no domain!", Kind: "nic", Health: device.Health{State: device.Healthy}}
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...), newFakeDriver("nic", nic, odd))
	r.Start()
	r.ready(gpu, 2)
	r.ready("example.com/nic", 1)
	options, err := r.Client(gpu).GetDevicePluginOptions(t.Context(), &pluginapi.Empty{})
	if err != nil || !options.GetPreStartRequired() || !options.GetGetPreferredAllocationAvailable() {
		t.Errorf("options %v, %v", options, err)
	}
	for _, offer := range Offers(Standing{Devices: r.inventory.Snapshot().Devices}) {
		if offer.Device.ID == "odd0" && (offer.Offered || !strings.Contains(offer.Note, "no domain")) {
			t.Errorf("a device whose name Kubernetes does not take: %+v", offer)
		}
	}
}

func TestAllocateGivesNodesMountsAndEnvironment(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(4)...))
	r.Start()
	r.ready(gpu, 4)
	pod := r.podNamed("a", "u1")
	ids, response, err := r.Admit(t.Context(), pod, gpu, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := &pluginapi.ContainerAllocateResponse{
		Devices: []*pluginapi.DeviceSpec{
			{HostPath: "/dev/gpu0", ContainerPath: "/dev/gpu0", Permissions: "rw"},
			{HostPath: "/dev/gpu1", ContainerPath: "/dev/gpu1", Permissions: "rw"},
		},
		Mounts: []*pluginapi.Mount{{HostPath: "/opt/nvidia", ContainerPath: "/usr/local/nvidia", ReadOnly: true}},
		Envs:   map[string]string{"NVIDIA_VISIBLE": "[gpu0 gpu1]"},
	}
	if diff := cmp.Diff(want, response, protocmp.Transform()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff([]string{"gpu0", "gpu1"}, ids); diff != "" {
		t.Error(diff)
	}
	if err := r.StartContainer(t.Context(), pod, "main", gpu); err != nil {
		t.Errorf("before the start: %v", err)
	}
	if n := r.driver.grants(); n != 1 {
		t.Errorf("%d grants prepared, want the same one twice", n)
	}
}

func TestAllocateRefusesAndNamesEachDevice(t *testing.T) {
	tests := map[string]struct {
		containers [][]string
		want       []string
	}{
		"unknown":              {[][]string{{"gpu9"}}, []string{`"gpu9" is no device of this node`}},
		"unhealthy":            {[][]string{{"gpu1"}}, []string{`"gpu1" can not be given: it is unhealthy: too hot`}},
		"both, and a good one": {[][]string{{"gpu0", "gpu9", "gpu1"}}, []string{`"gpu9"`, `"gpu1"`, "too hot"}},
		"in the second":        {[][]string{{"gpu0"}, {"gpu9"}}, []string{`"gpu9"`}},
		"twice":                {[][]string{{"gpu0"}, {"gpu0"}}, []string{`"gpu0" is asked for twice`}},
		"nothing":              {[][]string{{}}, []string{"asks for no device"}},
		"empty id":             {[][]string{{""}}, []string{`"" is no device`}},
		"of another resource":  {[][]string{{"nic0"}}, []string{`"nic0" is no device`}},
	}
	nic := device.Device{ID: "nic0", Vendor: "example.com", Kind: "nic", Health: device.Health{State: device.Healthy}}
	r := newRig(t, newFakeDriver("nvidia", gpus(4)...), newFakeDriver("nic", nic))
	r.Start()
	r.ready(gpu, 4)
	r.driver.setHealth("gpu1", "too hot")
	r.Eventually("gpu1 is sick", func() bool { return r.Healthy(gpu) == 3 })
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			request := &pluginapi.AllocateRequest{}
			for _, ids := range test.containers {
				request.ContainerRequests = append(request.ContainerRequests, &pluginapi.ContainerAllocateRequest{DevicesIds: ids})
			}
			response, err := r.Client(gpu).Allocate(t.Context(), request)
			if err == nil {
				t.Fatalf("given: %v", response)
			}
			for _, part := range append(test.want, gpu) {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q is not in the error: %v", part, err)
				}
			}
			if n := r.driver.grants(); n != 0 {
				t.Errorf("%d grants were prepared for a refused request", n)
			}
		})
	}
}

func TestNothingIsHalfGiven(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(4)...))
	r.Start()
	r.ready(gpu, 4)
	r.driver.failure = func(grant device.Grant) error {
		if grant.Devices[0] == "gpu2" {
			return errors.New("the reset timed out")
		}
		return nil
	}
	_, err := r.Client(gpu).Allocate(t.Context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{"gpu0", "gpu1"}}, {DevicesIds: []string{"gpu2"}},
	}})
	if err == nil || !strings.Contains(err.Error(), "the reset timed out") || !strings.Contains(err.Error(), "gpu2") {
		t.Errorf("error %v", err)
	}
	if n := r.driver.grants(); n != 0 {
		t.Errorf("%d grants are left of a request that failed", n)
	}
}

func TestDevicesOfTwoDriversInOneContainer(t *testing.T) {
	devices := gpus(2)
	a, b := newFakeDriver("one", devices[0]), newFakeDriver("two", devices[1])
	r := newRig(t, a, b)
	r.Start()
	r.ready(gpu, 2)
	_, response, err := r.Admit(t.Context(), r.podNamed("a", "u1"), gpu, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"ONE_VISIBLE": "[gpu0]", "TWO_VISIBLE": "[gpu1]"}
	if diff := cmp.Diff(want, response.GetEnvs()); diff != "" || len(response.GetDevices()) != 2 {
		t.Errorf("%s\n%v", diff, response)
	}
}

func TestJoin(t *testing.T) {
	all := device.Edits{Env: map[string]string{"A": "1"}, Mounts: []device.Mount{{HostPath: "/x", ContainerPath: "/x"}}}
	same := device.Edits{Env: map[string]string{"A": "1", "B": "2"}, Mounts: []device.Mount{{HostPath: "/x", ContainerPath: "/x"}}}
	if err := join(&all, same); err != nil || len(all.Mounts) != 1 || all.Env["B"] != "2" {
		t.Errorf("%+v, %v", all, err)
	}
	err := join(&all, device.Edits{Env: map[string]string{"A": "3"}})
	if err == nil || !strings.Contains(err.Error(), "A") {
		t.Errorf("two values for one variable: %v", err)
	}
}

func TestPreference(t *testing.T) {
	tests := map[string]struct {
		available, must []string
		size            int
		want            []string
		fails           string
	}{
		"two of four":            {available: []string{"gpu0", "gpu1", "gpu2", "gpu3"}, size: 2, want: []string{"gpu1", "gpu2"}},
		"with one that must be":  {available: []string{"gpu0", "gpu1", "gpu3"}, must: []string{"gpu3"}, size: 2, want: []string{"gpu3", "gpu1"}},
		"a held one if need be":  {available: []string{"gpu0", "gpu1"}, size: 2, want: []string{"gpu0", "gpu1"}},
		"one has vanished":       {available: []string{"gpu8", "gpu1", "gpu2"}, size: 2, want: []string{"gpu1", "gpu2"}},
		"too many":               {available: []string{"gpu0", "gpu1"}, size: 3, fails: "choose 3"},
		"more must than asked":   {available: []string{"gpu1", "gpu2"}, must: []string{"gpu1", "gpu2"}, size: 1, fails: "choose 1"},
		"must be, and not there": {available: []string{"gpu1"}, must: []string{"gpu7"}, size: 1, fails: "gpu7"},
		"negative":               {available: []string{"gpu1"}, size: -1, fails: "choose -1"},
		"named twice":            {available: []string{"gpu1", "gpu1", "gpu2"}, size: 2, want: []string{"gpu1", "gpu2"}},
	}
	r := newRig(t, newFakeDriver("nvidia", gpus(4)...))
	r.Start()
	r.ready(gpu, 4)
	// gpu0 is held by a living Pod that a new kubelet knows nothing of: it
	// takes gpu0 for free.
	_, id := r.admit("a", "u1")
	if id != "gpu0" {
		t.Fatalf("the first Pod was given %s", id)
	}
	r.Forget()
	r.registered(4)
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			response, err := r.Client(gpu).GetPreferredAllocation(t.Context(), &pluginapi.PreferredAllocationRequest{
				ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
					AvailableDeviceIDs: test.available, MustIncludeDeviceIDs: test.must, AllocationSize: int32(test.size),
				}},
			})
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("%v, %v; want an error with %q", response, err, test.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(test.want, response.GetContainerResponses()[0].GetDeviceIDs()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestInitContainersDeviceIsReused(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	pod := r.podNamed("a", "u1")
	r.AddPod(pod)
	if _, _, err := r.Give(t.Context(), pod, "init", gpu, "gpu0", "gpu1"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Give(t.Context(), pod, "main", gpu, "gpu0"); err != nil {
		t.Fatalf("the app's container can not have the init container's device: %v", err)
	}
	r.known("gpu0", "u1")
	if err := r.StartContainer(t.Context(), pod, "init", gpu); err != nil {
		t.Errorf("start of the init container: %v", err)
	}
	if n := r.driver.grants(); n != 2 {
		t.Errorf("%d grants, want one for each container", n)
	}
	r.End(pod.UID)
	r.api.Delete(pod)
	if err := r.ledger.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.Eventually("all grants were taken back", func() bool { return r.driver.grants() == 0 })
}

func TestStartOfAContainerWhoseDeviceVanished(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	pod, _ := r.admit("a", "u1")
	r.driver.setHealth("gpu0", "too hot")
	r.Eventually("gpu0 is sick", func() bool { return r.Healthy(gpu) == 1 })
	if err := r.StartContainer(t.Context(), pod, "main", gpu); err != nil {
		t.Errorf("a sick device is left to its Pod, but: %v", err)
	}
	r.driver.change(func(devices []device.Device) []device.Device { return devices[1:] })
	r.Eventually("gpu0 is gone", func() bool { return r.Capacity(gpu) == 1 })
	err := r.StartContainer(t.Context(), pod, "main", gpu)
	if err == nil || !strings.Contains(err.Error(), `"gpu0" is no device of this node`) {
		t.Errorf("start with a device that has vanished: %v", err)
	}
}

func TestHeldDeviceIsNotGivenTwice(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	first, id := r.admit("a", "u1")

	// A new kubelet knows nothing of that and would give the device to
	// another Pod.
	r.Forget()
	r.registered(2)
	second := kubelettest.Pod{Namespace: "default", Name: "b", UID: "u2", Containers: []string{"main"}}
	_, _, err := r.Give(t.Context(), second, "main", gpu, id)
	if err == nil || !strings.Contains(err.Error(), "default/a/main") || !strings.Contains(err.Error(), id) {
		t.Fatalf("want a refusal that names the device and its holder, got %v", err)
	}
	// It stays in the node's count, as the Pod that has it does in the
	// scheduler's.
	if r.Healthy(gpu) != 2 {
		t.Errorf("%d devices are offered, not 2", r.Healthy(gpu))
	}
	if _, _, err := r.Give(t.Context(), second, "main", gpu, id); err == nil || !strings.Contains(err.Error(), "default/a/main") {
		t.Errorf("once it counts as forgotten: %v", err)
	}

	r.End(first.UID)
	r.api.Finish(first)
	r.ready(gpu, 2)
	if _, _, err := r.Give(t.Context(), second, "main", gpu, id); err != nil {
		t.Errorf("after the holder has ended: %v", err)
	}
}
