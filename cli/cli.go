// Package cli is the command line: what people type and read.
package cli

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/cli/benchtrace"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/machines"
)

// Drivers are the kinds of hardware that the agent can manage.
type Drivers struct {
	// Real ones, by name. Each finds nothing where its hardware is not.
	Real map[string]func(DriverOptions) (hardware.Driver, error)
	// Simulate replays a machine on a node, with its files in root.
	Simulate func(machine machines.Machine, node, root string, logger *slog.Logger) (hardware.Driver, error)
}

// DriverOptions are what every driver is told.
type DriverOptions struct {
	// HostRoot is where the host's file system is seen.
	HostRoot string

	// MIGStrategy says how the slices of partitioned GPUs are offered.
	MIGStrategy string
	// DriverRoot and DevRoot are the folders of the host that hold the
	// driver's files and dev; empty for the usual ones.
	DriverRoot, DevRoot string
	// DisableHealthChecks and EnableHealthChecks list errors that do not
	// count against a device, and that do all the same.
	DisableHealthChecks, EnableHealthChecks string

	Logger *slog.Logger
}

// version is set when the program is built.
var version = "unknown"

// New returns the command with everything below it.
func New(drivers Drivers) *cobra.Command {
	root := &cobra.Command{
		Use:   "kilter",
		Short: "GPUs and other accelerators on Kubernetes",
		Long: `Kilter manages GPUs and other accelerators on Kubernetes.

On a machine without a cluster, start with:

  kilter up`,
		Version:       version,
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.AddGroup(
		&cobra.Group{ID: "devices", Title: "Devices:"},
		&cobra.Group{ID: "cluster", Title: "A cluster on this machine:"},
		&cobra.Group{ID: "node", Title: "On a node:"},
		&cobra.Group{ID: "measure", Title: "Measure:"},
	)
	cluster := &clusterFlags{}
	add := func(group string, commands ...*cobra.Command) {
		for _, command := range commands {
			command.GroupID = group
			root.AddCommand(command)
		}
	}
	add("devices", devicesCommand(cluster), simulateCommand(cluster), resourceCommand(cluster))
	add("cluster", clusterCommands()...)
	add("node", agentCommand(drivers))
	add("measure", benchCommand())
	return root
}

func benchCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "bench", Short: "Measure what Kilter claims"}
	cmd.AddCommand(benchtrace.Command())
	return cmd
}
