package simulated

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

const (
	faultsFile    = "faults.json"
	faultsVersion = 1
)

// fault is why a device is sick.
type fault struct {
	Reason string    `json:"reason"`
	Since  time.Time `json:"since"`
}

// faultsOnDisk is the content of the file.
type faultsOnDisk struct {
	Version int                 `json:"version"`
	Faults  map[device.ID]fault `json:"faults"`
}

// Fail makes a device sick until Heal, over a restart of the agent too.
func (d *Driver) Fail(id device.ID, reason string) error {
	if reason == "" {
		return fmt.Errorf("fail device %s: a fault needs a reason", id)
	}
	return d.changeFaults(id, func(faults map[device.ID]fault) {
		f, sick := faults[id]
		if !sick {
			f.Since = d.config.Now().UTC().Round(0) // no monotonic part, as after a restart
		}
		f.Reason = reason
		faults[id] = f
	})
}

// Heal makes a device well again.
func (d *Driver) Heal(id device.ID) error {
	return d.changeFaults(id, func(faults map[device.ID]fault) { delete(faults, id) })
}

// changeFaults writes the changed faults to the disk, and only then lets
// Watch see them.
func (d *Driver) changeFaults(id device.ID, change func(map[device.ID]fault)) error {
	if !d.has(id) {
		return &hardware.UnknownDeviceError{Driver: driverName, IDs: []device.ID{id}}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.loadFaults(); err != nil {
		return err
	}
	faults := maps.Clone(d.faults)
	change(faults)
	if maps.Equal(faults, d.faults) {
		return nil
	}
	if err := d.saveFaults(faults); err != nil {
		return fmt.Errorf("keep the fault of device %s: %w", id, err)
	}
	d.faults = faults
	close(d.changed)
	d.changed = make(chan struct{})
	return nil
}

func (d *Driver) has(id device.ID) bool {
	return slices.ContainsFunc(d.devices, func(known device.Device) bool { return known.ID == id })
}

func (d *Driver) saveFaults(faults map[device.ID]fault) error {
	data, err := json.MarshalIndent(faultsOnDisk{faultsVersion, faults}, "", "  ")
	if err != nil {
		return err
	}
	root, err := d.disk.open()
	if err != nil {
		return err
	}
	defer root.Close()
	return writeFile(root, faultsFile, append(data, '\n'), 0o644)
}

// loadFaults reads the faults once. A file that makes no sense is moved
// aside: a rehearsal that is forgotten does less harm than a node without
// devices.
func (d *Driver) loadFaults() error {
	if d.faults != nil {
		return nil
	}
	root, err := d.disk.open()
	if err != nil {
		return err
	}
	defer root.Close()

	data, err := root.ReadFile(faultsFile)
	if errors.Is(err, fs.ErrNotExist) {
		d.faults = map[device.ID]fault{}
		return nil
	}
	var faults map[device.ID]fault
	if err == nil {
		faults, err = parseFaults(data)
	}
	if err != nil {
		return d.setAside(root, err)
	}
	for id := range faults {
		if !d.has(id) {
			d.config.Logger.Warn("the fault of a device that this machine does not have is dropped",
				"device", id, "reason", faults[id].Reason)
			delete(faults, id)
		}
	}
	d.faults = faults
	return nil
}

// setAside keeps the file for whoever wants to know what was in it.
func (d *Driver) setAside(root *os.Root, reason error) error {
	aside := faultsFile + ".malformed-" + d.config.Now().UTC().Format("20060102T150405.000000000Z")
	if err := root.Rename(faultsFile, aside); err != nil {
		return fmt.Errorf("move the malformed %s aside: %w", faultsFile, errors.Join(err, reason))
	}
	d.config.Logger.Error("the faults can not be read: the file was moved aside and all devices are healthy",
		"folder", d.config.Root, "movedTo", aside, "error", reason)
	d.faults = map[device.ID]fault{}
	return nil
}

// parseFaults reads the content of the file, and nothing that this version
// did not write.
func parseFaults(data []byte) (map[device.ID]fault, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var content faultsOnDisk
	if err := decoder.Decode(&content); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows the faults")
	}
	if content.Version != faultsVersion {
		return nil, fmt.Errorf("version %d is not known, only %d", content.Version, faultsVersion)
	}
	for id, f := range content.Faults {
		if f.Reason == "" {
			return nil, fmt.Errorf("device %s is sick without a reason", id)
		}
	}
	if content.Faults == nil {
		content.Faults = map[device.ID]fault{}
	}
	return content.Faults, nil
}
