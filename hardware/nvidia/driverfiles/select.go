package driverfiles

import (
	"io/fs"
	"path"
	"strings"
)

// families are the driver's libraries for computing and for video, by the
// beginning of their names.
var families = []string{"libcuda.so", "libcudadebugger.so", "libnvcuvid.so", "libnvidia-"}

// graphics are those among them that only draw. They are of no use without
// the configuration of a display stack, which is not brought along.
var graphics = []string{
	"libnvidia-egl",
	"libnvidia-fbc",
	"libnvidia-gl",
	"libnvidia-gtk",
	"libnvidia-rtcore",
	"libnvidia-tls",
	"libnvidia-vksc",
	"libnvidia-wayland",
}

// names are those that programs load each library by; a listing normally has
// them as links. Where the files came without the links, these are added.
var names = map[string]string{
	"libcuda.so":                  "libcuda.so.1",
	"libnvidia-ml.so":             "libnvidia-ml.so.1",
	"libnvidia-ptxjitcompiler.so": "libnvidia-ptxjitcompiler.so.1",
	"libnvidia-nvvm.so":           "libnvidia-nvvm.so.4",
}

// programs are the driver's tools that belong to its version.
var programs = []string{
	"nvidia-smi",
	"nvidia-debugdump",
	"nvidia-cuda-mps-control",
	"nvidia-cuda-mps-server",
}

var programFolders = []string{"usr/bin", "usr/sbin", "bin"}

// readLibraries returns the driver's libraries in a folder, of the given
// version: the names that programs load them by, and the file behind each. It
// reports false where there is no libcuda of that version.
func readLibraries(host fs.FS, folder, version string) (map[string]string, bool) {
	real, entries, ok := list(host, folder)
	if !ok {
		return nil, false
	}
	if version == "" {
		if version, ok = versionOf(host, real); !ok {
			return nil, false
		}
	}

	suffix := ".so." + version
	found := map[string]string{}
	for _, entry := range entries {
		name := entry.Name()
		if !startsWith(name, families) || startsWith(name, graphics) {
			continue
		}
		target, err := resolve(host, path.Join(real, name))
		if err != nil || !strings.HasSuffix(target, suffix) {
			continue
		}
		// The name without a number is for the linker of programs that are
		// being built; these two are also loaded by it.
		if strings.HasSuffix(name, ".so") && name != "libcuda.so" && name != "libnvidia-ml.so" {
			continue
		}
		found[name] = target
	}
	if _, ok := found["libcuda"+suffix]; !ok {
		if _, ok := found["libcuda.so.1"]; !ok {
			return nil, false
		}
	}
	for stem, name := range names {
		file, isThere := found[strings.TrimSuffix(stem, ".so")+suffix]
		if _, hasName := found[name]; isThere && !hasName {
			found[name] = file
		}
	}
	return found, true
}

// versionOf returns the version of the driver that libcuda.so.1 leads to.
func versionOf(host fs.FS, folder string) (string, bool) {
	real, err := resolve(host, path.Join(folder, "libcuda.so.1"))
	if err != nil {
		return "", false
	}
	_, version, ok := strings.Cut(path.Base(real), ".so.")
	return version, ok
}

// readPrograms returns the driver's tools by name, each with its file.
func readPrograms(host fs.FS, root string) map[string]string {
	found := map[string]string{}
	for _, folder := range programFolders {
		for _, name := range programs {
			real, err := resolve(host, under(root, path.Join(folder, name)))
			if _, twice := found[name]; err == nil && !twice {
				found[name] = real
			}
		}
	}
	return found
}

func startsWith(name string, beginnings []string) bool {
	for _, beginning := range beginnings {
		if strings.HasPrefix(name, beginning) {
			return true
		}
	}
	return false
}
