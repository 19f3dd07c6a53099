// Package image makes container images around single programs, without a
// registry or a builder, and hands them to a node's container runtime.
package image

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/containerd/containerd/v2/client"
	"github.com/containerd/containerd/v2/pkg/namespaces"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

// Recipe is an image to be made: a program, at the top of an otherwise empty
// file system, with the libraries it needs.
type Recipe struct {
	Reference string
	// Program is the file on this machine.
	Program string
	Args    []string
	Env     []string
}

// Build makes the image. The same recipe and files give the same image, byte
// for byte.
func (r Recipe) Build() (v1.Image, error) {
	libs, err := libraries(r.Program)
	if err != nil {
		return nil, err
	}
	inside := "/" + path.Base(r.Program)
	layerBytes, err := layer(append([]file{{r.Program, inside}}, same(libs)...))
	if err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(layerBytes)), nil
	}, tarball.WithCompressionLevel(1))
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config.Entrypoint = append([]string{inside}, r.Args...)
	config.Config.Env = append([]string{"PATH=/:/usr/local/nvidia/bin:/usr/bin:/bin"}, r.Env...)
	return mutate.ConfigFile(image, config)
}

type file struct{ from, to string }

func same(paths []string) []file {
	files := make([]file, len(paths))
	for i, p := range paths {
		files[i] = file{p, p}
	}
	return files
}

// layer is a tar of the files and the folders above them, owned by root and
// dated to the beginning of time.
func layer(files []file) ([]byte, error) {
	var buffer bytes.Buffer
	out := tar.NewWriter(&buffer)
	made := map[string]bool{"/": true}
	for _, f := range files {
		for _, folder := range foldersAbove(f.to) {
			if made[folder] {
				continue
			}
			made[folder] = true
			if err := out.WriteHeader(&tar.Header{
				Name: strings.TrimPrefix(folder, "/") + "/", Typeflag: tar.TypeDir, Mode: 0o755, ModTime: time.Unix(0, 0),
			}); err != nil {
				return nil, err
			}
		}
		data, err := os.ReadFile(f.from)
		if err != nil {
			return nil, fmt.Errorf("put a file into an image: %w", err)
		}
		if err := out.WriteHeader(&tar.Header{
			Name: strings.TrimPrefix(f.to, "/"), Mode: 0o755, Size: int64(len(data)), ModTime: time.Unix(0, 0),
		}); err != nil {
			return nil, err
		}
		if _, err := out.Write(data); err != nil {
			return nil, err
		}
	}
	return buffer.Bytes(), out.Close()
}

func foldersAbove(p string) []string {
	var folders []string
	for folder := path.Dir(p); folder != "/" && folder != "."; folder = path.Dir(folder) {
		folders = append(folders, folder)
	}
	slices.Reverse(folders)
	return folders
}

// Write writes the image as an archive that `docker load`, `ctr import` and
// Load take.
func Write(out io.Writer, reference string, image v1.Image) error {
	tag, err := name.NewTag(reference)
	if err != nil {
		return fmt.Errorf("the image name %q: %w", reference, err)
	}
	return tarball.Write(tag, image, out)
}

// Load gives an archive to the container runtime that listens on the socket,
// in the namespace where the kubelet looks, and returns the images' names.
func Load(ctx context.Context, socket string, archive io.Reader) ([]string, error) {
	runtime, err := client.New(socket, client.WithTimeout(10*time.Second))
	if err != nil {
		return nil, fmt.Errorf("reach the container runtime at %s: %w", socket, err)
	}
	defer runtime.Close()
	ctx = namespaces.WithNamespace(ctx, "k8s.io")
	images, err := runtime.Import(ctx, archive)
	if err != nil {
		return nil, fmt.Errorf("import the image: %w", err)
	}
	var names []string
	for _, image := range images {
		if err := client.NewImage(runtime, image).Unpack(ctx, ""); err != nil {
			return nil, fmt.Errorf("unpack the image %s: %w", image.Name, err)
		}
		names = append(names, image.Name)
	}
	return names, nil
}
