package cli

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kilter-dev/kilter/deploy"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/machines"
	"github.com/kilter-dev/kilter/node"
	"github.com/kilter-dev/kilter/node/local"
	"github.com/kilter-dev/kilter/place"
)

// fromNodeLabel is the word that sends the agent to its node's label.
const fromNodeLabel = "node-label"

type agentFlags struct {
	node, simulate, hostRoot, kubeconfig, logLevel string
	config                                         node.Config
}

func agentCommand(drivers Drivers) *cobra.Command {
	f := &agentFlags{}
	cmd := &cobra.Command{
		Use:   "agent",
		Short: "Run the agent that offers this node's devices to the kubelet",
		Long: `Run the agent that offers this node's devices to the kubelet.

deploy/kilter.yaml runs it on every node of a cluster; by hand it is run as
root beside a kubelet.

The configuration file, environment variables and flags of NVIDIA's device
plugin are taken as they are: docs/from-nvidia-device-plugin.md.`,
		Example: `  kilter agent --node $(hostname)
  kilter agent --node $(hostname) --simulate h100x8
  kilter agent --node $(hostname) --config-file config.yaml`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return runAgent(cmd.Context(), f, settings{cmd.Flags(), os.LookupEnv}, drivers)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&f.node, "node", "", "name of this node in the cluster (default the host's name)")
	flags.StringVar(&f.simulate, "simulate", "", "simulate a machine's devices instead of looking for real ones: "+strings.Join(machines.Names(), ", ")+", a file, or "+fromNodeLabel+" for what the node's label "+deploy.SimulateLabel+" names")
	flags.StringVar(&f.hostRoot, "host-root", "/", "where the host's file system is seen")
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig (default that of the Pod; outside of one, none: Pods are then told nothing)")
	flags.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	flags.StringVar(&f.config.DevicePluginFolder, "device-plugin-folder", node.DefaultDevicePluginFolder, "the kubelet's folder for device plugins")
	flags.StringVar(&f.config.PodResourcesSocket, "pod-resources-socket", node.DefaultPodResourcesSocket, "the kubelet's socket that says who holds what")
	flags.StringVar(&f.config.StateFolder, "state-folder", node.DefaultStateFolder, "what must outlive a restart")
	flags.StringVar(&f.config.LocalSocket, "socket", node.DefaultLocalSocket, "socket for kilter devices --local")
	settings{flags: flags}.register()
	cmd.AddCommand(agentReady())
	return cmd
}

// agentReady is the probe of the agent's Pod.
func agentReady() *cobra.Command {
	var socket string
	cmd := &cobra.Command{
		Use:   "ready",
		Short: "Exit with 0 when this node's agent has registered its devices",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			health, err := local.NewClient(socket).Health(cmd.Context())
			if err == nil && !health.Ready {
				err = errors.New("not ready: " + strings.Join(health.Waiting, "; "))
			}
			return err
		},
	}
	cmd.Flags().StringVar(&socket, "socket", local.DefaultSocket, "socket of the agent")
	return cmd
}

func runAgent(ctx context.Context, f *agentFlags, said settings, drivers Drivers) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.logLevel)); err != nil {
		return fmt.Errorf("--log-level: %w", err)
	}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	if f.node == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find this node's name (--node says it): %w", err)
		}
		f.node = strings.ToLower(name)
	}
	configuration, err := f.configure(said, logger)
	if err != nil {
		return err
	}
	client, err := f.kubernetes()
	if err != nil {
		return err
	}
	config := f.config
	config.Node, config.Logger, config.Prefer = f.node, logger, place.Prefer
	if client != nil {
		config.Kubernetes = client
	}
	if config.Drivers, err = f.drivers(ctx, client, drivers, driverOptions(configuration), logger); err != nil {
		return err
	}
	return node.New(config).Run(ctx)
}

// kubernetes is the API server as a Pod sees it, or the one that was named;
// nil where there is neither.
func (f *agentFlags) kubernetes() (*kube.Client, error) {
	var config *rest.Config
	var err error
	if f.kubeconfig != "" {
		config, err = clientcmd.BuildConfigFromFlags("", f.kubeconfig)
	} else if config, err = rest.InClusterConfig(); errors.Is(err, rest.ErrNotInCluster) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("find the API server: %w", err)
	}
	return kube.NewClient(config)
}

// drivers are those of real hardware, or the one that simulates.
func (f *agentFlags) drivers(ctx context.Context, client *kube.Client, known Drivers, options DriverOptions, logger *slog.Logger) ([]hardware.Driver, error) {
	if f.simulate != "" {
		machine, err := f.machine(ctx, client)
		if err != nil {
			return nil, err
		}
		driver, err := known.Simulate(machine, f.node, filepath.Join(f.config.StateFolder, "simulated"), logger)
		return []hardware.Driver{driver}, err
	}
	var drivers []hardware.Driver
	for _, name := range slices.Sorted(maps.Keys(known.Real)) {
		options.HostRoot, options.Logger = f.hostRoot, logger.With("driver", name)
		driver, err := known.Real[name](options)
		if err != nil {
			return nil, fmt.Errorf("set up the driver %s: %w", name, err)
		}
		drivers = append(drivers, driver)
	}
	return drivers, nil
}

// machine is the one to simulate.
func (f *agentFlags) machine(ctx context.Context, client *kube.Client) (machines.Machine, error) {
	name := f.simulate
	if name == fromNodeLabel {
		if client == nil {
			return machines.Machine{}, errors.New("--simulate=" + fromNodeLabel + " needs an API server to ask for the label: run in a Pod, or with --kubeconfig")
		}
		object, err := client.Node(ctx, f.node)
		if err != nil {
			return machines.Machine{}, fmt.Errorf("look up which machine to simulate: %w", err)
		}
		if name = object.Labels[deploy.SimulateLabel]; name == "" {
			return machines.Machine{}, fmt.Errorf("node %s has no label %s that names a machine to simulate: %s", f.node, deploy.SimulateLabel, strings.Join(machines.Names(), ", "))
		}
	}
	return machines.Load(name)
}
