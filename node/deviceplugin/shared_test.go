package deviceplugin

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/ledger"
)

const shared = "nvidia.com/gpu.shared"

// configured reads a configuration file.
func configured(tb testing.TB, text string) *config.Config {
	tb.Helper()
	c, _, err := config.Read(config.Sources{File: &config.File{Name: "config.yaml", Data: []byte(text)}})
	if err != nil {
		tb.Fatal(err)
	}
	return &c
}

// sliced is a configuration that shares all GPUs by time-slicing.
func sliced(tb testing.TB, replicas int, more ...string) *config.Config {
	tb.Helper()
	return configured(tb, fmt.Sprintf("sharing: {timeSlicing: {%s resources: [{name: nvidia.com/gpu, replicas: %d}]}}", strings.Join(more, ""), replicas))
}

const renamed = "renameByDefault: true, "

func TestReplicasAreAdvertisedWithTheHealthOfTheirDevice(t *testing.T) {
	r := newRigWith(t, sliced(t, 3, renamed), newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(shared, 6)
	if diff := cmp.Diff(&pluginapi.Device{
		ID: "gpu1::2", Health: pluginapi.Healthy,
		Topology: &pluginapi.TopologyInfo{Nodes: []*pluginapi.NUMANode{{ID: 1}}},
	}, r.Device(shared, "gpu1::2"), protocmp.Transform()); diff != "" {
		t.Error(diff)
	}
	if n := r.Plugins(gpu); n != 0 {
		t.Errorf("%d plugins for whole GPUs, of which there are none", n)
	}
	r.driver.setHealth("gpu1", "it has fallen off the bus")
	r.Eventually("all replicas of gpu1 are sick, and those of gpu0 well", func() bool {
		return r.Healthy(shared) == 3 && r.Capacity(shared) == 6 && r.Device(shared, "gpu0::0").GetHealth() == pluginapi.Healthy
	})
	r.driver.setHealth("gpu1", "")
	r.ready(shared, 6)
}

func TestTwoPodsHoldOneDevice(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.ready(gpu, 2)
	a, first := r.admit("a", "u1")
	_, second := r.admit("b", "u2")
	if diff := cmp.Diff([]string{"gpu0::0", "gpu0::1"}, []string{first, second}); diff != "" {
		t.Error(diff)
	}
	if n := r.driver.grants(); n != 2 {
		t.Errorf("%d grants for two Pods", n)
	}
	offer := r.door.Offers()[0]
	var holders []string
	for _, hold := range offer.Holds {
		holders = append(holders, hold.Holder.Pod)
	}
	if diff := cmp.Diff([]string{"a", "b"}, holders); diff != "" || !offer.Shared || !offer.Offered {
		t.Errorf("%s\n%+v", diff, offer)
	}
	if _, _, err := r.Give(r.context(), r.podNamed("c", "u3"), "main", gpu, first); err == nil || !strings.Contains(err.Error(), `"gpu0::0" is held by default/a/main`) {
		t.Errorf("a replica that is held is given again: %v", err)
	}

	// The end of one leaves what was prepared for the other.
	r.api.Delete(a)
	r.End(a.UID)
	r.ledger.Nudge()
	r.Eventually("the grant of the first is taken back", func() bool { return r.driver.grants() == 1 })
	r.known(second, "u2")
	if _, id := r.admit("d", "u4"); id != first {
		t.Errorf("given %s, want the replica that is free", id)
	}
}

func TestReplicasOfOneDeviceGiveItOnce(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.ready(gpu, 2)
	pod := r.podNamed("a", "u1")
	ids, response, err := r.Admit(r.context(), pod, gpu, 2)
	if err != nil {
		t.Fatal(err)
	}
	want := &pluginapi.ContainerAllocateResponse{
		Devices: []*pluginapi.DeviceSpec{{HostPath: "/dev/gpu0", ContainerPath: "/dev/gpu0", Permissions: "rw"}},
		Mounts:  []*pluginapi.Mount{{HostPath: "/opt/nvidia", ContainerPath: "/usr/local/nvidia", ReadOnly: true}},
		Envs:    map[string]string{"NVIDIA_VISIBLE": "[gpu0]"},
	}
	if diff := cmp.Diff(want, response, protocmp.Transform()); diff != "" || len(ids) != 2 {
		t.Errorf("%v\n%s", ids, diff)
	}
	if err := r.StartContainer(r.context(), pod, "main", gpu); err != nil {
		t.Errorf("before the start: %v", err)
	}
	if n := r.driver.grants(); n != 1 {
		t.Errorf("%d grants prepared, want the same one twice", n)
	}
	r.known("gpu0::1", "u1")
}

func TestReplicasThatAreRefused(t *testing.T) {
	r := newRigWith(t, configured(t, `sharing: {timeSlicing: {renameByDefault: true, failRequestsGreaterThanOne: true,
		resources: [{name: nvidia.com/gpu, devices: [0, 1], replicas: 2}]}}`), newFakeDriver("nvidia", gpus(3)...))
	r.Start()
	r.ready(shared, 4)
	r.ready(gpu, 1)
	for name, test := range map[string]struct {
		resource string
		ids      []string
		want     string
	}{
		"more than one":                {shared, []string{"gpu0::0", "gpu1::0"}, "a container asks for 2 replicas"},
		"the device of replicas":       {shared, []string{"gpu0"}, `"gpu0" is no device`},
		"one that is shared, as whole": {gpu, []string{"gpu0"}, `"gpu0" is no device`},
		"one that is whole, as shared": {shared, []string{"gpu2::0"}, `"gpu2::0" is no device`},
		"a replica of a whole one":     {gpu, []string{"gpu2::0"}, `"gpu2::0" is no device`},
		"too high a number":            {shared, []string{"gpu0::2"}, `"gpu0::2" is no device`},
		"another way to write it":      {shared, []string{"gpu0::01"}, `"gpu0::01" is no device`},
	} {
		_, err := r.Client(test.resource).Allocate(r.context(), &pluginapi.AllocateRequest{
			ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: test.ids}},
		})
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := r.driver.grants(); n != 0 {
		t.Errorf("%d grants for what was refused", n)
	}
	// Two containers with one each are two requests.
	_, err := r.Client(shared).Allocate(r.context(), &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{
		{DevicesIds: []string{"gpu0::0"}}, {DevicesIds: []string{"gpu0::1"}},
	}})
	if err != nil {
		t.Error(err)
	}
}

func TestForgottenReplicaIsKept(t *testing.T) {
	r := newRigWith(t, sliced(t, 2), newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.ready(gpu, 2)
	_, id := r.admit("a", "u1")
	r.Forget()
	r.registered(2)
	// The kubelet takes both for free; only the other one is.
	if _, other := r.admit("b", "u2"); other == id {
		t.Errorf("%s was given to a second Pod", other)
	}
	if _, _, err := r.Give(r.context(), r.podNamed("c", "u3"), "main", gpu, id); err == nil || !strings.Contains(err.Error(), "is held by default/a/main") {
		t.Errorf("a forgotten replica is given again: %v", err)
	}
}

func TestSettle(t *testing.T) {
	whole := config.Offer{Device: "g", Resource: gpu, Strategy: config.Whole, Replicas: 1}
	threefold := config.Offer{Device: "g", Resource: gpu, Strategy: config.TimeSlicing, Replicas: 3}
	hold := func(id, resource string) ledger.Hold { return ledger.Hold{Device: device.ID(id), Resource: resource} }
	for name, test := range map[string]struct {
		wanted config.Offer
		holds  []ledger.Hold
		want   string
	}{
		"whole and free":               {whole, nil, "nvidia.com/gpu [g] false"},
		"whole and held":               {whole, []ledger.Hold{hold("g", gpu)}, "nvidia.com/gpu [g] false"},
		"shared and free":              {threefold, nil, "nvidia.com/gpu [g::0 g::1 g::2] true"},
		"shared and held":              {threefold, []ledger.Hold{hold("g::1", gpu)}, "nvidia.com/gpu [g::0 g::1 g::2] true"},
		"to be whole":                  {whole, []ledger.Hold{hold("g::0", gpu), hold("g::2", gpu)}, "nvidia.com/gpu [g::0 g::2] true"},
		"to be shared":                 {threefold, []ledger.Hold{hold("g", gpu)}, "nvidia.com/gpu [g] false"},
		"to be renamed":                {threefold, []ledger.Hold{hold("g::0", shared)}, "nvidia.com/gpu.shared [g::0] true"},
		"to be fewer":                  {threefold, []ledger.Hold{hold("g::7", gpu)}, "nvidia.com/gpu [g::0 g::1 g::7] true"},
		"more are held than there are": {threefold, []ledger.Hold{hold("g::0", gpu), hold("g::4", gpu), hold("g::5", gpu), hold("g::6", gpu)}, "nvidia.com/gpu [g::0 g::4 g::5 g::6] true"},
		"twice in one Pod":             {whole, []ledger.Hold{hold("g::0", gpu), hold("g::0", gpu)}, "nvidia.com/gpu [g::0] true"},
		"without terms, held":          {config.Offer{}, []ledger.Hold{hold("g", gpu)}, "nvidia.com/gpu [g] false"},
		"without terms, free":          {config.Offer{}, nil, " [] true"},
	} {
		for which, got := range map[string]Offer{"held": settle(test.wanted, test.holds, nil), "pending": settle(test.wanted, nil, test.holds)} {
			if text := fmt.Sprintf("%s %v %t", got.Resource, got.IDs, got.Shared); text != test.want {
				t.Errorf("%s, %s: %s, want %s", name, which, text, test.want)
			}
		}
	}
}
