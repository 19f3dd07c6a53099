package hardware

import (
	"fmt"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// UnknownDeviceError says which of the named devices a driver does not have.
type UnknownDeviceError struct {
	Driver string
	IDs    []device.ID
}

func (e *UnknownDeviceError) Error() string {
	names := make([]string, len(e.IDs))
	for i, id := range e.IDs {
		names[i] = string(id)
	}
	return fmt.Sprintf("%s has no device %s", e.Driver, strings.Join(names, ", "))
}
