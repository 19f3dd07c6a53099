package plan

import (
	"flag"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
)

var update = flag.Bool("update", false, "write the golden file anew")

func twoNodes() Cluster {
	return Cluster{
		Spec: Spec{
			Nodes:  []Node{{Name: "small", Machine: "t4x2"}, {Name: "mine", Machine: OwnHardware}},
			Subnet: netip.MustParsePrefix(layout.DefaultSubnet),
		},
		Files:    layout.Files{Data: "/data"},
		Programs: "/programs",
	}
}

// The whole plan of a cluster of two nodes, as a person can read it.
func TestPlan(t *testing.T) {
	c := twoNodes()
	var out strings.Builder
	for _, spec := range c.Processes() {
		fmt.Fprintf(&out, "== %s\nafter %v, cgroup %s, mounts %s, ready %v\n", spec.Name, spec.After, spec.Cgroup, spec.MountNamespace, spec.Ready)
		for _, line := range append(slices.Clone(spec.Env), spec.Args...) {
			fmt.Fprintln(&out, "  "+line)
		}
	}
	files, err := c.ConfigFiles()
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for path := range files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		fmt.Fprintf(&out, "== %s\n%s\n", path, files[path])
	}
	const golden = "testdata/plan.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if out.String() != string(want) {
		t.Errorf("the plan is not that of %s; look at the difference, and run with -update if it is meant", golden)
	}
}

// A process waits only for processes that are there and started before it.
func TestOrder(t *testing.T) {
	started := map[string]bool{}
	for _, spec := range twoNodes().Processes() {
		for _, name := range spec.After {
			if !started[name] {
				t.Errorf("%s waits for %s, which is not started before it", spec.Name, name)
			}
		}
		if started[spec.Name] {
			t.Errorf("two processes are called %s", spec.Name)
		}
		started[spec.Name] = true
	}
}

// Whatever listens does so on addresses of this machine alone.
func TestNothingListensToTheWorld(t *testing.T) {
	for _, spec := range twoNodes().Processes() {
		for _, arg := range spec.Args {
			if strings.Contains(arg, "0.0.0.0") || strings.Contains(arg, "[::]") {
				t.Errorf("%s: %s", spec.Name, arg)
			}
		}
	}
	anonymous := 0
	for _, spec := range twoNodes().Processes() {
		if slices.Contains(spec.Args, "--anonymous-auth=false") {
			anonymous++
		}
	}
	if anonymous != 1 {
		t.Error("the API server lets anonymous people in")
	}
}

func TestEveryCgroupIsMade(t *testing.T) {
	c := twoNodes()
	for _, spec := range c.Processes() {
		if !slices.Contains(c.Cgroups(), spec.Cgroup) {
			t.Errorf("%s runs in %s, which nobody makes", spec.Name, spec.Cgroup)
		}
	}
	if _, ok := c.Processes()[0].Ready.(process.Socket); !ok {
		t.Error("the database does not listen on a socket")
	}
}
