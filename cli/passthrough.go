package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// clusterProgram holds the one-machine cluster. It links all of Kubernetes,
// which the agent on a node has no use for, so it is a program of its own.
const clusterProgram = "kilter-cluster"

// clusterCommands are those that the cluster's own program does.
func clusterCommands() []*cobra.Command {
	return []*cobra.Command{
		passOn("up", "Bring up a real Kubernetes on this machine, with Kilter in it"),
		passOn("down", "Take the cluster away and leave nothing behind"),
		passOn("status", "Show the cluster's processes, nodes and devices"),
		passOn("logs", "Show the log of one of the cluster's processes"),
		passOn("kubectl", "Run kubectl against the cluster"),
		passOn("kubeconfig", "Print the path of the cluster's kubeconfig"),
		passOn("image", "Give images to the cluster's nodes, without a registry"),
	}
}

// passOn is a command of which this program knows only the name: flags, help
// and completion are the other program's.
func passOn(name, short string) *cobra.Command {
	return &cobra.Command{
		Use:                name,
		Short:              short,
		DisableFlagParsing: true,
		RunE: func(_ *cobra.Command, args []string) error {
			program, err := findClusterProgram()
			if err != nil {
				return err
			}
			argv := append([]string{program, name}, args...)
			return fmt.Errorf("run %s: %w", program, syscall.Exec(program, argv, environment()))
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeThere(name, args, toComplete)
		},
	}
}

// environment is this program's, with the cluster on this machine in place of
// any other: that is the one these commands are about.
func environment() []string {
	env := slices.DeleteFunc(os.Environ(), func(entry string) bool { return strings.HasPrefix(entry, "KUBECONFIG=") })
	return append(env, "KUBECONFIG="+upKubeconfig())
}

// findClusterProgram looks beside this program, and then on the path.
func findClusterProgram() (string, error) {
	if self, err := os.Executable(); err == nil {
		if self, err = filepath.EvalSymlinks(self); err == nil {
			beside := filepath.Join(filepath.Dir(self), clusterProgram)
			if _, err := os.Stat(beside); err == nil {
				return beside, nil
			}
		}
	}
	program, err := exec.LookPath(clusterProgram)
	if err != nil {
		return "", errors.New("the program kilter-cluster, which holds Kubernetes itself, is neither beside kilter nor on the PATH: `make build` makes both")
	}
	return program, nil
}

// completeThere asks the other program, which answers a word a line and then
// a directive after a colon.
func completeThere(name string, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
	program, err := findClusterProgram()
	if err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	request := append([]string{"__complete", name}, append(args, toComplete)...)
	if name == "kubectl" { // which completes for itself
		request[0], request[1] = request[1], request[0]
	}
	var out bytes.Buffer
	cmd := exec.Command(program, request...)
	cmd.Env = environment()
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	last := len(lines) - 1
	var directive int
	if _, err := fmt.Sscanf(lines[last], ":%d", &directive); err != nil {
		return nil, cobra.ShellCompDirectiveError
	}
	return lines[:last], cobra.ShellCompDirective(directive)
}
