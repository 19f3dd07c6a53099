// Package hardware is the contract between Kilter and a kind of hardware. One
// folder a kind stands below it; hardware/conformance is the suite that each
// of them passes.
package hardware

import (
	"context"

	"github.com/kilter-dev/kilter/device"
)

// Driver finds the devices of one kind of hardware on this machine and knows
// what a container needs to use them. It answers a few questions about its
// devices, and never whether a request fits: that is decided once, for all
// kinds, in place.
//
// Its methods are called from several goroutines.
type Driver interface {
	// Name is a short constant such as "nvidia": it stands in logs and flags.
	Name() string

	// Watch calls report with the full list of devices when it starts and
	// after every change of a device, its health included. Calls do not
	// overlap, and the receiver may keep the slice. A machine without such
	// hardware reports an empty list and is watched on, because hardware and
	// its driver may appear later. Watch returns when ctx ends, with nil, or
	// when it can not go on, with the reason; what it reported last then
	// stays in force until it is called again.
	Watch(ctx context.Context, report func([]device.Device)) error

	// Prepare makes the devices of the grant ready and says what a container
	// needs in order to use them. It is idempotent. A device that the driver
	// does not have fails the whole grant with UnknownDeviceError, and
	// nothing is changed.
	Prepare(ctx context.Context, grant device.Grant) (device.Edits, error)

	// Unprepare undoes what Prepare did on the machine for the grant. A grant
	// that is not prepared is no error.
	Unprepare(ctx context.Context, grantID string) error
}

// FaultInjector is a Driver whose devices can be made to fail, for rehearsals
// and tests.
type FaultInjector interface {
	// Fail makes the device sick for the given reason until Heal. It returns
	// UnknownDeviceError for a device that the driver does not have.
	Fail(id device.ID, reason string) error
	// Heal makes the device well again; a healthy device is no error.
	Heal(id device.ID) error
}
