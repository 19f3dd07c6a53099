package deviceplugin

import (
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"

	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/node/deviceplugin/kubelettest"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
	"github.com/kilter-dev/kilter/place"
)

// newService is a service without sockets around it, with the devices gpu0 to
// gpu7 of which gpu6 is sick. Nobody holds anything.
func newService(tb testing.TB) *service {
	tb.Helper()
	devices := gpus(8)
	devices[6].Health.State = "Unhealthy"
	driver := newFakeDriver("nvidia", devices...)
	logger := slog.New(slog.NewTextHandler(io.Discard, nil))
	folder, err := os.MkdirTemp("", "kilter")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = os.RemoveAll(folder) })
	kubelet := kubelettest.New(tb, folder)
	kubelet.Start()
	g := &giver{
		inventory: inventory.New([]hardware.Driver{driver}, logger),
		ledger: ledger.New(ledger.Config{
			File: filepath.Join(folder, "ledger.json"), Kubelet: NewPodResources(kubelet.PodResourcesSocket), Pods: kubelettest.NewAPI(),
			Ours: func(string) bool { return true }, Logger: logger,
		}),
		preferred: place.Prefer,
		logger:    logger,
	}
	changed := g.inventory.Changed()
	go func() { _ = g.inventory.Run(tb.Context()) }()
	<-changed
	return &service{plugin: newPlugin(gpu, g, logger)}
}

func known(id string) bool {
	return len(id) == 4 && strings.HasPrefix(id, "gpu") && id[3] >= '0' && id[3] <= '7'
}

// FuzzAllocate asks for anything at all. What is given is what was asked for,
// of this node, well, and each once.
func FuzzAllocate(f *testing.F) {
	for _, seed := range []string{"gpu0", "gpu0,gpu1|gpu2", "gpu6", "gpu9", "", ",", "|", "gpu0|gpu0", "\x00,gpu1", "GPU0"} {
		f.Add(seed)
	}
	s := newService(f)
	f.Fuzz(func(t *testing.T, text string) {
		request := &pluginapi.AllocateRequest{}
		var asked []string
		for _, container := range strings.Split(text, "|") {
			ids := strings.Split(container, ",")
			asked = append(asked, ids...)
			request.ContainerRequests = append(request.ContainerRequests, &pluginapi.ContainerAllocateRequest{DevicesIds: ids})
		}
		response, err := s.Allocate(t.Context(), request)
		good := !slices.ContainsFunc(asked, func(id string) bool { return !known(id) || id == "gpu6" }) &&
			len(slices.Compact(slices.Sorted(slices.Values(asked)))) == len(asked)
		if good != (err == nil) {
			t.Fatalf("asked for %q: %v, %v", text, response, err)
		}
		if err != nil {
			return
		}
		var nodes []string
		for _, container := range response.GetContainerResponses() {
			for _, d := range container.GetDevices() {
				nodes = append(nodes, strings.TrimPrefix(d.GetHostPath(), "/dev/"))
			}
		}
		slices.Sort(asked)
		slices.Sort(nodes)
		if !slices.Equal(asked, nodes) {
			t.Fatalf("asked for %v, given %v", asked, nodes)
		}
	})
}

// FuzzAllocateReplicas asks for anything at all where every device has two
// replicas. Each container is given the devices of its replicas, each once.
func FuzzAllocateReplicas(f *testing.F) {
	for _, seed := range []string{"gpu0::0", "gpu0::0,gpu0::1|gpu2::1", "gpu0::0|gpu0::1", "gpu6::0", "gpu0", "gpu0::2", "gpu0::00", "::0", "gpu0::0::0", "gpu0::0|gpu0::0"} {
		f.Add(seed)
	}
	s := newService(f)
	var err error
	if s.giver.terms, err = terms.New(*sliced(f, 2), s.logger); err != nil {
		f.Fatal(err)
	}
	s.giver.terms.Look(s.giver.inventory.Snapshot())
	f.Fuzz(func(t *testing.T, text string) {
		request := &pluginapi.AllocateRequest{}
		var asked []string
		var want []string
		for _, container := range strings.Split(text, "|") {
			ids := strings.Split(container, ",")
			asked = append(asked, ids...)
			request.ContainerRequests = append(request.ContainerRequests, &pluginapi.ContainerAllocateRequest{DevicesIds: ids})
			var devices []string
			for _, id := range ids {
				of, _, _ := strings.Cut(id, "::")
				devices = append(devices, "/dev/"+of)
			}
			slices.Sort(devices)
			want = append(want, strings.Join(slices.Compact(devices), " "))
		}
		response, err := s.Allocate(t.Context(), request)
		good := len(slices.Compact(slices.Sorted(slices.Values(asked)))) == len(asked)
		for _, id := range asked {
			of, number, _ := strings.Cut(id, "::")
			good = good && known(of) && of != "gpu6" && (number == "0" || number == "1")
		}
		if good != (err == nil) {
			t.Fatalf("asked for %q: %v, %v", text, response, err)
		}
		for i, container := range response.GetContainerResponses() {
			var nodes []string
			for _, d := range container.GetDevices() {
				nodes = append(nodes, d.GetHostPath())
			}
			if got := strings.Join(nodes, " "); got != want[i] {
				t.Fatalf("asked for %q, container %d is given %s, want %s", text, i, got, want[i])
			}
		}
	})
}

// FuzzPreferredAllocation asks for a choice out of anything at all.
func FuzzPreferredAllocation(f *testing.F) {
	f.Add("gpu0,gpu1,gpu2", "", 2)
	f.Add("gpu0,gpu1", "gpu1", 1)
	f.Add("gpu0,gpu0,gpu9", "gpu9", -1)
	f.Add("", "gpu3", 1)
	f.Add("gpu1", "", 1<<31-1)
	f.Add("gpu6,gpu5", "", 1)
	s := newService(f)
	f.Fuzz(func(t *testing.T, available, must string, size int) {
		split := func(text string) []string {
			if text == "" {
				return nil
			}
			return strings.Split(text, ",")
		}
		response, err := s.GetPreferredAllocation(t.Context(), &pluginapi.PreferredAllocationRequest{
			ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{
				AvailableDeviceIDs: split(available), MustIncludeDeviceIDs: split(must), AllocationSize: int32(size),
			}},
		})
		if err != nil {
			return
		}
		chosen := response.GetContainerResponses()[0].GetDeviceIDs()
		if len(chosen) != int(int32(size)) {
			t.Fatalf("asked for %d, chosen %v", int32(size), chosen)
		}
		for _, id := range chosen {
			if !known(id) || !slices.Contains(append(split(available), split(must)...), id) {
				t.Fatalf("chosen %q out of %q and %q", id, available, must)
			}
		}
		for _, id := range split(must) {
			if !slices.Contains(chosen, id) {
				t.Fatalf("%q must be chosen; chosen %v", id, chosen)
			}
		}
	})
}

// BenchmarkAllocate measures a call over the socket, the kubelet's way, and
// reports the time that 99 of 100 calls stay below.
func BenchmarkAllocate(b *testing.B) {
	r := newRig(b, newFakeDriver("nvidia", gpus(8)...))
	r.Start()
	r.ready(gpu, 8)
	client := r.Client(gpu)
	request := &pluginapi.AllocateRequest{ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{"gpu3", "gpu4"}}}}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if _, err := client.Allocate(b.Context(), request); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	b.StopTimer()
	slices.Sort(took)
	p99 := took[len(took)*99/100]
	b.ReportMetric(float64(p99.Microseconds())/1000, "p99-ms")
	if p99 > 5*time.Millisecond {
		b.Errorf("p99 of %d calls is %v, want 5 ms or less", len(took), p99)
	}
}
