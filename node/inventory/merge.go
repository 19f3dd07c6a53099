package inventory

import "github.com/kilter-dev/kilter/device"

// refusal is a reported device that was left out of the list.
type refusal struct {
	driver int
	id     device.ID
	reason string
}

// merge makes one sorted list of what the drivers reported. A device stays
// with its owner for as long as that driver reports it; a new one belongs to
// the first driver in line.
func merge(reported [][]device.Device, owners map[device.ID]int) (merged []device.Device, newOwners map[device.ID]int, refused map[refusal]bool) {
	newOwners = make(map[device.ID]int)
	refused = make(map[refusal]bool)
	for driver, devices := range reported {
		for _, d := range devices {
			if owner, had := owners[d.ID]; had && owner == driver {
				newOwners[d.ID] = driver
			}
		}
	}
	listed := make(map[device.ID]bool)
	for driver, devices := range reported {
		for _, d := range devices {
			if d.ID == "" {
				refused[refusal{driver, d.ID, "it has no id"}] = true
				continue
			}
			if owner, owned := newOwners[d.ID]; owned && owner != driver {
				refused[refusal{driver, d.ID, "another driver reports a device of this id"}] = true
				continue
			}
			if listed[d.ID] {
				refused[refusal{driver, d.ID, "the driver reports the id twice"}] = true
				continue
			}
			newOwners[d.ID] = driver
			listed[d.ID] = true
			merged = append(merged, d)
		}
	}
	device.Sort(merged)
	return merged, newOwners, refused
}
