package config

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// TestRandomRules goes through configurations that people could write, most of
// them with rules that meet on some device, and holds every plan to what the
// doors rely on.
func TestRandomRules(t *testing.T) {
	nodes := [][]device.Device{gpus(1), gpus(4), mixed(), slicesOf(1, 3, "gpu", "1g.10gb")}
	random := rand.New(rand.NewPCG(1, 2))
	pick := func(words ...string) string { return words[random.IntN(len(words))] }
	entry := func(mps bool) string {
		entry := "{name: " + pick("gpu", "gpu", "gpu", "mig-1g.10gb", "big")
		entry += pick("", ", devices: all", ", devices: 1", ", devices: 2", ", devices: [0]", ", devices: [1, 2]", ", devices: [3]", ", devices: [GPU-0]", ", devices: [GPU-1, 0]", `, devices: ["1:0", MIG-2-1]`)
		if mps && random.IntN(2) == 0 {
			return entry + ", shares: [" + pick("{percent: 100, rename: all}", "{percent: 60, rename: x}, {percent: 13, replicas: 3, rename: y}", "{percent: 5, replicas: 20}") + "]}"
		}
		return entry + pick("", "", ", rename: x", ", rename: y", ", rename: example.com/z") + fmt.Sprintf(", replicas: %d}", 1+random.IntN(5))
	}
	section := func(name string) string {
		text := "  " + name + ":\n    renameByDefault: " + pick("true", "false") + "\n    resources:\n"
		for range 1 + random.IntN(2) {
			text += "    - " + entry(name == "mps") + "\n"
		}
		return text
	}
	planned, partly, refused := 0, 0, 0
	for range 1_000 {
		file := "resources: {gpus: [{pattern: \"*" + pick("H100*", "H200*") + "\", name: " + pick("gpu", "big") + "}]}\nsharing:\n"
		file += pick(section("timeSlicing"), section("mps"), section("timeSlicing")+section("mps"))
		c, _, err := Read(from(file))
		if err != nil {
			refused++
			continue
		}
		for _, devices := range nodes {
			plan, err := c.Plan(devices)
			var absent *AbsentError
			switch {
			case err == nil:
				planned++
			case errors.As(err, &absent) && len(plan.Offers) > 0:
				partly++
			case !strings.HasPrefix(err.Error(), "config.yaml:"):
				t.Fatalf("%s\nthe mistake %q has no place", file, err)
			default:
				refused++
				continue
			}
			if err := sound(plan, devices); err != nil {
				t.Fatalf("%s\n%v, in the plan\n%s", file, err, show(plan))
			}
		}
	}
	t.Logf("%d plans, %d without some devices, %d refused", planned, partly, refused)
	if planned < 300 || partly < 300 || refused < 300 {
		t.Error("too few of a kind: the test tries nothing")
	}
}

// A name means one setting.
func TestNamesAreUnique(t *testing.T) {
	seen := map[string]string{}
	for _, s := range Settings() {
		names := []string{"key " + s.Key}
		if s.Key == "" {
			names = nil
		}
		for _, flag := range s.Flags {
			names = append(names, "flag "+flag)
		}
		for _, variable := range s.Env {
			names = append(names, "variable "+variable)
		}
		for _, name := range names {
			if other, taken := seen[name]; taken {
				t.Errorf("%s is %s and %s", name, other, s.name())
			}
			seen[name] = s.name()
		}
		if len(names) == 0 {
			t.Error("a setting has no name")
		}
	}
}
