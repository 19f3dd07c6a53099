package machines

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/conformance"
)

func load(t *testing.T, name string) Machine {
	t.Helper()
	m, err := Load(name)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestRecordedMachines(t *testing.T) {
	const mib = 1 << 20
	for _, test := range []struct {
		name    string
		devices []string // model, MiB, multiprocessors, compute capability, NUMA node
		links   int
	}{
		{"a40x4", []string{
			"NVIDIA A40 46068 84 8.6 0", "NVIDIA A40 46068 84 8.6 0",
			"NVIDIA A40 46068 84 8.6 1", "NVIDIA A40 46068 84 8.6 1",
		}, 2},
		{"h100x8", slices.Concat(
			slices.Repeat([]string{"NVIDIA H100 80GB HBM3 81559 132 9.0 0"}, 4),
			slices.Repeat([]string{"NVIDIA H100 80GB HBM3 81559 132 9.0 1"}, 4),
		), 28},
		{"mixed", []string{
			"NVIDIA A100 80GB PCIe 81920 108 8.0 0", "NVIDIA L40S 46068 142 8.9 0",
			"Tesla T4 15360 40 7.5 1", "Tesla T4 15360 40 7.5 1",
		}, 0},
		{"t4x2", []string{"Tesla T4 15360 40 7.5 0", "Tesla T4 15360 40 7.5 0"}, 0},
		{"v100x8", slices.Concat(
			slices.Repeat([]string{"Tesla V100-SXM2-32GB 32768 80 7.0 0"}, 4),
			slices.Repeat([]string{"Tesla V100-SXM2-32GB 32768 80 7.0 1"}, 4),
		), 16},
	} {
		t.Run(test.name, func(t *testing.T) {
			m := load(t, test.name)
			var got []string
			for _, d := range m.Devices {
				got = append(got, fmt.Sprint(d.Model.Name, " ", d.Model.MemoryBytes/mib, " ", d.Model.Multiprocessors,
					" ", d.Model.ComputeCapability, " ", d.NUMANode))
			}
			if !slices.Equal(got, test.devices) {
				t.Errorf("devices are %q, want %q", got, test.devices)
			}
			if len(m.Links) != test.links {
				t.Errorf("%d links, want %d", len(m.Links), test.links)
			}
			if m.Name != test.name || m.Description == "" {
				t.Errorf("it is called %q, %q", m.Name, m.Description)
			}
		})
	}
	if want := []string{"a40x4", "h100x8", "mixed", "t4x2", "v100x8"}; !slices.Equal(Names(), want) {
		t.Errorf("names are %v, want %v", Names(), want)
	}
}

// TestLinkMatrix compares with the matrix that the vendor's tool prints.
func TestLinkMatrix(t *testing.T) {
	for name, want := range map[string]string{
		"v100x8": `
			X NV1 NV1 NV2 NV2 SYS SYS SYS
			NV1 X NV2 NV1 SYS NV2 SYS SYS
			NV1 NV2 X NV2 SYS SYS NV1 SYS
			NV2 NV1 NV2 X SYS SYS SYS NV1
			NV2 SYS SYS SYS X NV1 NV1 NV2
			SYS NV2 SYS SYS NV1 X NV2 NV1
			SYS SYS NV1 SYS NV1 NV2 X NV2
			SYS SYS SYS NV1 NV2 NV1 NV2 X`,
		"a40x4": `
			X NV4 SYS SYS
			NV4 X SYS SYS
			SYS SYS X NV4
			SYS SYS NV4 X`,
	} {
		devices := load(t, name).On("n")
		var rows []string
		for _, from := range devices {
			var row []string
			for _, to := range devices {
				cell := "SYS"
				if from.ID == to.ID {
					cell = "X"
				}
				for _, l := range from.Links {
					if l.Peer == to.ID {
						cell = fmt.Sprintf("NV%d", l.Lanes)
					}
				}
				row = append(row, cell)
			}
			rows = append(rows, strings.Join(row, " "))
		}
		if got := strings.Join(rows, "\n"); got != strings.ReplaceAll(strings.TrimSpace(want), "\t", "") {
			t.Errorf("%s: the matrix is\n%s", name, got)
		}
	}
}

func TestLinkBandwidth(t *testing.T) {
	for name, want := range map[string]device.Link{
		"h100x8": {Kind: device.NVSwitch, Lanes: 18, BandwidthMBps: 450_000},
		"v100x8": {Kind: device.NVLink, Lanes: 1, BandwidthMBps: 25_000},
		"a40x4":  {Kind: device.NVLink, Lanes: 4, BandwidthMBps: 56_250},
	} {
		got := load(t, name).On("n")[0].Links[0]
		got.Peer = ""
		if got != want {
			t.Errorf("%s: the first link is %+v, want %+v", name, got, want)
		}
	}
}

func TestOn(t *testing.T) {
	form := regexp.MustCompile(`^GPU-[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$`)
	seen := map[device.ID]string{}
	for _, name := range Names() {
		m := load(t, name)
		for _, node := range []string{"node-a", "node-b", ""} {
			devices := m.On(node)
			if err := conformance.Devices(devices); err != nil {
				t.Errorf("%s on %s: %v", name, node, err)
			}
			for i, d := range devices {
				where := fmt.Sprintf("%s %d on %q", name, i, node)
				if other, taken := seen[d.ID]; taken {
					t.Errorf("%s and %s have the id %s", where, other, d.ID)
				}
				seen[d.ID] = where
				if !form.MatchString(string(d.ID)) {
					t.Errorf("%s: the id %s does not look like a GPU's", where, d.ID)
				}
				if d.ID != m.On(node)[i].ID {
					t.Errorf("%s: the id is not the same twice", where)
				}
			}
		}
	}
	// The ids are kept by people and by files: they must not change between
	// versions of Kilter either.
	if got, want := load(t, "t4x2").On("node-a")[0].ID, device.ID("GPU-ee917eb7-a456-c2d4-093e-8ccfac6fca42"); got != want {
		t.Errorf("the first T4 of node-a is %s, want %s", got, want)
	}
}

func TestLoad(t *testing.T) {
	own := filepath.Join(t.TempDir(), "own.yaml")
	data, err := recorded.ReadFile("t4x2.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(own, data, 0o600); err != nil {
		t.Fatal(err)
	}
	if m := load(t, own); m.Name != "own" || len(m.Devices) != 2 {
		t.Errorf("the file gives %+v", m)
	}

	for name, says := range map[string]string{
		"b200x8":          `there is no machine "b200x8": it is one of a40x4, h100x8, mixed, t4x2, v100x8, or the path of a .yaml file`,
		"":                `there is no machine ""`,
		"absent.yaml":     "read the machine: open absent.yaml: no such file",
		t.TempDir() + "/": "read the machine: ",
	} {
		if _, err := Load(name); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("Load(%q) says %v, want %q", name, err, says)
		}
	}
}
