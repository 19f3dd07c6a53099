package command

import (
	"bytes"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/kilter-dev/kilter/cluster/image"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/onemachine"
)

func imageCommand(files func() layout.Files) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "image",
		Short: "Give images to the cluster's nodes, without a registry",
	}
	cmd.AddCommand(imageLoad(files), imageBuild(files))
	return cmd
}

func imageLoad(files func() layout.Files) *cobra.Command {
	return &cobra.Command{
		Use:     "load ARCHIVE…",
		Short:   "Load archives, as `docker save` writes them, into every node",
		Example: "  docker save my/image:1 > my-image.tar && kilter image load my-image.tar",
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, paths []string) error {
			for _, path := range paths {
				archive, err := os.ReadFile(path)
				if err != nil {
					return err
				}
				if err := loadEverywhere(cmd, files(), archive); err != nil {
					return fmt.Errorf("%s: %w", path, err)
				}
			}
			return nil
		},
	}
}

func imageBuild(files func() layout.Files) *cobra.Command {
	var recipe image.Recipe
	var output string
	cmd := &cobra.Command{
		Use:   "build NAME --program FILE",
		Short: "Make an image around one program and the libraries it needs",
		Example: `  kilter image build my/tool:1 --program ./tool          # into every node of the cluster
  kilter image build my/tool:1 --program ./tool -o tool.tar`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			recipe.Reference = args[0]
			built, err := recipe.Build()
			if err != nil {
				return err
			}
			var archive bytes.Buffer
			if err := image.Write(&archive, recipe.Reference, built); err != nil {
				return err
			}
			if output != "" {
				return os.WriteFile(output, archive.Bytes(), 0o644)
			}
			return loadEverywhere(cmd, files(), archive.Bytes())
		},
	}
	cmd.Flags().StringVar(&recipe.Program, "program", "", "the program that the image runs")
	cmd.Flags().StringArrayVar(&recipe.Env, "env", nil, "NAME=VALUE in its environment")
	cmd.Flags().StringVarP(&output, "output", "o", "", "write an archive instead of loading it into the cluster")
	_ = cmd.MarkFlagRequired("program")
	return cmd
}

func loadEverywhere(cmd *cobra.Command, files layout.Files, archive []byte) error {
	sockets, err := onemachine.ContainerdSockets(files)
	if err != nil {
		return err
	}
	for node, socket := range sockets {
		names, err := image.Load(cmd.Context(), socket, bytes.NewReader(archive))
		if err != nil {
			return fmt.Errorf("node %s: %w", node, err)
		}
		for _, name := range names {
			io.WriteString(cmd.OutOrStdout(), fmt.Sprintf("%s: %s\n", node, name))
		}
	}
	return nil
}
