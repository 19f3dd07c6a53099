package nvidia

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/hardware/nvidia/driverfiles"
	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

const (
	name   = "nvidia"
	vendor = "nvidia.com"
)

// Config is what the driver needs to know. The zero value serves a process
// that runs on the host itself.
type Config struct {
	// NVML returns the library to use; it is called again after a failure.
	// When nil, the library of the host's driver is looked for and loaded.
	NVML func() (nvml.Interface, error)

	// HostRoot is where this process sees the root of the host's file system,
	// "/" when empty. The paths in edits are the host's own, without it.
	HostRoot string

	// DevRoot is the folder of the host that holds dev, "/" when empty.
	DevRoot string

	// DriverRoot is the folder of the host that holds the driver's files. When
	// empty, the usual ones are searched.
	DriverRoot string

	// Interval is the time between two looks at the GPUs: 5 s when zero.
	Interval time.Duration

	// Patience is how long NVML may take for one answer: 10 s when zero.
	Patience time.Duration

	// MIG says how partitioned GPUs are offered: MIGNone when empty.
	MIG MIGStrategy

	// Checks say which XIDs count against a GPU, and Health how long things
	// take; health.DefaultPolicy when zero.
	Checks health.Checks
	Health health.Policy

	Logger *slog.Logger
	Now    func() time.Time
}

// Driver finds NVIDIA's GPUs and makes them ready for containers.
type Driver struct {
	config  Config
	host    fs.FS
	logger  *slog.Logger
	library library

	watching sync.Mutex // held by the running Watch

	mu   sync.Mutex
	gpus map[string]gpu // by UUID, as last seen
}

var _ hardware.Driver = (*Driver)(nil)

// New returns a driver, or says what is wrong with the configuration. It
// touches nothing of the machine.
func New(config Config) (*Driver, error) {
	config.MIG = cmp.Or(config.MIG, MIGNone)
	if !slices.Contains([]MIGStrategy{MIGNone, MIGSingle, MIGMixed}, config.MIG) {
		return nil, fmt.Errorf("MIG strategy %q is not known; it is one of %s, %s and %s", config.MIG, MIGNone, MIGSingle, MIGMixed)
	}
	config.HostRoot = path.Join("/", config.HostRoot)
	config.DevRoot = path.Join("/", config.DevRoot)
	config.Interval = cmp.Or(config.Interval, 5*time.Second)
	config.Patience = cmp.Or(config.Patience, 10*time.Second)
	config.Health = cmp.Or(config.Health, health.DefaultPolicy)
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	if config.Now == nil {
		config.Now = time.Now
	}
	d := &Driver{
		config: config,
		host:   os.DirFS(config.HostRoot),
		logger: config.Logger.With("driver", name),
		gpus:   map[string]gpu{},
	}
	if d.config.NVML == nil {
		d.library = library{host: d.host, hostRoot: config.HostRoot, driverRoot: config.DriverRoot}
		d.config.NVML = d.library.load
	}
	return d, nil
}

// Name implements hardware.Driver.
func (d *Driver) Name() string { return name }

// Prepare implements hardware.Driver. It changes nothing on the machine: what
// a container needs follows from the devices alone. A sick GPU is prepared as
// well, because its container may be starting again.
func (d *Driver) Prepare(_ context.Context, grant device.Grant) (device.Edits, error) {
	granted, err := d.granted(grant.Devices)
	if err != nil {
		return device.Edits{}, err
	}
	if len(granted) == 0 {
		return device.Edits{}, errors.New("the grant names no device")
	}
	files, err := driverfiles.Find(d.host, d.config.DriverRoot, granted[0].driver)
	if err != nil {
		return device.Edits{}, err
	}
	return edits(d.host, d.config.DevRoot, granted, files)
}

// Unprepare implements hardware.Driver. Prepare left nothing to undo.
func (d *Driver) Unprepare(context.Context, string) error { return nil }

// granted returns what the devices of a grant are, each once.
func (d *Driver) granted(ids []device.ID) ([]grantable, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known := map[device.ID]grantable{}
	for _, o := range offers(d.gpus, d.config.MIG) {
		known[o.id] = o.grantable
	}

	var granted []grantable
	var unknown []device.ID
	seen := map[device.ID]bool{}
	for _, id := range ids {
		if seen[id] {
			continue
		}
		seen[id] = true
		if g, ok := known[id]; ok {
			granted = append(granted, g)
		} else {
			unknown = append(unknown, id)
		}
	}
	if len(unknown) > 0 {
		return nil, &hardware.UnknownDeviceError{Driver: name, IDs: unknown}
	}
	return granted, nil
}
