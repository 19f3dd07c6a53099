package place

import (
	"testing"

	"github.com/kilter-dev/kilter/device"
)

func TestExplain(t *testing.T) {
	tiny := gpuNode("a", 2)
	tiny.Devices[0].Taken = Amount{60, 700}
	tiny.Devices[1].Taken = Amount{70, 100}
	sick := gpuNode("a", 2)
	sick.Devices[1].Health = device.Health{State: device.Unhealthy}
	pairs := gpuNode("a", 4)
	link := func(i, j int) {
		pairs.Devices[i].Links = append(pairs.Devices[i].Links, device.Link{Peer: gpu(j), BandwidthMBps: 1})
		pairs.Devices[j].Links = append(pairs.Devices[j].Links, device.Link{Peer: gpu(i), BandwidthMBps: 1})
	}
	link(0, 1)
	link(2, 3)
	plain := Node{Name: "a", Host: Host{CPUMilli: 500, MemoryBytes: 3 << 30, Pods: 0}}
	h100 := Selector{Name: `model == "H100"`, Match: func(d device.Device) bool { return d.Model == "H100" }}

	for _, test := range []struct {
		node    Node
		request Request
		want    string
	}{
		{gpuNode("a", 2), wholeDevices(2), ""},
		{plain, wholeDevices(1), "the node has no devices"},
		{gpuNode("a", 2), Request{Groups: []Group{{Count: 1, Selector: h100}}}, `none of the 2 devices matches model == "H100"`},
		{gpuNode("a", 2), wholeDevices(4), "2 devices will do, 4 asked for: 2 short"},
		{sick, wholeDevices(2), "1 of 2 devices are healthy, 2 asked for: 1 short"},
		{tiny, wholeDevices(1), "0 of 2 devices are unused, 1 asked for: 1 short"},
		{tiny, Request{Groups: []Group{{Count: 1, Each: Amount{MemoryBytes: 200}}}},
			"0 of 2 devices are large enough for 200B, 1 asked for"},
		{tiny, Request{Groups: []Group{{Count: 1, Each: Amount{30, 100}}}},
			"at most 20B of a device's memory are free, 30B asked for: 10B short"},
		{tiny, Request{Groups: []Group{{Count: 1, Each: Amount{1, 955}}}},
			"at most 90 % of a device's compute are free, 95.5 % asked for: 5.5 % short"},
		{tiny, Request{Groups: []Group{{Count: 1, Each: Amount{20, 400}}}},
			"no single device has 20B and 40 % of compute free"},
		{tiny, Request{Groups: []Group{{Count: 2, Each: Amount{MemoryBytes: 15}}}},
			"1 of 2 devices have room for 15B, 2 asked for: 1 short"},
		{pairs, Request{Groups: []Group{{Count: 3, Links: LinksRequired}}},
			"no 3 of the 4 devices that are free are all linked to each other"},
		{gpuNode("a", 2), Request{Groups: []Group{{Name: "first", Count: 2}, {Name: "second", Count: 1}}},
			"each group of devices is there, but not all of them together"},
		{gpuNode("a", 2), Request{Groups: []Group{{Name: "first", Count: 1}, {Name: "second", Count: 3}}},
			"second: 2 devices will do, 3 asked for: 1 short"},
		{plain, Request{Host: Host{CPUMilli: 2000}}, "0.5 of CPU are free, 2 asked for: 1.5 short"},
		{plain, Request{Host: Host{MemoryBytes: 4 << 30}}, "3Gi of memory are free, 4Gi asked for: 1Gi short"},
		{plain, Request{Host: Host{Pods: 1}}, "the node has as many Pods as it can have"},
	} {
		reasons, err := newTestCluster(t, test.node).Explain(test.request)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		if len(reasons) > 0 {
			got = reasons[0].Text
		}
		if got != test.want || len(reasons) > 1 {
			t.Errorf("%+v: got %v, want %q", test.request, reasons, test.want)
		}
	}
}

func TestExplainGroupsNodes(t *testing.T) {
	c := newTestCluster(t, gpuNode("b", 1), gpuNode("a", 1), gpuNode("c", 2), gpuNode("d", 4))
	reasons, err := c.Explain(wholeDevices(4))
	if err != nil {
		t.Fatal(err)
	}
	if len(reasons) != 2 || len(reasons[0].Nodes) != 2 || reasons[0].Nodes[0] != "a" || reasons[1].Nodes[0] != "c" {
		t.Errorf("got %v", reasons)
	}
}
