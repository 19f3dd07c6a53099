package place

import (
	"fmt"
	"math/bits"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// machine makes devices gpu-0, gpu-1, … on the given NUMA nodes.
func machine(numa ...int) []device.Device {
	devices := make([]device.Device, len(numa))
	for i := range devices {
		devices[i] = device.Device{ID: gpu(i), Index: i, NUMANode: numa[i]}
	}
	return devices
}

func gpu(i int) device.ID { return device.ID(fmt.Sprintf("gpu-%d", i)) }

func gpus(indices ...int) []device.ID {
	ids := make([]device.ID, len(indices))
	for i, index := range indices {
		ids[i] = gpu(index)
	}
	return ids
}

func idsOf(devices []device.Device) []device.ID {
	ids := make([]device.ID, len(devices))
	for i := range devices {
		ids[i] = devices[i].ID
	}
	return ids
}

// connect links every two of the members.
func connect(devices []device.Device, mbps int64, members ...int) {
	for _, i := range members {
		for _, j := range members {
			if i != j && mbps != 0 {
				link := device.Link{Peer: devices[j].ID, Kind: device.NVLink, BandwidthMBps: mbps}
				devices[i].Links = append(devices[i].Links, link)
			}
		}
	}
}

func TestPreferChooses(t *testing.T) {
	cliqueAndPair := machine(0, 0, 0, 0, 0, 0)
	connect(cliqueAndPair, 100, 0, 1, 2, 3)
	connect(cliqueAndPair, 100, 4, 5)

	twoNUMA := machine(0, 1, 0, 1)

	pairs := machine(0, 0, 0, 0)
	connect(pairs, 100, 0, 2)
	connect(pairs, 200, 1, 3)

	lanesOnly := machine(0, 0, 1)
	lanesOnly[0].Links = []device.Link{{Peer: gpu(2), Lanes: 4}}

	for _, test := range []struct {
		name      string
		devices   []device.Device
		available []device.ID
		must      []device.ID
		count     int
		want      []device.ID
	}{
		{"a pair leaves the clique whole", cliqueAndPair, idsOf(cliqueAndPair), nil, 2, gpus(4, 5)},
		{"one leaves the clique whole", cliqueAndPair, idsOf(cliqueAndPair), nil, 1, gpus(4)},
		{"three come from the clique", cliqueAndPair, idsOf(cliqueAndPair), nil, 3, gpus(0, 1, 2)},
		{"the clique serves four", cliqueAndPair, idsOf(cliqueAndPair), nil, 4, gpus(0, 1, 2, 3)},
		{"a broken clique counts by what is left of it", cliqueAndPair, gpus(0, 1, 4, 5, 3), nil, 2, gpus(4, 5)},
		{"must decides the side", cliqueAndPair, idsOf(cliqueAndPair), gpus(1), 2, gpus(0, 1)},
		{"the NUMA node decides without links", twoNUMA, idsOf(twoNUMA), nil, 2, gpus(0, 2)},
		{"must and NUMA", twoNUMA, idsOf(twoNUMA), gpus(3), 2, gpus(1, 3)},
		{"the faster pair", pairs, idsOf(pairs), nil, 2, gpus(1, 3)},
		{"a link of unknown bandwidth is better than none", lanesOnly, idsOf(lanesOnly), nil, 2, gpus(0, 2)},
		{"the order of available means nothing", pairs, gpus(3, 2, 1, 0), nil, 2, gpus(1, 3)},
		{"all", pairs, gpus(3, 2, 1, 0), nil, 4, gpus(0, 1, 2, 3)},
		{"none", pairs, gpus(3, 2), nil, 0, gpus()},
		{"only what is required", pairs, gpus(3, 2), gpus(2), 1, gpus(2)},
		{"a lost device is used last", pairs, append(gpus(0), "lost"), nil, 1, gpus(0)},
		{"a lost device is used all the same", pairs, append(gpus(0), "lost"), nil, 2, append(gpus(0), "lost")},
		{"no description at all", nil, []device.ID{"b", "a", "c"}, nil, 2, []device.ID{"a", "b"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Prefer(test.devices, test.available, test.must, test.count)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %v, want %v", got, test.want)
			}
		})
	}
}

func TestPreferRefuses(t *testing.T) {
	devices := machine(0, 0, 0)
	for _, test := range []struct {
		name            string
		devices         []device.Device
		available, must []device.ID
		count           int
		want            string
	}{
		{"too many", devices, gpus(0, 1), nil, 3, "there are not that many"},
		{"negative", devices, gpus(0, 1), nil, -1, "negative"},
		{"fewer than must", devices, gpus(0, 1), gpus(0, 1), 1, "2 devices are required already"},
		{"must is not available", devices, gpus(0, 1), gpus(2), 2, `"gpu-2" is not available`},
		{"available twice", devices, gpus(0, 0), nil, 1, `available devices name "gpu-0" twice`},
		{"must twice", devices, gpus(0, 1), gpus(1, 1), 2, `required devices name "gpu-1" twice`},
		{"device twice", append(machine(0), machine(0)...), gpus(0), nil, 1, `node's devices name "gpu-0" twice`},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := Prefer(test.devices, test.available, test.must, test.count)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, %v; want an error with %q", got, err, test.want)
			}
		})
	}
}

// TestPreferIsOptimal compares with looking at every subset, on topologies
// with many ties and with few.
func TestPreferIsOptimal(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for round := range 3000 {
		devices := randomNode(random, 1+random.IntN(12))
		available := idsOf(devices)
		if random.IntN(3) == 0 {
			// Some are in use, one is lost.
			available = append(available[:1+random.IntN(len(available))], "lost")
		}
		random.Shuffle(len(available), func(i, j int) { available[i], available[j] = available[j], available[i] })
		count := random.IntN(len(available) + 1)
		must := available[:random.IntN(1+min(count, 3))]
		got, err := Prefer(devices, available, must, count)
		if err != nil {
			t.Fatal(err)
		}
		want := exhaustive(devices, available, must, count)
		if !slices.Equal(got, want) {
			t.Fatalf("round %d: %d of %v with %v: got %v, want %v; devices %+v",
				round, count, available, must, got, want, devices)
		}
	}
}

// randomNode makes a node of n devices: arbitrary links, cliques, or a chain.
func randomNode(random *rand.Rand, n int) []device.Device {
	numa := make([]int, n)
	numaNodes := 1 + random.IntN(3)
	for i := range numa {
		numa[i] = random.IntN(numaNodes+1) - 1
	}
	devices := machine(numa...)
	for i := range devices {
		devices[i].Index = random.IntN(n)
	}
	speeds := []int64{0, 25_000, 50_000, 100_000}
	switch random.IntN(4) {
	case 0:
		for i := range n {
			for j := range i {
				connect(devices, speeds[random.IntN(4)], i, j)
			}
		}
	case 1:
		for i := range n {
			for j := range i {
				connect(devices, random.Int64N(1000), i, j)
			}
		}
	case 2:
		for from, size := 0, 0; from < n; from += size {
			size = min(n-from, 1+random.IntN(5))
			var clique []int
			for i := range size {
				clique = append(clique, from+i)
			}
			connect(devices, 50_000, clique...)
		}
	case 3:
		for i := 1; i < n; i++ {
			connect(devices, 50_000, i-1, i)
		}
	}
	return devices
}

// exhaustive is Prefer's doc comment, word for word and slow.
func exhaustive(devices []device.Device, available, must []device.ID, count int) []device.ID {
	ids := slices.Clone(available)
	slices.Sort(ids)
	find := func(id device.ID) (device.Device, bool) {
		i := slices.IndexFunc(devices, func(d device.Device) bool { return d.ID == id })
		if i < 0 {
			return device.Device{}, false
		}
		return devices[i], true
	}
	slices.SortStableFunc(ids, func(a, b device.ID) int {
		x, okX := find(a)
		y, okY := find(b)
		if !okX || !okY {
			return map[bool]int{true: 0, false: 1}[okX] - map[bool]int{true: 0, false: 1}[okY]
		}
		return x.Index - y.Index
	})
	worth := func(members []device.ID) (mbps, numa int64) {
		for i, a := range members {
			x, okX := find(a)
			for _, b := range members[:i] {
				y, okY := find(b)
				for _, link := range x.Links {
					if link.Peer == b {
						mbps += link.BandwidthMBps
					}
				}
				if okX && okY && x.NUMANode >= 0 && x.NUMANode == y.NUMANode {
					numa++
				}
			}
		}
		return mbps, numa
	}
	var best []device.ID
	var bestKey []int64
	for set := range uint(1) << len(ids) {
		if bits.OnesCount(set) != count {
			continue
		}
		var in, out []device.ID
		var order []int64
		for i, id := range ids {
			if set>>i&1 == 1 {
				in = append(in, id)
				order = append(order, int64(-i))
			} else {
				out = append(out, id)
			}
		}
		if slices.ContainsFunc(must, func(id device.ID) bool { return !slices.Contains(in, id) }) {
			continue
		}
		mbps, numa := worth(in)
		leftMbps, leftNUMA := worth(out)
		key := append([]int64{mbps, numa, leftMbps, leftNUMA}, order...)
		if bestKey == nil || slices.Compare(key, bestKey) > 0 {
			best, bestKey = in, key
		}
	}
	return best
}

func TestPreferIgnoresOrder(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		devices := randomNode(random, 24)
		available := idsOf(devices)
		count := random.IntN(len(available) + 1)
		want, err := Prefer(devices, available, nil, count)
		if err != nil {
			t.Fatal(err)
		}
		random.Shuffle(len(available), func(i, j int) { available[i], available[j] = available[j], available[i] })
		random.Shuffle(len(devices), func(i, j int) { devices[i], devices[j] = devices[j], devices[i] })
		got, err := Prefer(devices, available, nil, count)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("after shuffling: got %v, want %v", got, want)
		}
	}
}

// TestPreferCapsBandwidth shows that absurd figures neither overflow nor
// reverse the choice.
func TestPreferCapsBandwidth(t *testing.T) {
	devices := machine(0, 0, 0, 0)
	connect(devices, 1<<62, 1, 2)
	connect(devices, 1<<62, 1, 2)
	connect(devices, -5, 0, 1)
	got, err := Prefer(devices, idsOf(devices), nil, 2)
	if err != nil || !slices.Equal(got, gpus(1, 2)) {
		t.Errorf("got %v, %v", got, err)
	}
}
