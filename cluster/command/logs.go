package command

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/onemachine"
)

func logs(files func() layout.Files) *cobra.Command {
	var follow bool
	var lines int
	cmd := &cobra.Command{
		Use:   "logs COMPONENT",
		Short: "Show the log of one of the cluster's processes",
		Example: `  kilter logs kube-apiserver
  kilter logs kubelet-h100x8 --follow
  kilter kubectl -n kilter-system logs ds/kilter-agent-simulated   # the agent is a Pod`,
		Args: cobra.MaximumNArgs(1),
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return components(files()), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			known := components(files())
			if len(known) == 0 {
				return onemachine.ErrNoCluster
			}
			if len(args) == 0 || !slices.Contains(known, args[0]) {
				return fmt.Errorf("which log? There are %s", strings.Join(known, ", "))
			}
			ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt)
			defer stop()
			return show(ctx, cmd.OutOrStdout(), files().Log(args[0]), lines, follow)
		},
	}
	cmd.Flags().BoolVarP(&follow, "follow", "f", false, "go on as the log grows")
	cmd.Flags().IntVar(&lines, "tail", 0, "only the last lines (default all)")
	return cmd
}

func components(files layout.Files) []string {
	entries, _ := os.ReadDir(files.Run("../logs"))
	var names []string
	for _, entry := range entries {
		if name, ok := strings.CutSuffix(entry.Name(), ".log"); ok {
			names = append(names, name)
		}
	}
	return names
}

func show(ctx context.Context, out io.Writer, path string, lines int, follow bool) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	data, err := io.ReadAll(file)
	if err != nil {
		return err
	}
	if all := strings.SplitAfter(string(data), "\n"); lines > 0 && len(all) > lines+1 {
		data = []byte(strings.Join(all[len(all)-lines-1:], ""))
	}
	for {
		if _, err := out.Write(data); err != nil || !follow {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(200 * time.Millisecond):
		}
		if data, err = io.ReadAll(file); err != nil {
			return err
		}
	}
}
