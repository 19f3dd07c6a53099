package local

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// NotFoundError says that no device, or more than one, is meant by what a
// person wrote.
type NotFoundError struct {
	message string
}

func (e *NotFoundError) Error() string { return e.message }

// Resolve finds the device that a person means: by its id, by its index, or by
// the beginning of an id if only one begins so. Kind says in errors what sort
// of device was looked for.
func Resolve(devices []device.Device, text, kind string) (device.ID, error) {
	byID := func(d device.Device) bool { return string(d.ID) == text }
	if at := slices.IndexFunc(devices, byID); at >= 0 {
		return devices[at].ID, nil
	}
	var matches []device.ID
	if index, err := strconv.Atoi(text); err == nil {
		for _, d := range devices {
			if d.Index == index {
				matches = append(matches, d.ID)
			}
		}
	}
	if len(matches) == 0 && text != "" {
		for _, d := range devices {
			if strings.HasPrefix(string(d.ID), text) {
				matches = append(matches, d.ID)
			}
		}
	}
	switch len(matches) {
	case 1:
		return matches[0], nil
	case 0:
		if len(devices) == 0 {
			return "", &NotFoundError{fmt.Sprintf("no %s device %q; the node has none", kind, text)}
		}
		return "", &NotFoundError{fmt.Sprintf("no %s device %q; the node has %s", kind, text, named(devices))}
	default:
		return "", &NotFoundError{fmt.Sprintf("%q could be any of %v; write more of the id", text, matches)}
	}
}

// named lists devices as "0 (GPU-…), 1 (GPU-…)".
func named(devices []device.Device) string {
	names := make([]string, len(devices))
	for i, d := range devices {
		names[i] = fmt.Sprintf("%d (%s)", d.Index, d.ID)
	}
	return strings.Join(names, ", ")
}
