package inventory

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"sync"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

// A driver that fails is started again after a pause that doubles up to the
// longest one, and is short again after the driver has worked for a while.
const (
	shortestPause = time.Second
	longestPause  = 30 * time.Second
)

// Inventory merges the reports of several drivers. Its methods may be called
// from several goroutines.
type Inventory struct {
	drivers []hardware.Driver
	logger  *slog.Logger

	mu sync.Mutex
	// reported is what each driver said last, nil before its first report.
	reported [][]device.Device
	// owners says which driver each device belongs to.
	owners   map[device.ID]int
	refused  map[refusal]bool
	snapshot Snapshot
	// changed is closed, and made anew, at every change.
	changed chan struct{}
}

// New returns an inventory of the drivers' devices, empty until Run.
func New(drivers []hardware.Driver, logger *slog.Logger) *Inventory {
	return &Inventory{
		drivers:  drivers,
		logger:   logger,
		reported: make([][]device.Device, len(drivers)),
		changed:  make(chan struct{}),
	}
}

// Run watches all drivers until ctx ends.
func (i *Inventory) Run(ctx context.Context) error {
	var watchers sync.WaitGroup
	for index := range i.drivers {
		watchers.Go(func() { i.watch(ctx, index) })
	}
	watchers.Wait()
	return nil
}

// watch keeps one driver going.
func (i *Inventory) watch(ctx context.Context, index int) {
	driver := i.drivers[index]
	pause := shortestPause
	for {
		started := time.Now()
		err := driver.Watch(ctx, func(devices []device.Device) { i.report(index, devices) })
		if ctx.Err() != nil {
			return
		}
		if err == nil {
			err = errors.New("it stopped watching without a reason")
		}
		if time.Since(started) > longestPause {
			pause = shortestPause
		}
		i.logger.Error("driver failed; its devices stay as reported last",
			"driver", driver.Name(), "error", err, "again_in", pause)
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
		pause = min(2*pause, longestPause)
	}
}

// report takes in the full list of one driver.
func (i *Inventory) report(index int, devices []device.Device) {
	copies := make([]device.Device, len(devices))
	for n, d := range devices {
		copies[n] = d.Clone()
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	first := i.reported[index] == nil
	i.reported[index] = copies

	merged, owners, refused := merge(i.reported, i.owners)
	for r := range refused {
		if !i.refused[r] {
			i.logger.Error("device refused", "driver", i.drivers[r.driver].Name(), "device", r.id, "reason", r.reason)
		}
	}
	i.owners, i.refused = owners, refused
	if !first && reflect.DeepEqual(merged, i.snapshot.Devices) {
		return
	}
	before := i.snapshot
	i.snapshot = Snapshot{
		Version:  before.Version + 1,
		Devices:  merged,
		Complete: i.allReported(),
	}
	for _, t := range Transitions(before, i.snapshot) {
		i.logger.Info("device health changed", "device", t.Device.ID, "model", t.Device.Model, "change", t.Change, "reason", t.Device.Health.Reason)
	}
	close(i.changed)
	i.changed = make(chan struct{})
}

func (i *Inventory) allReported() bool {
	for _, devices := range i.reported {
		if devices == nil {
			return false
		}
	}
	return true
}

// Snapshot returns the devices as they stand now.
func (i *Inventory) Snapshot() Snapshot {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.snapshot.clone()
}

// Changed returns a channel that is closed at the next change. Take it before
// the Snapshot, or a change in between goes by unseen.
func (i *Inventory) Changed() <-chan struct{} {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.changed
}

// Driver returns the driver to which the device belongs.
func (i *Inventory) Driver(id device.ID) (hardware.Driver, bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	index, found := i.owners[id]
	if !found {
		return nil, false
	}
	return i.drivers[index], true
}

// Has says whether there is such a device.
func (i *Inventory) Has(id device.ID) bool {
	_, found := i.Driver(id)
	return found
}

// DriverNamed returns the driver of the given name.
func (i *Inventory) DriverNamed(name string) (hardware.Driver, bool) {
	for _, driver := range i.drivers {
		if driver.Name() == name {
			return driver, true
		}
	}
	return nil, false
}
