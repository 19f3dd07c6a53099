package machines

import (
	"fmt"
	"strings"
	"testing"
)

// sound is a machine that the tests spoil line by line.
const sound = `description: a test
driver: 570.86.15
cuda: 12.8
models:
  card:
    name: Card
    architecture: Paper
    computeCapability: 9.0
    memory: 80GiB
    multiprocessors: 4
devices:
  - {model: card, pci: 0000:01:00.0, numa: 0}
  - {model: card, pci: 0000:02:00.0}
  - {model: card, pci: 0000:03:00.0, numa: 1}
links:
  - kind: nvlink
    laneBandwidth: 25GB/s
    pairs: {0-1: 2}
  - {kind: nvswitch, laneBandwidth: 1.5GB/s, between: [1, 2], lanes: 3}
`

func TestParse(t *testing.T) {
	m, err := Parse("some/where/test.yaml", []byte(sound))
	if err != nil {
		t.Fatal(err)
	}
	card := Model{Name: "Card", Architecture: "Paper", ComputeCapability: "9.0", MemoryBytes: 80 << 30, Multiprocessors: 4}
	wantDevices := []Device{{card, "0000:01:00.0", 0}, {card, "0000:02:00.0", -1}, {card, "0000:03:00.0", 1}}
	for i, want := range wantDevices {
		if m.Devices[i] != want {
			t.Errorf("device %d is %+v, want %+v", i, m.Devices[i], want)
		}
	}
	wantLinks := []Link{{0, 1, "nvlink", 2, 50_000}, {1, 2, "nvswitch", 3, 4500}}
	for i, want := range wantLinks {
		if m.Links[i] != want {
			t.Errorf("link %d is %+v, want %+v", i, m.Links[i], want)
		}
	}
	if m.Name != "test" || m.Description != "a test" || m.DriverVersion != "570.86.15" || m.CUDAVersion != "12.8" {
		t.Errorf("the machine is %+v", m)
	}
}

func TestParseMistakes(t *testing.T) {
	for _, test := range []struct{ name, old, new, want string }{
		{"unknown key", "driver:", "driverVersion: 1\ndriver:", `m.yaml:2: machine: unknown key "driverVersion"; the keys are description, driver, cuda, models, devices, links`},
		{"unknown key of a model", "    name:", "    color: red\n    name:", `m.yaml:6: model card: unknown key "color"; the keys are name, architecture, computeCapability, memory, multiprocessors`},
		{"unknown key of a device", "numa: 1}", "numaNode: 1}", `m.yaml:14: device 2: unknown key "numaNode"; the keys are model, pci, numa`},
		{"unknown key of links", "    pairs:", "    color: red\n    pairs:", `m.yaml:18: link group 0: unknown key "color"; the keys are kind, laneBandwidth, between, lanes, pairs`},
		{"missing key", "driver: 570.86.15\n", "", `m.yaml:1: machine: the key "driver" is missing`},
		{"missing key of a model", "    memory: 80GiB\n", "", `m.yaml:6: model card: the key "memory" is missing`},
		{"missing key of a device", "pci: 0000:02:00.0", "", `m.yaml:13: device 1: the key "pci" is missing`},
		{"key twice", "cuda: 12.8", "cuda: 12.8\ncuda: 12.8", `m.yaml:4: machine: "cuda" is there twice`},
		{"bad version", "570.86.15", "newest", `m.yaml:2: machine: driver: "newest" is not a version such as 570.86.15`},
		{"empty value", "driver: 570.86.15", "driver:", `m.yaml:2: machine: driver: wanted a text, found nothing`},
		{"text of two lines", "a test", `"a\nb"`, `m.yaml:1: machine: description: wanted a text of one line, found "a\nb"`},
		{"blank text", "a test", `" "`, `m.yaml:1: machine: description: wanted a text of one line, found " "`},
		{"list for a text", "a test", "[a, test]", `m.yaml:1: machine: description: wanted a text, found a list`},
		{"text for a list", "    pairs: {0-1: 2}", "    pairs: none", `m.yaml:18: link group 0: pairs: wanted keys and values, found "none"`},
		{"bad compute capability", "9.0", "nine", `m.yaml:8: model card: computeCapability: "nine" is not a version such as 9.0`},
		{"memory without a unit", "80GiB", "80", `m.yaml:9: model card: memory: "80" is not an amount of memory such as 80GiB or 81559MiB`},
		{"memory with another unit", "80GiB", "80GB", `m.yaml:9: model card: memory: "80GB" is not an amount of memory such as 80GiB or 81559MiB`},
		{"no memory", "80GiB", "0GiB", `m.yaml:9: model card: memory: "0GiB" is not an amount of memory such as 80GiB or 81559MiB`},
		{"more memory than there is", "80GiB", "999999999999GiB", `m.yaml:9: model card: memory: "999999999999GiB" is not an amount of memory such as 80GiB or 81559MiB`},
		{"text for a number", "multiprocessors: 4", "multiprocessors: four", `m.yaml:10: model card: multiprocessors: wanted a whole number, found "four"`},
		{"fraction for a number", "multiprocessors: 4", "multiprocessors: 4.5", `m.yaml:10: model card: multiprocessors: wanted a whole number, found "4.5"`},
		{"zero", "multiprocessors: 4", "multiprocessors: 0", `m.yaml:10: model card: multiprocessors: 0 is not a number from 1 to 1048576`},
		{"huge number", "multiprocessors: 4", "multiprocessors: 99999999999999999999", `m.yaml:10: model card: multiprocessors: wanted a whole number, found "99999999999999999999"`},
		{"model not defined", "model: card, pci: 0000:02:00.0", "model: cart, pci: 0000:02:00.0", `m.yaml:13: device 1: model "cart" is not defined; defined are card`},
		{"bad PCI address", "0000:02:00.0", "02:00.0", `m.yaml:13: device 1: pci: "02:00.0" is not a PCI address in the kernel's form, such as 0000:3b:00.0`},
		{"PCI address of the vendor's tool", "0000:02:00.0", "00000000:02:00.0", `m.yaml:13: device 1: pci: "00000000:02:00.0" is not a PCI address in the kernel's form, such as 0000:3b:00.0`},
		{"PCI address twice", "0000:02:00.0", "0000:01:00.0", `m.yaml:13: device 1: device 0 already has the PCI address 0000:01:00.0`},
		{"negative NUMA node", "numa: 1", "numa: -1", `m.yaml:14: device 2: numa: -1 is not a number from 0 to 1023`},
		{"device is a text", "{model: card, pci: 0000:02:00.0}", "card", `m.yaml:13: device 1: wanted keys and values, found "card"`},
		{"link to nowhere", "0-1: 2", "0-3: 2", `m.yaml:18: link group 0: there is no device 3; they are numbered from 0 to 2`},
		{"link to itself", "0-1: 2", "1-1: 2", `m.yaml:18: link group 0: device 1 is linked to itself`},
		{"link twice", "0-1: 2", "0-1: 2, 1-0: 2", `m.yaml:18: link group 0: devices 0 and 1 are linked twice`},
		{"link twice in two groups", "0-1: 2", "2-1: 2", `m.yaml:19: link group 1: devices 1 and 2 are linked twice`},
		{"same pair twice", "0-1: 2", "0-1: 2, 0-1: 2", `m.yaml:18: link group 0: pairs: "0-1" is there twice`},
		{"pair of three", "0-1: 2", "0-1-2: 2", `m.yaml:18: link group 0: pairs: "0-1-2" is not two devices such as 0-3`},
		{"no lanes", "0-1: 2", "0-1: 0", `m.yaml:18: link group 0: pairs: 0-1: 0 is not a number from 1 to 1024`},
		{"unknown kind", "kind: nvlink", "kind: infiniband", `m.yaml:16: link group 0: kind: "infiniband" is neither nvlink nor nvswitch`},
		{"bad speed", "25GB/s", "25Gbit", `m.yaml:17: link group 0: laneBandwidth: "25Gbit" is not a speed such as 25GB/s or 14062.5MB/s`},
		{"pairs of a switch", "between: [1, 2], lanes: 3", "pairs: {1-2: 3}", `m.yaml:19: link group 1: a switch links all of its devices, so it has "between", not "pairs"`},
		{"neither between nor pairs", ", between: [1, 2], lanes: 3", "", `m.yaml:19: link group 1: it has either the key "between" or the key "pairs"`},
		{"between without lanes", ", lanes: 3", "", `m.yaml:19: link group 1: the key "lanes" is missing`},
		{"lanes with pairs", "    pairs:", "    lanes: 2\n    pairs:", `m.yaml:18: link group 0: lanes go with "between"; each of the pairs has its own number`},
		{"between one", "between: [1, 2]", "between: [1]", `m.yaml:19: link group 1: between: it takes two devices to make a link`},
		{"between the same", "between: [1, 2]", "between: [2, 2]", `m.yaml:19: link group 1: device 2 is linked to itself`},
		{"between what", "between: [1, 2]", "between: some", `m.yaml:19: link group 1: between: wanted all or a list of devices, found "some"`},
		{"between words", "between: [1, 2]", "between: [1, two]", `m.yaml:19: link group 1: between: wanted a whole number, found "two"`},
		{"alias", "a test", "*test", `m.yaml:1: not valid YAML: unknown anchor 'test' referenced`},
		{"anchor and alias", "cuda: 12.8", "cuda: &v 12.8\nlinks: *v", `m.yaml:4: links: wanted a list, found the alias *v, which is not supported
m.yaml:16: machine: "links" is there twice`},
		{"second document", "description:", "---\na: b\n---\ndescription:", `m.yaml:3: a second document begins here; a file holds one machine`},
		{"open bracket", "    pairs: {0-1: 2}", "    pairs: {0-1: 2", `m.yaml:18: not valid YAML: did not find expected ',' or '}'`},
		{"bad indentation", "cuda: 12.8", "   cuda: 12.8", `m.yaml:3: not valid YAML: mapping values are not allowed in this context`},
		{"list in a mapping", "    name: Card", "    - name: Card", `m.yaml:6: not valid YAML: did not find expected '-' indicator`},
		{"tab", "  card:", "\tcard:", `m.yaml:5: not valid YAML: found character that cannot start any token`},
		{"bad first line", "description: a test", "description: a: test", `m.yaml:1: not valid YAML: mapping values are not allowed in this context`},
		{"no UTF-8", "a test", "\xff", `m.yaml:1: not valid YAML: invalid leading UTF-8 octet`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Count(sound, test.old) == 0 {
				t.Fatalf("%q is not in the machine", test.old)
			}
			expectMistakes(t, strings.Replace(sound, test.old, test.new, 1), test.want)
		})
	}
}

func TestParseWholeFiles(t *testing.T) {
	withoutDevices := sound[:strings.Index(sound, "  - {model")]
	withoutDevices = strings.Replace(withoutDevices, "devices:", "devices: []", 1)
	for _, test := range []struct{ name, file, want string }{
		{"empty", "", "m.yaml:1: the file is empty"},
		{"comment", "# nothing\n", "m.yaml:1: the file is empty"},
		{"null", "null", "m.yaml:1: machine: wanted keys and values, found nothing"},
		{"text", "h100x8", `m.yaml:1: machine: wanted keys and values, found "h100x8"`},
		{"no devices", withoutDevices, "m.yaml:11: devices: the list is empty"},
		{"several mistakes", `driver: 570.86.15
cuda: 12.8
models: {card: {name: Card, architecture: Paper, computeCapability: 9, memory: lots, multiprocessors: 4}}
devices:
  - {model: card, pci: nowhere}
  - {model: card, pci: 0000:02:00.0}
links:
  - {kind: nvlink, laneBandwidth: 25GB/s, pairs: {0-0: 1, 0-9: 1}}
color: red
`, `m.yaml:1: machine: the key "description" is missing
m.yaml:3: model card: computeCapability: "9" is not a version such as 9.0
m.yaml:3: model card: memory: "lots" is not an amount of memory such as 80GiB or 81559MiB
m.yaml:5: device 0: pci: "nowhere" is not a PCI address in the kernel's form, such as 0000:3b:00.0
m.yaml:8: link group 0: device 0 is linked to itself
m.yaml:8: link group 0: there is no device 9; they are numbered from 0 to 1
m.yaml:9: machine: unknown key "color"; the keys are description, driver, cuda, models, devices, links`},
	} {
		t.Run(test.name, func(t *testing.T) {
			expectMistakes(t, test.file, test.want)
		})
	}
}

func TestParseLimitsTheDevices(t *testing.T) {
	head, tail, _ := strings.Cut(sound, "  - {model: card, pci: 0000:01:00.0, numa: 0}\n")
	_, tail, _ = strings.Cut(tail, "links:")
	var devices strings.Builder
	for i := range maxDevices {
		fmt.Fprintf(&devices, "  - {model: card, pci: 0000:%02x:00.0}\n", i)
	}
	if _, err := Parse("m.yaml", []byte(head+devices.String()+"links:"+tail)); err != nil {
		t.Errorf("%d devices: %v", maxDevices, err)
	}
	devices.WriteString("  - {model: card, pci: 0000:ff:00.0}\n")
	expectMistakes(t, head+devices.String()+"links:"+tail, "m.yaml:76: devices: a machine has 64 of them at most")
}

func expectMistakes(t *testing.T, file, want string) {
	t.Helper()
	m, err := Parse("m.yaml", []byte(file))
	if err == nil {
		t.Fatalf("accepted as %+v", m)
	}
	if err.Error() != want {
		t.Errorf("got  %s\nwant %s", err, want)
	}
	if m.Devices != nil || m.Name != "" {
		t.Errorf("a machine came with the error: %+v", m)
	}
}
