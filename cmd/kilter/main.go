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
	"github.com/kilter-dev/kilter/hardware/simulated"
	"github.com/kilter-dev/kilter/machines"
)

var drivers = cli.Drivers{
	Real: map[string]func(cli.DriverOptions) (hardware.Driver, error){
		"nvidia": func(o cli.DriverOptions) (hardware.Driver, error) {
			return nvidia.New(nvidia.Config{HostRoot: o.HostRoot, Logger: o.Logger})
		},
	},
	Simulate: func(machine machines.Machine, node, root string, logger *slog.Logger) (hardware.Driver, error) {
		return simulated.New(simulated.Config{Machine: machine, NodeName: node, Root: root, Logger: logger})
	},
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := cli.New(drivers).ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}
