package machines

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware/conformance"
)

func FuzzParse(f *testing.F) {
	f.Add(sound)
	for _, name := range Names() {
		data, err := recorded.ReadFile(name + suffix)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data))
	}
	mistakeForm := regexp.MustCompile(`^m\.yaml:([0-9]+): .`)
	f.Fuzz(func(t *testing.T, file string) {
		m, err := Parse("m.yaml", []byte(file))
		if err == nil {
			if err := invariants(m); err != nil {
				t.Errorf("accepted, though %v: %+v", err, m)
			}
			if err := conformance.Devices(m.On("node")); err != nil {
				t.Errorf("accepted, though a driver may not report it: %v", err)
			}
			return
		}
		for line := range strings.SplitSeq(err.Error(), "\n") {
			parts := mistakeForm.FindStringSubmatch(line)
			if parts == nil {
				t.Fatalf("the mistake %q has no place", line)
			}
			// YAML knows more line breaks than \n: \r, and three of Unicode's.
			breaks := len(regexp.MustCompile("\r\n|[\r\n\u0085\u2028\u2029]").FindAllString(file, -1))
			if at, _ := strconv.Atoi(parts[1]); at < 1 || at > breaks+2 {
				t.Errorf("the mistake %q is not within the %d lines of the file", line, breaks+1)
			}
		}
	})
}

// invariants is what the rooms that use a machine rely on.
func invariants(m Machine) error {
	if len(m.Devices) < 1 || len(m.Devices) > maxDevices {
		return fmt.Errorf("it has %d devices", len(m.Devices))
	}
	if m.Name == "" || m.Description == "" || m.DriverVersion == "" || m.CUDAVersion == "" {
		return fmt.Errorf("something is not named")
	}
	addresses := map[string]bool{}
	for i, d := range m.Devices {
		if addresses[d.PCIAddress] {
			return fmt.Errorf("address %s is there twice", d.PCIAddress)
		}
		addresses[d.PCIAddress] = true
		if d.NUMANode < device.UnknownNUMANode {
			return fmt.Errorf("device %d has the NUMA node %d", i, d.NUMANode)
		}
		if d.Model.Name == "" || d.Model.Architecture == "" || d.Model.ComputeCapability == "" ||
			d.Model.MemoryBytes <= 0 || d.Model.Multiprocessors <= 0 {
			return fmt.Errorf("device %d has the model %+v", i, d.Model)
		}
	}
	linked := map[[2]int]bool{}
	for _, l := range m.Links {
		pair := [2]int{l.A, l.B}
		if l.A < 0 || l.A >= l.B || l.B >= len(m.Devices) || linked[pair] {
			return fmt.Errorf("link %+v can not be", l)
		}
		if l.Lanes < 1 || l.BandwidthMBps < 0 || l.Kind != device.NVLink && l.Kind != device.NVSwitch {
			return fmt.Errorf("link %+v is unsound", l)
		}
		linked[pair] = true
	}
	return nil
}
