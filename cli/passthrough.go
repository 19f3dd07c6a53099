package cli

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
			env := os.Environ()
			if name == "kubectl" {
				env = append(env, "KUBECONFIG="+upKubeconfig())
			}
			return fmt.Errorf("run %s: %w", program, syscall.Exec(program, argv, env))
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, toComplete string) ([]string, cobra.ShellCompDirective) {
			return completeThere(name, args, toComplete)
		},
	}
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
	var out bytes.Buffer
	cmd := exec.Command(program, request...)
	if name == "kubectl" {
		cmd = exec.Command(program, append([]string{"kubectl", "__complete"}, append(args, toComplete)...)...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+upKubeconfig())
	}
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
