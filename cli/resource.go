package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"

	"github.com/kilter-dev/kilter/kube"
)

func resourceCommand(cluster *clusterFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "resource",
		Short: "Write an extended resource into a node's status by hand",
		Long: `Write an extended resource into a node's status by hand.

The scheduler then counts it like any other; nothing is given to containers.
The kubelet passes it on to allocatable within seconds.`,
	}
	cmd.AddCommand(resourceSet(cluster), resourceUnset(cluster))
	return cmd
}

func resourceSet(cluster *clusterFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "set NODE NAME=COUNT",
		Short:   "Give a node a count of a resource",
		Example: "  kilter resource set gpu-7 example.com/dongle=4",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			name, text, ok := strings.Cut(args[1], "=")
			if !ok {
				return fmt.Errorf("%q is not NAME=COUNT, as in example.com/dongle=4", args[1])
			}
			count, err := strconv.ParseUint(text, 10, 31)
			if err != nil {
				return fmt.Errorf("the count %q of %s is not a whole number that is at least 0", text, name)
			}
			if err := patchCapacity(cmd.Context(), cluster, args[0], name, &count); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s has %d %s\n", args[0], count, name)
			return nil
		},
	}
	cluster.register(cmd.Flags())
	return cmd
}

func resourceUnset(cluster *clusterFlags) *cobra.Command {
	cmd := &cobra.Command{
		Use:     "unset NODE NAME",
		Short:   "Take a resource out of a node's status",
		Example: "  kilter resource unset gpu-7 example.com/dongle",
		Args:    cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := patchCapacity(cmd.Context(), cluster, args[0], args[1], nil); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "node %s no longer has %s\n", args[0], args[1])
			return nil
		},
	}
	cluster.register(cmd.Flags())
	return cmd
}

// patchCapacity sets the count of a resource, or removes it when count is nil.
func patchCapacity(ctx context.Context, cluster *clusterFlags, node, name string, count *uint64) error {
	if _, _, err := kube.ParseResourceName(name); err != nil {
		return err
	}
	_, client, err := cluster.connect()
	if err != nil {
		return err
	}
	fields := []string{"capacity", "allocatable"}
	if count == nil {
		// What is not there can not be removed.
		if fields, err = fieldsWith(ctx, client, node, name); err != nil {
			return err
		}
	}
	patch, err := capacityPatch(fields, name, count)
	if err != nil {
		return err
	}
	return client.PatchNodeStatus(ctx, node, patch)
}

// fieldsWith are the fields of the node's status that have the resource.
func fieldsWith(ctx context.Context, client *kube.Client, node, name string) ([]string, error) {
	object, err := client.Node(ctx, node)
	if err != nil {
		return nil, err
	}
	var fields []string
	if _, ok := object.Status.Capacity[corev1.ResourceName(name)]; ok {
		fields = append(fields, "capacity")
	}
	if _, ok := object.Status.Allocatable[corev1.ResourceName(name)]; ok {
		fields = append(fields, "allocatable")
	}
	if fields == nil {
		return nil, fmt.Errorf("node %s has no resource %s", node, name)
	}
	return fields, nil
}

// capacityPatch is a JSON patch. In its paths a slash within a name is written
// ~1, and a tilde ~0.
func capacityPatch(fields []string, name string, count *uint64) ([]byte, error) {
	type operation struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		Value string `json:"value,omitempty"`
	}
	escaped := strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
	var operations []operation
	for _, field := range fields {
		path := "/status/" + field + "/" + escaped
		if count == nil {
			operations = append(operations, operation{Op: "remove", Path: path})
		} else {
			operations = append(operations, operation{Op: "add", Path: path, Value: strconv.FormatUint(*count, 10)})
		}
	}
	return json.Marshal(operations)
}
