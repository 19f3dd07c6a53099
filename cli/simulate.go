package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/node/local"
)

func simulateCommand(cluster *clusterFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "simulate",
		Short: "Make a simulated device fall sick, or well again",
		Long: `Make a simulated device fall sick, or well again, to see what your Pods and
your alerts make of it. A device is named by its id, the beginning of it, or
its index together with --node.`,
	}
	cmd.AddCommand(failCommand(cluster), healCommand(cluster))
	return cmd
}

func failCommand(cluster *clusterFlags) *cobra.Command {
	var reason string
	target := &faultTarget{cluster: cluster}
	cmd := &cobra.Command{
		Use:   "fail ID",
		Short: "Make a simulated device fall sick",
		Example: `  kilter simulate fail GPU-4f9c --reason "XID 79: fallen off the bus"
  kilter simulate fail 3 --node h100x8`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := target.do(cmd.Context(), args[0], []string{"fail", args[0], "--reason", reason}, func(c *local.Client) (string, error) {
				id, err := c.Fail(cmd.Context(), args[0], reason)
				return string(id), err
			})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is sick: %s\n", id, reason)
			}
			return err
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "made to fail by `kilter simulate`", "what the device says is wrong")
	target.register(cmd)
	return cmd
}

func healCommand(cluster *clusterFlags) *cobra.Command {
	target := &faultTarget{cluster: cluster}
	cmd := &cobra.Command{
		Use:     "heal ID",
		Short:   "Make a simulated device well again",
		Example: "  kilter simulate heal GPU-4f9c",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			id, err := target.do(cmd.Context(), args[0], []string{"heal", args[0]}, func(c *local.Client) (string, error) {
				id, err := c.Heal(cmd.Context(), args[0])
				return string(id), err
			})
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%s is well\n", id)
			}
			return err
		},
	}
	target.register(cmd)
	return cmd
}

// faultTarget finds the agent whose device is meant.
type faultTarget struct {
	cluster *clusterFlags
	node    string
	here    bool
	socket  string
}

func (t *faultTarget) register(cmd *cobra.Command) {
	t.cluster.register(cmd.Flags())
	cmd.Flags().StringVar(&t.node, "node", "", "the device's node")
	cmd.Flags().BoolVar(&t.here, "local", false, "ask the agent on this machine over its socket, not the cluster")
	cmd.Flags().StringVar(&t.socket, "socket", local.DefaultSocket, "socket of the agent, with --local")
}

// do has the fault made by the agent on this machine, or by the one in the
// cluster that has the device, and returns the device's full id.
func (t *faultTarget) do(ctx context.Context, id string, words []string, here func(*local.Client) (string, error)) (string, error) {
	if t.here {
		return here(local.NewClient(t.socket))
	}
	config, client, err := t.cluster.connect()
	if err != nil {
		return "", err
	}
	all := agents{config, client}
	node, err := t.nodeOf(ctx, all, id)
	if err != nil {
		return "", err
	}
	pods, err := all.pods(ctx, node)
	if err != nil {
		return "", err
	}
	out, err := all.run(ctx, pods[0], append([]string{"simulate"}, append(words, "--local")...)...)
	if err != nil {
		return "", err
	}
	full, _, _ := strings.Cut(string(out), " ")
	return full, nil
}

// nodeOf looks for the one node that has a device of this id.
func (t *faultTarget) nodeOf(ctx context.Context, all agents, id string) (string, error) {
	if t.node != "" {
		return t.node, nil
	}
	reports, silent, err := all.reports(ctx, "")
	if err != nil {
		return "", err
	}
	var nodes []string
	for _, report := range reports {
		for _, d := range report.Devices {
			if strings.HasPrefix(string(d.ID), id) || fmt.Sprint(d.Index) == id {
				nodes = append(nodes, report.Node)
				break
			}
		}
	}
	switch len(nodes) {
	case 1:
		return nodes[0], nil
	case 0:
		return "", errors.Join(append([]error{fmt.Errorf("no node has a device %q; `kilter devices` shows what there is", id)}, silent...)...)
	default:
		return "", fmt.Errorf("the nodes %s all have a device %q: say which with --node", strings.Join(nodes, ", "), id)
	}
}
