// Kilter manages GPUs and other accelerators on Kubernetes: the node's agent,
// and the commands by which people look at it.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/kilter-dev/kilter/cli"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/hardware/nvidia"
	"github.com/kilter-dev/kilter/hardware/nvidia/health"
	"github.com/kilter-dev/kilter/hardware/simulated"
	"github.com/kilter-dev/kilter/machines"
)

var drivers = cli.Drivers{
	Real: map[string]func(cli.DriverOptions) (hardware.Driver, error){
		"nvidia": func(o cli.DriverOptions) (hardware.Driver, error) {
			checks, err := health.ParseChecks(o.DisableHealthChecks, o.EnableHealthChecks)
			if err != nil {
				return nil, err
			}
			return nvidia.New(nvidia.Config{
				HostRoot: o.HostRoot, DriverRoot: o.DriverRoot, DevRoot: o.DevRoot,
				MIG: nvidia.MIGStrategy(o.MIGStrategy), Checks: checks, Logger: o.Logger,
			})
		},
	},
	Simulate: func(machine machines.Machine, node, root string, logger *slog.Logger) (hardware.Driver, error) {
		return simulated.New(simulated.Config{Machine: machine, NodeName: node, Root: root, Logger: logger})
	},
}

func main() { os.Exit(run()) }

// run returns the exit status.
func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.New(drivers).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
