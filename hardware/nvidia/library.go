package nvidia

import (
	"errors"
	"fmt"
	"io/fs"
	"path"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/hardware/nvidia/driverfiles"
)

// ErrDriverReplaced says that the host has another version of the driver than
// the one whose library this process has loaded. A process can not exchange
// that library, so it has to be started again.
var ErrDriverReplaced = errors.New("the driver was replaced by another version; start this process again to load its library")

// errNoLibrary is the normal state of a machine without GPUs.
var errNoLibrary = errors.New("there is no NVIDIA driver: libnvidia-ml.so.1 is not found; where it is installed in another place, set the driver root")

// library loads NVML from the host.
type library struct {
	host                 fs.FS
	hostRoot, driverRoot string

	path   string // of what is loaded
	loaded nvml.Interface
}

// load returns NVML. It is opened by absolute path, since the search path of
// this process says nothing about the host, and only once: its functions are
// bound for the life of the process.
func (l *library) load() (nvml.Interface, error) {
	file, ok := driverfiles.Library(l.host, l.driverRoot, "libnvidia-ml.so.1")
	if !ok {
		return nil, errNoLibrary
	}
	if l.loaded == nil {
		l.path, l.loaded = file, nvml.New(nvml.WithLibraryPath(path.Join(l.hostRoot, file)))
	}
	if l.path != file {
		return nil, fmt.Errorf("%w (%s, then %s)", ErrDriverReplaced, l.path, file)
	}
	return l.loaded, nil
}

// explain says what a failure to start NVML means and what to do.
func explain(ret nvml.Return) error {
	advice := map[nvml.Return]string{
		nvml.ERROR_LIBRARY_NOT_FOUND:       "the library can not be loaded into this process",
		nvml.ERROR_DRIVER_NOT_LOADED:       "the kernel module is not loaded: modprobe nvidia",
		nvml.ERROR_LIB_RM_VERSION_MISMATCH: "the library and the kernel module are of different versions: reload the module or reboot",
		nvml.ERROR_NO_PERMISSION:           "this process may not open /dev/nvidiactl: run it privileged",
	}[ret]
	if advice == "" {
		return fmt.Errorf("start NVML: %w", ret)
	}
	return fmt.Errorf("start NVML: %w; %s", ret, advice)
}
