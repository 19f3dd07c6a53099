package driverfiles

import (
	"bufio"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

// recorded reads a listing of a machine: one entry a line, "f path",
// "d path" or "l path target".
func recorded(t *testing.T, name string) fs.FS {
	t.Helper()
	file, err := os.Open(filepath.Join("testdata", name+".txt"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	host := fstest.MapFS{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		words := strings.Fields(lines.Text())
		path := strings.TrimPrefix(words[1], "/")
		switch words[0] {
		case "f":
			host[path] = &fstest.MapFile{Mode: 0o644}
		case "d":
			host[path] = &fstest.MapFile{Mode: fs.ModeDir | 0o755}
		case "l":
			host[path] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte(words[2])}
		default:
			t.Fatalf("%s: %q is not understood", name, lines.Text())
		}
	}
	return host
}

// inContainer returns what a program finds at each name of a folder.
func inContainer(mounts []device.Mount, folder string) map[string]string {
	seen := map[string]string{}
	for _, m := range mounts {
		if name, ok := strings.CutPrefix(m.ContainerPath, "/usr/local/nvidia/"+folder+"/"); ok {
			seen[name] = m.HostPath
		}
	}
	return seen
}

func TestOneFolderIsMountedWhole(t *testing.T) {
	for name, test := range map[string]struct{ machine, root, version, want string }{
		"the folder of the host":      {"one-folder-580", "", "580.159.04", "/usr/local/nvidia"},
		"the version is not known":    {"one-folder-580", "", "", "/usr/local/nvidia"},
		"the root is named":           {"one-folder-580", "/", "580.159.04", "/usr/local/nvidia"},
		"the folder itself is named":  {"one-folder-580", "/usr/local/nvidia", "580.159.04", "/usr/local/nvidia"},
		"GKE's folder":                {"gke-550", "", "550.54.15", "/home/kubernetes/bin/nvidia"},
		"GKE's folder, named as root": {"gke-550", "/home/kubernetes/bin/nvidia", "550.54.15", "/home/kubernetes/bin/nvidia"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := Find(recorded(t, test.machine), test.root, test.version)
			if err != nil {
				t.Fatal(err)
			}
			want := []device.Mount{{HostPath: test.want, ContainerPath: Target, ReadOnly: true}}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestDistributionIsMountedFileByFile(t *testing.T) {
	const lib = "/usr/lib/x86_64-linux-gnu/"
	mounts, err := Find(recorded(t, "ubuntu-550"), "", "550.54.15")
	if err != nil {
		t.Fatal(err)
	}
	libraries := inContainer(mounts, "lib64")
	for name, want := range map[string]string{
		"libcuda.so":                    lib + "libcuda.so.550.54.15",
		"libcuda.so.1":                  lib + "libcuda.so.550.54.15",
		"libcuda.so.550.54.15":          lib + "libcuda.so.550.54.15",
		"libnvidia-ml.so.1":             lib + "libnvidia-ml.so.550.54.15",
		"libnvidia-nvvm.so.4":           lib + "libnvidia-nvvm.so.550.54.15",
		"libnvcuvid.so.1":               lib + "libnvcuvid.so.550.54.15",
		"libnvidia-cfg.so":              "", // only for building
		"libcuda.so.535.183.01":         "", // left behind by an upgrade
		"libnvidia-container.so.1":      "", // another product
		"libnvidia-api.so.1":            "", // not of the driver's version
		"libcudart.so.12":               "", // belongs to the image
		"libnvidia-glcore.so.550.54.15": "", // draws
	} {
		if got := libraries[name]; got != want {
			t.Errorf("lib64/%s is %q, want %q", name, got, want)
		}
	}
	want := map[string]string{
		"nvidia-smi":              "/usr/bin/nvidia-smi",
		"nvidia-debugdump":        "/usr/bin/nvidia-debugdump",
		"nvidia-cuda-mps-control": "/usr/bin/nvidia-cuda-mps-control",
		"nvidia-cuda-mps-server":  "/usr/bin/nvidia-cuda-mps-server",
	}
	if diff := cmp.Diff(want, inContainer(mounts, "bin")); diff != "" {
		t.Error(diff)
	}
	for _, m := range mounts {
		if !m.ReadOnly {
			t.Errorf("%s can be written", m.ContainerPath)
		}
	}
}

func TestLibrariesOfEachLayout(t *testing.T) {
	for name, test := range map[string]struct {
		machine, root, version string
		cuda, ml, nvvm, smi    string
	}{
		"links through alternatives": {
			machine: "debian-alternatives-535", version: "535.183.01",
			cuda: "/usr/lib/x86_64-linux-gnu/nvidia/current/libcuda.so.535.183.01",
			ml:   "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535.183.01",
			nvvm: "/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.535.183.01",
			smi:  "/usr/lib/nvidia/current/nvidia-smi",
		},
		"lib64": {
			machine: "rhel-550", version: "550.54.15",
			cuda: "/usr/lib64/libcuda.so.550.54.15",
			ml:   "/usr/lib64/libnvidia-ml.so.550.54.15",
			nvvm: "/usr/lib64/libnvidia-nvvm.so.550.54.15",
			smi:  "/usr/bin/nvidia-smi",
		},
		"a driver container": {
			machine: "driver-container-550", version: "550.54.15",
			cuda: "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15",
			ml:   "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15",
			smi:  "/run/nvidia/driver/usr/bin/nvidia-smi",
		},
		"files without links": {
			machine: "files-without-links-550", version: "550.54.15",
			cuda: "/usr/lib/x86_64-linux-gnu/libcuda.so.550.54.15",
			ml:   "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15",
			nvvm: "/usr/lib/x86_64-linux-gnu/libnvidia-nvvm.so.550.54.15",
			smi:  "/usr/bin/nvidia-smi",
		},
		"the kernel still runs the older version": {
			machine: "ubuntu-550", version: "535.183.01",
			cuda: "/usr/lib/x86_64-linux-gnu/libcuda.so.535.183.01",
			ml:   "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.535.183.01",
			smi:  "/usr/bin/nvidia-smi",
		},
	} {
		t.Run(name, func(t *testing.T) {
			mounts, err := Find(recorded(t, test.machine), test.root, test.version)
			if err != nil {
				t.Fatal(err)
			}
			libraries := inContainer(mounts, "lib64")
			for name, want := range map[string]string{
				"libcuda.so.1":        test.cuda,
				"libnvidia-ml.so.1":   test.ml,
				"libnvidia-nvvm.so.4": test.nvvm,
			} {
				if got := libraries[name]; got != want {
					t.Errorf("lib64/%s is %q, want %q", name, got, want)
				}
			}
			if got := inContainer(mounts, "bin")["nvidia-smi"]; got != test.smi {
				t.Errorf("nvidia-smi is %q, want %q", got, test.smi)
			}
		})
	}
}

func TestNoDriver(t *testing.T) {
	for name, test := range map[string]struct{ machine, root, version string }{
		"none at all":           {"no-driver", "", ""},
		"not of that version":   {"ubuntu-550", "", "580.159.04"},
		"folder of another":     {"one-folder-580", "", "570.86.15"},
		"not below that root":   {"ubuntu-550", "/run/nvidia/driver", "550.54.15"},
		"a root that is absent": {"ubuntu-550", "/no/such/folder", ""},
	} {
		t.Run(name, func(t *testing.T) {
			mounts, err := Find(recorded(t, test.machine), test.root, test.version)
			if err == nil {
				t.Fatalf("found %v", mounts)
			}
			if !strings.Contains(err.Error(), "set the driver root") || !strings.Contains(err.Error(), test.version) {
				t.Errorf("the error does not help: %v", err)
			}
		})
	}
}

func TestLibrary(t *testing.T) {
	for name, test := range map[string]struct{ machine, root, want string }{
		"one folder":         {"one-folder-580", "", "/usr/local/nvidia/lib64/libnvidia-ml.so.580.159.04"},
		"distribution":       {"ubuntu-550", "", "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15"},
		"alternatives":       {"debian-alternatives-535", "", "/usr/lib/x86_64-linux-gnu/nvidia/current/libnvidia-ml.so.535.183.01"},
		"driver container":   {"driver-container-550", "", "/run/nvidia/driver/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.550.54.15"},
		"GKE":                {"gke-550", "", "/home/kubernetes/bin/nvidia/lib64/libnvidia-ml.so.550.54.15"},
		"no driver":          {"no-driver", "", ""},
		"not below the root": {"ubuntu-550", "/opt", ""},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := Library(recorded(t, test.machine), test.root, "libnvidia-ml.so.1")
			if got != test.want || ok != (test.want != "") {
				t.Errorf("got %q, %v, want %q", got, ok, test.want)
			}
		})
	}
}
