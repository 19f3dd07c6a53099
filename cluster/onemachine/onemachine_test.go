package onemachine

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/plan"
)

func TestParseNodes(t *testing.T) {
	nodes, err := parseNodes([]string{"a=t4x2", "b-2=host"})
	if err != nil || len(nodes) != 2 || nodes[1] != (plan.Node{Name: "b-2", Machine: "host"}) {
		t.Errorf("%v %v", nodes, err)
	}
	for word, complaint := range map[string]string{
		"a":                               "NAME=MACHINE",
		"=t4x2":                           "NAME=MACHINE",
		"A=t4x2":                          "NAME=MACHINE",
		"a.b=t4x2":                        "NAME=MACHINE",
		"../../x=t4x2":                    "NAME=MACHINE",
		strings.Repeat("a", 33) + "=t4x2": "NAME=MACHINE",
		"a=h200":                          "h100x8",
		"a=/etc/passwd":                   "no machine is called",
	} {
		if _, err := parseNodes([]string{word}); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("%s: %v", word, err)
		}
	}
	var many []string
	for i := range layout.MaxNodes + 1 {
		many = append(many, "n"+string(rune('a'+i/26))+string(rune('a'+i%26))+"=t4x2")
	}
	if _, err := parseNodes(many); err == nil || !strings.Contains(err.Error(), "too many") {
		t.Errorf("too many nodes: %v", err)
	}
}

func TestPreflightNamesWhatIsMissing(t *testing.T) {
	c := plan.Cluster{
		Spec:     plan.Spec{Nodes: []plan.Node{{Name: "a", Machine: "t4x2"}}, Subnet: netip.MustParsePrefix("10.249.0.0/16")},
		Files:    layout.Files{Data: filepath.Join(t.TempDir(), "data")},
		Programs: t.TempDir(),
	}
	if err := preflight(c); err == nil || !strings.Contains(err.Error(), "make build") {
		t.Errorf("without programs: %v", err)
	}
	for _, program := range plan.Programs() {
		path := c.Program(program)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := preflight(c); err != nil {
		t.Errorf("with everything: %v", err)
	}
	long := c
	long.Files.Data = "/" + strings.Repeat("x", 90)
	if err := preflight(long); err == nil || !strings.Contains(err.Error(), "too long") {
		t.Errorf("a long path: %v", err)
	}
	if err := enoughDisk(c.Files.Data, 1<<62); err == nil || !strings.Contains(err.Error(), "MiB free") {
		t.Errorf("too little disk: %v", err)
	}
	// Where this fails, somebody else has the port, which is the same.
	if listener, err := net.Listen("tcp", ":443"); err == nil {
		defer listener.Close()
	}
	if err := preflight(c); err == nil || !strings.Contains(err.Error(), "port 443") || !strings.Contains(err.Error(), "(pid ") {
		t.Errorf("a port in use: %v", err)
	}
	if _, err := os.Stat(c.Files.Data); err == nil {
		t.Error("looking has made the data folder")
	}
}

func TestDamagedStateIsToldAndDownStillWorks(t *testing.T) {
	files := layout.Files{Data: t.TempDir()}
	if _, err := readState(files); !errors.Is(err, ErrNoCluster) {
		t.Errorf("an empty folder: %v", err)
	}
	if err := os.WriteFile(files.State(), []byte(`{"version": 1, "spec`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(files); err == nil || !strings.Contains(err.Error(), "damaged") {
		t.Errorf("a damaged file: %v", err)
	}
	if err := os.WriteFile(files.State(), []byte(`{"version": 99}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readState(files); err == nil || !strings.Contains(err.Error(), "another version") {
		t.Errorf("another version: %v", err)
	}
}

func TestDownWithoutCluster(t *testing.T) {
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if there, err := Down(context.Background(), layout.Files{Data: folder}, false); err != nil || there {
		t.Errorf("a cluster was found: %t %v", there, err)
	}
	if _, err := os.Stat(filepath.Join(folder, "precious")); err != nil {
		t.Errorf("a folder that is not a cluster's was touched: %v", err)
	}
}

func TestStateSurvives(t *testing.T) {
	files := layout.Files{Data: t.TempDir()}
	want := state{
		Spec:     plan.Spec{Nodes: []plan.Node{{Name: "a", Machine: "host"}}, Subnet: netip.MustParsePrefix("10.1.0.0/16")},
		Programs: "/programs", MadeFolders: []string{"/run/kilter"},
	}
	if err := writeState(files, want); err != nil {
		t.Fatal(err)
	}
	got, err := readState(files)
	if err != nil || describe(got.Spec) != "--node a=host" || got.Spec.Subnet != want.Spec.Subnet || got.MadeFolders[0] != "/run/kilter" {
		t.Errorf("%+v %v", got, err)
	}
}
