package cli

import (
	"bytes"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/machines"
)

// run calls the command line as a person would, without any cluster in reach.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	t.Setenv("KUBECONFIG", "")
	t.Setenv("HOME", t.TempDir())
	t.Setenv("KILTER_DATA", t.TempDir())
	root := New(Drivers{
		Simulate: func(machines.Machine, string, string, *slog.Logger) (hardware.Driver, error) {
			return nil, errors.New("no driver in this test")
		},
	})
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(args)
	err := root.Execute()
	return out.String(), err
}

func TestMistakesAreExplained(t *testing.T) {
	for words, complaint := range map[string]string{
		"devices":                            "kilter up",
		"devices --kubeconfig /nowhere":      "/nowhere",
		"devices --local --socket /nowhere":  "no agent is running on this node",
		"devices extra":                      "unknown command",
		"simulate fail":                      "accepts 1 arg",
		"resource set node example.com/x":    "NAME=COUNT",
		"resource set node example.com/x=no": "whole number",
		"resource set node example.com/x=-1": "at least 0",
		"agent --simulate nothing --node n":  "h100x8",
		"agent --simulate node-label":        "needs an API server",
		"agent --log-level loud":             "--log-level",
		"agent ready --socket /nowhere":      "no agent is running on this node",
		"frobnicate":                         "unknown command",
	} {
		if _, err := run(t, strings.Fields(words)...); err == nil || !strings.Contains(err.Error(), complaint) {
			t.Errorf("kilter %s: %v, want %q", words, err, complaint)
		}
	}
}

// Every command that people use says what it is for and shows an example.
func TestEveryCommandHasHelp(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Hidden || cmd.Name() == "help" || cmd.Name() == "completion" || cmd.HasParent() && cmd.Parent().Name() == "completion" {
			return
		}
		if cmd.Short == "" {
			t.Errorf("%s does not say what it is for", cmd.CommandPath())
		}
		// What is passed on has its examples in the other program.
		if cmd.Runnable() && !cmd.DisableFlagParsing && cmd.Example == "" && cmd.Name() != "ready" {
			t.Errorf("%s has no example", cmd.CommandPath())
		}
		for _, child := range cmd.Commands() {
			visit(child)
		}
	}
	visit(New(Drivers{}))
}

func TestEnvironmentNamesOneCluster(t *testing.T) {
	data := t.TempDir()
	t.Setenv("KILTER_DATA", data)
	t.Setenv("KUBECONFIG", "/somebody/elses")
	var found []string
	for _, entry := range environment() {
		if strings.HasPrefix(entry, "KUBECONFIG=") {
			found = append(found, entry)
		}
	}
	if want := []string{"KUBECONFIG=" + filepath.Join(data, "kubeconfig")}; !slices.Equal(found, want) {
		t.Errorf("the environment has %v, want %v", found, want)
	}
}

func TestKubeconfigOfThisMachineComesFirst(t *testing.T) {
	data, home := t.TempDir(), t.TempDir()
	t.Setenv("KILTER_DATA", data)
	t.Setenv("HOME", home)
	t.Setenv("KUBECONFIG", "")
	config := func(path, server string) {
		text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: " + server + "}}]\n"
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	server := func(flags clusterFlags) string {
		config, _, err := flags.connect()
		if err != nil {
			t.Fatal(err)
		}
		return config.Host
	}
	config(filepath.Join(data, "kubeconfig"), "https://here")
	config(filepath.Join(home, "other"), "https://other")
	config(filepath.Join(home, "named"), "https://named")
	if got := server(clusterFlags{}); got != "https://here" {
		t.Errorf("without a word: %s", got)
	}
	t.Setenv("KUBECONFIG", filepath.Join(home, "other"))
	if got := server(clusterFlags{}); got != "https://other" {
		t.Errorf("with $KUBECONFIG: %s", got)
	}
	if got := server(clusterFlags{kubeconfig: filepath.Join(home, "named")}); got != "https://named" {
		t.Errorf("with --kubeconfig: %s", got)
	}
}
