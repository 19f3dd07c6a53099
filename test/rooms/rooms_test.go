// Package rooms keeps the architecture: it fails when a room imports what it
// may not. ARCHITECTURE.md has the map.
package rooms

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/kilter-dev/kilter/"

// rule says what the packages of a room may import beside the standard
// library. A room is a folder with everything below it; the most exact name
// counts.
type rule struct {
	room string
	why  string
	// may are prefixes of import paths; a room may always import itself.
	may []string
}

var kubernetes = []string{"k8s.io/", "sigs.k8s.io/"}

var rules = []rule{
	{"device", "the vocabulary stands on nothing", nil},
	{"place", "decisions are pure: no Kubernetes, files, clocks or vendors", []string{module + "device"}},
	{"hardware", "the contract of all drivers knows none of them", []string{module + "device"}},
	{"hardware/conformance", "the suite knows the contract only", []string{module + "device", module + "hardware"}},
	{"hardware/simulated", "a driver knows devices, not Kubernetes", []string{module + "device", module + "hardware", module + "machines", "golang.org/x/sys/"}},
	{"hardware/nvidia", "a driver knows devices and its vendor's library", []string{module + "device", module + "hardware", "github.com/NVIDIA/", "golang.org/x/sys/"}},
	{"internal/strictyaml", "reading files knows nothing of what is in them", []string{"go.yaml.in/yaml/"}},
	{"machines", "recordings are data", []string{module + "device", module + "internal/strictyaml", "go.yaml.in/yaml/"}},
	{"kube", "Kubernetes' types are converted here", append([]string{module + "device", module + "internal/strictyaml", "go.yaml.in/yaml/"}, kubernetes...)},
	{"node", "the agent leaves Kubernetes to its doors", []string{module + "device", module + "hardware", module + "kube", module + "node", "golang.org/x/"}},
	{"node/deviceplugin", "the first door speaks the kubelet's protocol", append([]string{module + "device", module + "hardware", module + "kube", module + "node", "google.golang.org/", "github.com/fsnotify/", "golang.org/x/"}, kubernetes...)},
	{"deploy", "manifests are data", nil},
	{"cli", "what people look at knows no concrete hardware", append([]string{module, "github.com/spf13/", "golang.org/x/"}, kubernetes...)},
	{"cmd", "wiring knows everything", []string{""}},
	{"test", "tests know everything", []string{""}},
}

// Only these know a concrete driver: everybody else works with all of them.
var mayKnowDrivers = []string{"cmd", "test", "hardware"}

func TestRoomsImportWhatTheyMay(t *testing.T) {
	for room, imports := range list(t, "{{.ImportPath}} {{join .Imports \" \"}}") {
		rule, ok := ruleFor(room)
		if !ok {
			t.Errorf("%s is in no room: add a rule for it", room)
			continue
		}
		for _, path := range imports {
			if !allowed(rule, path) {
				t.Errorf("%s imports %s: %s", room, path, rule.why)
			}
			if driver, ok := concreteDriver(path); ok && !slices.Contains(mayKnowDrivers, strings.SplitN(room, "/", 2)[0]) {
				t.Errorf("%s imports the driver %s: only cmd and tests choose drivers", room, driver)
			}
			if path == "k8s.io/apimachinery/pkg/api/resource" && rule.room != "kube" && rule.room != "test" {
				t.Errorf("%s imports %s: Kubernetes' quantities stop at kube", room, path)
			}
		}
	}
}

// list runs go list over the module and splits each line.
func list(t *testing.T, format string) map[string][]string {
	t.Helper()
	cmd := exec.Command("go", "list", "-f", format, module+"...")
	cmd.Dir = "../.."
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	packages := map[string][]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		packages[strings.TrimPrefix(fields[0], module)] = fields[1:]
	}
	if len(packages) < 10 {
		t.Fatalf("go list found %d packages only", len(packages))
	}
	return packages
}

func ruleFor(room string) (rule, bool) {
	var best rule
	found := false
	for _, r := range rules {
		if (room == r.room || strings.HasPrefix(room, r.room+"/")) && len(r.room) >= len(best.room) {
			best, found = r, true
		}
	}
	return best, found
}

func allowed(r rule, path string) bool {
	isStandard := !strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
	if isStandard || path == "C" || path == module+r.room || strings.HasPrefix(path, module+r.room+"/") {
		return true
	}
	return slices.ContainsFunc(r.may, func(prefix string) bool {
		// A room that is named is meant with what is below it.
		return path == prefix || prefix == "" || strings.HasPrefix(path, strings.TrimSuffix(prefix, "/")+"/")
	})
}

func concreteDriver(path string) (string, bool) {
	name, ok := strings.CutPrefix(path, module+"hardware/")
	return name, ok && name != "conformance"
}

// The rules themselves must be able to fail.
func TestRulesRefuse(t *testing.T) {
	for room, path := range map[string]string{
		"device":              module + "place",
		"place":               "k8s.io/api/core/v1",
		"hardware":            module + "node",
		"hardware/simulated":  module + "node",
		"node":                "k8s.io/client-go/rest",
		"node/ledger":         "k8s.io/kubelet/pkg/apis/podresources/v1",
		"kube":                module + "node",
		"cli":                 "github.com/NVIDIA/go-nvml/pkg/nvml",
		"machines":            module + "cluster",
		"hardware/nvidia/xid": "k8s.io/api/core/v1",
	} {
		rule, ok := ruleFor(room)
		if !ok || allowed(rule, path) {
			t.Errorf("%s may import %s", room, path)
		}
	}
}
