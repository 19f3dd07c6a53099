package driverfiles

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// Target is the folder in the container that the driver's files appear under.
const Target = "/usr/local/nvidia"

// usualRoots are the folders that hold a driver when nobody names one: the
// host's own root, the one in which a driver container is mounted, and the one
// of GKE's installer.
var usualRoots = []string{"/", "/run/nvidia/driver", "/home/kubernetes/bin/nvidia"}

// driverFolders are where one folder holds all of the driver, below a root.
var driverFolders = []string{"usr/local/nvidia", "."}

// libraryFolders are where distributions put libraries, below a root.
var libraryFolders = []string{
	"usr/lib/x86_64-linux-gnu",
	"usr/lib/aarch64-linux-gnu",
	"usr/lib64",
	"lib64",
	"usr/lib",
	"lib",
}

// Find returns the mounts that bring the driver into a container. The root is
// the folder of the host that holds the driver, empty to look in the usual
// ones. The version is that of the kernel's half of the driver: files of any
// other version, as an upgrade leaves them behind, are not the driver. When
// the version is empty, that of libcuda.so.1 counts.
func Find(host fs.FS, root, version string) ([]device.Mount, error) {
	for _, r := range rootsOf(root) {
		if mounts := oneFolder(host, r, version); mounts != nil {
			return mounts, nil
		}
		if mounts := distribution(host, r, version); mounts != nil {
			return mounts, nil
		}
	}
	what := "libcuda.so"
	if version != "" {
		what += "." + version
	}
	return nil, fmt.Errorf("find the driver's files: no %s below %s; install the driver's libraries of that version, or set the driver root to the folder that holds them",
		what, strings.Join(rootsOf(root), ", "))
}

// Library returns the path on the host of one of the driver's libraries, such
// as libnvidia-ml.so.1, with all links followed.
func Library(host fs.FS, root, name string) (string, bool) {
	for _, r := range rootsOf(root) {
		var folders []string
		for _, f := range driverFolders {
			folders = append(folders, path.Join(f, "lib64"))
		}
		for _, f := range append(folders, libraryFolders...) {
			real, err := resolve(host, under(r, path.Join(f, name)))
			if err != nil {
				continue
			}
			if info, err := fs.Stat(host, real); err == nil && info.Mode().IsRegular() {
				return "/" + real, true
			}
		}
	}
	return "", false
}

func rootsOf(root string) []string {
	if root != "" {
		return []string{root}
	}
	return usualRoots
}

// oneFolder is the layout in which a folder with lib64 and bin holds all of
// the driver: it is mounted as it is.
func oneFolder(host fs.FS, root, version string) []device.Mount {
	for _, f := range driverFolders {
		folder := under(root, f)
		if _, _, ok := list(host, path.Join(folder, "bin")); !ok {
			continue
		}
		if _, ok := readLibraries(host, path.Join(folder, "lib64"), version); !ok {
			continue
		}
		real, err := resolve(host, folder)
		// The root of a file system has a lib64 and a bin too; it is the
		// distribution's layout.
		if err != nil || real == "." || isSystemRoot(host, real) {
			continue
		}
		return []device.Mount{{HostPath: "/" + real, ContainerPath: Target, ReadOnly: true}}
	}
	return nil
}

func isSystemRoot(host fs.FS, folder string) bool {
	_, _, usr := list(host, path.Join(folder, "usr"))
	return usr
}

// distribution is the layout of packages: the driver's libraries stand among
// all others, so each file is mounted by itself.
func distribution(host fs.FS, root, version string) []device.Mount {
	for _, f := range libraryFolders {
		libraries, ok := readLibraries(host, under(root, f), version)
		if !ok {
			continue
		}
		var mounts []device.Mount
		for name, real := range libraries {
			mounts = append(mounts, file(real, "lib64", name))
		}
		for name, real := range readPrograms(host, root) {
			mounts = append(mounts, file(real, "bin", name))
		}
		slices.SortFunc(mounts, func(a, b device.Mount) int {
			return strings.Compare(a.ContainerPath, b.ContainerPath)
		})
		return mounts
	}
	return nil
}

func file(real, folder, name string) device.Mount {
	return device.Mount{
		HostPath:      "/" + real,
		ContainerPath: path.Join(Target, folder, name),
		ReadOnly:      true,
	}
}
