// Package command is the command line of the one-machine cluster.
package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/onemachine"
)

// New returns the command with all that people use, and the hidden ones by
// which the program calls itself.
func New() *cobra.Command {
	root := &cobra.Command{
		// People call it through kilter, and are told so in the help.
		Use:           "kilter",
		Short:         "A real Kubernetes on one machine; kilter calls it for `kilter up` and its kin",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	data := root.PersistentFlags().String("data", defaultData(), "folder that holds everything of the cluster (also $"+layout.DataVariable+")")
	files := func() layout.Files { return layout.Files{Data: filepath.Clean(*data)} }
	root.AddCommand(
		up(files), down(files), status(files), logs(files), kubeconfig(files), imageCommand(files),
		supervise(files), launch(), mountInNamespace(),
	)
	return root
}

func defaultData() string {
	if folder := os.Getenv(layout.DataVariable); folder != "" {
		return folder
	}
	return layout.DefaultData
}

// Run runs the command line and returns its exit status.
func Run() int {
	// The components of Kubernetes that are linked in bring flags of their
	// own; they are not ours.
	pflag.CommandLine = pflag.NewFlagSet("kilter", pflag.ContinueOnError)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := New().ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}

func up(files func() layout.Files) *cobra.Command {
	var options onemachine.UpOptions
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Bring up a real Kubernetes on this machine, with Kilter in it",
		Long: `Bring up a real Kubernetes on this machine, with Kilter in it.

Each --node is a kubelet and a container runtime of its own. Its MACHINE is a
recorded machine whose devices are simulated, or "host" for the devices that
this machine has. Without --node there is one node: this machine's own GPUs if
there are any, otherwise a simulated ` + onemachine.DefaultMachine + `.

Doing it twice is harmless, and after a crash or a reboot it repairs.`,
		Example: `  kilter up
  kilter up --node small=t4x2 --node big=h100x8
  kilter up --node mine=host --node pretend=v100x8`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			options.Files, options.Out = files(), cmd.OutOrStdout()
			programs, err := ownFolder()
			if err != nil {
				return err
			}
			options.Programs = programs
			began := time.Now()
			if err := onemachine.Up(cmd.Context(), options); err != nil {
				return err
			}
			return welcome(cmd.Context(), cmd.OutOrStdout(), options.Files, time.Since(began))
		},
	}
	cmd.Flags().StringArrayVar(&options.Nodes, "node", nil, "a node, as NAME=MACHINE; may be given several times")
	cmd.Flags().StringVar(&options.Subnet, "subnet", "", "IPv4 network of 16 bits for the cluster (default "+layout.DefaultSubnet+")")
	cmd.Flags().DurationVar(&options.Timeout, "timeout", 5*time.Minute, "how long to wait until everything is ready")
	return cmd
}

// ownFolder is where this program and the others it runs are.
func ownFolder() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	self, err = filepath.EvalSymlinks(self)
	return filepath.Dir(self), err
}

func down(files func() layout.Files) *cobra.Command {
	var keep bool
	cmd := &cobra.Command{
		Use:   "down",
		Short: "Take the cluster away and leave nothing behind",
		Example: `  kilter down
  kilter down --keep   # stop it; kilter up brings the same cluster back`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), 2*time.Minute)
			defer cancel()
			there, err := onemachine.Down(ctx, files(), keep)
			switch {
			case err != nil:
				return err
			case !there:
				fmt.Fprintln(cmd.OutOrStdout(), "No cluster is here.")
			case keep:
				fmt.Fprintln(cmd.OutOrStdout(), "The cluster is stopped; `kilter up` brings it back.")
			default:
				fmt.Fprintln(cmd.OutOrStdout(), "The cluster is gone, with everything that it had on this machine.")
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&keep, "keep", false, "keep the data folder, so that the same cluster can be brought back")
	return cmd
}

func kubeconfig(files func() layout.Files) *cobra.Command {
	var raw bool
	cmd := &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print the path of the cluster's kubeconfig",
		Example: `  export KUBECONFIG=$(kilter kubeconfig)
  kilter kubeconfig --raw > my-copy`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := os.ReadFile(files().Kubeconfig())
			if errors.Is(err, os.ErrNotExist) {
				return onemachine.ErrNoCluster
			}
			if err != nil {
				return err
			}
			if raw {
				_, err = cmd.OutOrStdout().Write(data)
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), files().Kubeconfig())
			return nil
		},
	}
	cmd.Flags().BoolVar(&raw, "raw", false, "print the kubeconfig itself")
	return cmd
}

func supervise(files func() layout.Files) *cobra.Command {
	return &cobra.Command{
		Use: onemachine.SuperviseCommand, Hidden: true, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return onemachine.Supervise(cmd.Context(), files(), slog.New(slog.NewTextHandler(os.Stderr, nil)))
		},
	}
}

func launch() *cobra.Command {
	return &cobra.Command{
		Use: onemachine.LaunchCommand + " CGROUP MOUNT-NAMESPACE -- PROGRAM …", Hidden: true, Args: cobra.MinimumNArgs(3),
		RunE: func(_ *cobra.Command, args []string) error {
			return onemachine.Launch(args[0], args[1], args[2:])
		},
	}
}

func mountInNamespace() *cobra.Command {
	return &cobra.Command{
		Use: onemachine.MountCommand + " BINDS", Hidden: true, Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			var binds []host.Bind
			if err := json.Unmarshal([]byte(args[0]), &binds); err != nil {
				return err
			}
			if err := host.MountAll(binds); err != nil {
				return err
			}
			fmt.Fprintln(cmd.OutOrStdout(), "mounted")
			_, err := io.Copy(io.Discard, cmd.InOrStdin())
			return err
		},
	}
}
