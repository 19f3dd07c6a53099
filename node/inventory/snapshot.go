package inventory

import "github.com/kilter-dev/kilter/device"

// Snapshot is the list of devices at one moment.
type Snapshot struct {
	// Version grows with every change.
	Version uint64
	// Devices are in the order of device.Sort.
	Devices []device.Device
	// Complete is true once every driver has reported. Before that, a device
	// that is not in the list may still turn up.
	Complete bool
}

// Device returns the device of the given id.
func (s Snapshot) Device(id device.ID) (device.Device, bool) {
	for _, d := range s.Devices {
		if d.ID == id {
			return d, true
		}
	}
	return device.Device{}, false
}

func (s Snapshot) clone() Snapshot {
	devices := make([]device.Device, len(s.Devices))
	for n, d := range s.Devices {
		devices[n] = d.Clone()
	}
	s.Devices = devices
	return s
}

// Change is how the health of a device moved.
type Change string

const (
	// FellSick is a device that may not be offered any more.
	FellSick Change = "fell sick"
	// Recovered is a device that may be offered again.
	Recovered Change = "recovered"
	// Vanished is a device that its driver reports no more.
	Vanished Change = "vanished"
)

// Transition is a change of one device.
type Transition struct {
	// Device is the device after the change, or before it vanished.
	Device device.Device
	Change Change
}

// Transitions tells what happened to the devices between two snapshots, in the
// order of the devices. A device that is new and well is no transition.
func Transitions(before, after Snapshot) []Transition {
	var transitions []Transition
	for _, d := range after.Devices {
		old, known := before.Device(d.ID)
		wasOK := !known || old.Health.OK()
		switch {
		case wasOK && !d.Health.OK():
			transitions = append(transitions, Transition{d, FellSick})
		case !wasOK && d.Health.OK():
			transitions = append(transitions, Transition{d, Recovered})
		}
	}
	for _, d := range before.Devices {
		if _, still := after.Device(d.ID); !still {
			transitions = append(transitions, Transition{d, Vanished})
		}
	}
	return transitions
}
