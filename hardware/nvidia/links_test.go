package nvidia

import (
	"fmt"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxh100"
	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

// linked makes a GPU at a PCI address that is also its name.
func linked(address, clique string, ports ...port) gpu {
	return gpu{
		facts:  facts{uuid: address, place: place{address: address}, ports: ports},
		vitals: vitals{fabric: fabric{clique: clique}},
	}
}

func ports(n int, p port) []port {
	all := make([]port, n)
	for i := range all {
		all[i] = p
	}
	return all
}

func TestLinks(t *testing.T) {
	toSwitch := port{toSwitch: true, mbps: 25_000}
	to := func(peer string) port { return port{peer: peer, mbps: 25_000} }
	for name, test := range map[string]struct {
		gpus []gpu
		want map[string][]device.Link
	}{
		"none": {gpus: []gpu{linked("a", ""), linked("b", "")}},
		"a pair and one apart": {
			gpus: []gpu{linked("a", "", ports(4, to("b"))...), linked("b", "", ports(4, to("a"))...), linked("c", "")},
			want: map[string][]device.Link{
				"a": {{Peer: "b", Kind: device.NVLink, Lanes: 4, BandwidthMBps: 100_000}},
				"b": {{Peer: "a", Kind: device.NVLink, Lanes: 4, BandwidthMBps: 100_000}},
			},
		},
		"one end has lost a lane": {
			gpus: []gpu{linked("a", "", ports(4, to("b"))...), linked("b", "", ports(3, to("a"))...)},
			want: map[string][]device.Link{
				"a": {{Peer: "b", Kind: device.NVLink, Lanes: 3, BandwidthMBps: 75_000}},
				"b": {{Peer: "a", Kind: device.NVLink, Lanes: 3, BandwidthMBps: 75_000}},
			},
		},
		"the other end knows nothing of it": {
			gpus: []gpu{linked("a", "", to("b")), linked("b", "")},
		},
		"a port to something that is no GPU": {
			gpus: []gpu{linked("a", "", to("z"), port{mbps: 25_000}), linked("b", "", to("z"), port{mbps: 25_000})},
		},
		"over switches": {
			gpus: []gpu{linked("a", "x", ports(18, toSwitch)...), linked("b", "x", ports(17, toSwitch)...)},
			want: map[string][]device.Link{
				"a": {{Peer: "b", Kind: device.NVSwitch, Lanes: 17, BandwidthMBps: 425_000}},
				"b": {{Peer: "a", Kind: device.NVSwitch, Lanes: 17, BandwidthMBps: 425_000}},
			},
		},
		"switches of two cliques": {
			gpus: []gpu{linked("a", "x", toSwitch), linked("b", "y", toSwitch)},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := linksOf(test.gpus)
			if len(got) == 0 && len(test.want) == 0 {
				return
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Asking for links takes long on a large machine, so it must not be done with
// every look, let alone while a Pod waits.
func TestLinksAreReadOnce(t *testing.T) {
	m := newMachine(t, dgxh100.New(), h100)
	d := m.driver(t)
	w := watch(t, d)
	devices := w.first()
	for _, from := range devices {
		if len(from.Links) != 7 {
			t.Fatalf("%s has %d links, want 7", from.ID, len(from.Links))
		}
		for _, l := range from.Links {
			if want := (device.Link{Peer: l.Peer, Kind: device.NVSwitch, Lanes: 18, BandwidthMBps: 18 * 26_562}); l != want {
				t.Errorf("%s: link %+v, want %+v", from.ID, l, want)
			}
		}
	}
	// Two changes later there have been more looks than one.
	for i := range 2 {
		m.change(func() { m.gpus[i].lost = true })
		w.until(fmt.Sprintf("GPU %d as sick", i), func(now []device.Device) bool { return !now[i].Health.OK() })
	}
	if _, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{devices[5].ID}}); err != nil {
		t.Fatal(err)
	}
	m.change(func() {
		if reads := m.gpus[5].reads["links"]; reads != 19 {
			t.Errorf("the state of links was read %d times, want 19: 18 links and the end of them", reads)
		}
	})
}
