package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/cli/output"
	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/node/local"
)

func devicesCommand(cluster *clusterFlags) *cobra.Command {
	var node, format, socket string
	var here bool
	cmd := &cobra.Command{
		Use:     "devices",
		Aliases: []string{"device"},
		Short:   "Show the devices of the nodes, how they are and who holds them",
		Example: `  kilter devices
  kilter devices --node gpu-7
  kilter devices -o json | jq '.[].devices[] | select(.holders)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if here {
				report, err := local.NewClient(socket).Devices(cmd.Context())
				if err != nil {
					return err
				}
				if format == "" {
					return printDevices(cmd.OutOrStdout(), []local.Report{report})
				}
				return output.Write(cmd.OutOrStdout(), format, report)
			}
			return devicesOf(cmd.Context(), cmd.OutOrStdout(), cluster, node, format)
		},
	}
	cluster.register(cmd.Flags())
	cmd.Flags().StringVar(&node, "node", "", "only this node")
	cmd.Flags().StringVarP(&format, "output", "o", "", output.Help)
	cmd.Flags().BoolVar(&here, "local", false, "ask the agent on this machine over its socket, not the cluster")
	cmd.Flags().StringVar(&socket, "socket", local.DefaultSocket, "socket of the agent, with --local")
	return cmd
}

func devicesOf(ctx context.Context, out io.Writer, cluster *clusterFlags, node, format string) error {
	config, client, err := cluster.connect()
	if err != nil {
		return err
	}
	reports, silent, err := agents{config, client}.reports(ctx, node)
	if err != nil {
		return err
	}
	slices.SortFunc(reports, func(a, b local.Report) int { return cmp.Compare(a.Node, b.Node) })
	if format == "" {
		err = printDevices(out, reports)
	} else {
		err = output.Write(out, format, reports)
	}
	return errors.Join(append([]error{err}, silent...)...)
}

func printDevices(out io.Writer, reports []local.Report) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "NODE\t#\tID\tMODEL\tMEMORY\tNUMA\tLINKS\tHEALTH\tHOLDER")
	var remarks []string
	for _, report := range reports {
		for _, d := range report.Devices {
			fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				report.Node, d.Index, d.ID, d.Model, memory(d.Capacity.MemoryBytes), numa(d.NUMANode),
				links(d.Device, report.Devices), d.Health.State, holders(d.Holders))
			if remark := cmp.Or(d.Note, d.Health.Reason); remark != "" {
				remarks = append(remarks, fmt.Sprintf("%s %d: %s", report.Node, d.Index, remark))
			}
		}
		if len(report.Devices) == 0 {
			remarks = append(remarks, report.Node+": no device found")
		}
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if len(remarks) > 0 {
		fmt.Fprintln(out)
	}
	for _, remark := range remarks {
		fmt.Fprintln(out, remark)
	}
	return nil
}

// memory is the size as people say it: 80 GiB, not 81559 MiB.
func memory(bytes int64) string {
	const gibi = 1 << 30
	switch {
	case bytes == 0:
		return "-"
	case bytes < gibi:
		return fmt.Sprintf("%d MiB", bytes>>20)
	default:
		return fmt.Sprintf("%.0f GiB", float64(bytes)/gibi)
	}
}

func numa(node int) string {
	if node == device.UnknownNUMANode {
		return "-"
	}
	return fmt.Sprint(node)
}

// links are the peers by index, those of the same width together: a device
// of a DGX-1 shows "NV2: 3 4, NV1: 1 2".
func links(d device.Device, all []local.Device) string {
	index := map[device.ID]int{}
	for _, other := range all {
		index[other.ID] = other.Index
	}
	byWidth := map[int][]int{}
	for _, link := range d.Links {
		if i, ok := index[link.Peer]; ok {
			byWidth[link.Lanes] = append(byWidth[link.Lanes], i)
		}
	}
	var widths []int
	for width := range byWidth {
		widths = append(widths, width)
	}
	slices.SortFunc(widths, func(a, b int) int { return cmp.Compare(b, a) })
	var words []string
	for _, width := range widths {
		peers := byWidth[width]
		slices.Sort(peers)
		if len(peers) > 1 && len(peers) == len(all)-1 {
			words = append(words, fmt.Sprintf("NV%d: all", width))
			continue
		}
		words = append(words, fmt.Sprintf("NV%d: %s", width, strings.Trim(fmt.Sprint(peers), "[]")))
	}
	if len(words) == 0 {
		return "-"
	}
	return strings.Join(words, ", ")
}

func holders(all []local.Holder) string {
	if len(all) == 0 {
		return "-"
	}
	words := make([]string, len(all))
	for i, holder := range all {
		words[i] = holder.String()
	}
	return strings.Join(words, ", ")
}
