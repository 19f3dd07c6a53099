package conformance

import (
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

// stranger is an id that no driver has.
const stranger device.ID = "no-such-device-of-the-conformance-suite"

// prepare prepares a grant and checks the edits.
func prepare(s Subject, grantID string, ids ...device.ID) (device.Edits, error) {
	ctx, cancel := background(s)
	defer cancel()
	edits, err := s.Driver.Prepare(ctx, device.Grant{ID: grantID, Devices: ids})
	if err != nil {
		return device.Edits{}, fmt.Errorf("Prepare of grant %s with %v: %w", grantID, ids, err)
	}
	if err := Edits(edits); err != nil {
		return device.Edits{}, fmt.Errorf("Prepare of grant %s with %v: %w", grantID, ids, err)
	}
	return edits, nil
}

func unprepare(s Subject, grantID string) error {
	ctx, cancel := background(s)
	defer cancel()
	if err := s.Driver.Unprepare(ctx, grantID); err != nil {
		return fmt.Errorf("Unprepare of grant %s: %w", grantID, err)
	}
	return nil
}

func checkEdits(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		var all []device.ID
		for _, d := range devices {
			all = append(all, d.ID)
			edits, err := prepare(s, "one-"+string(d.ID), d.ID)
			if err != nil {
				return err
			}
			if len(own(s, edits)) == 0 {
				return fmt.Errorf("the grant of %s has no node of its own: %+v", d.ID, edits.DeviceNodes)
			}
		}
		_, err := prepare(s, "all", all...)
		return err
	})
}

func checkIdempotent(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		id := devices[0].ID
		first, err := prepare(s, "twice", id)
		if err != nil {
			return err
		}
		footprint, err := s.footprint()
		if err != nil {
			return err
		}
		wanted := cloneEdits(first)
		scribble(first)
		again, err := prepare(s, "twice", id)
		if err != nil {
			return err
		}
		if !sameEdits(again, wanted) {
			return fmt.Errorf("Prepare gave %+v and, for the same grant, %+v", wanted, again)
		}
		return s.expectFootprint(footprint, "preparing the same grant again")
	})
}

func checkUnknownOnly(s Subject) error {
	return whileWatching(s, func(*watching, []device.Device) error {
		return refuses(s, device.Grant{ID: "unknown", Devices: []device.ID{stranger}}, stranger)
	})
}

func checkUnknownAmongKnown(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		known, other := devices[0].ID, stranger+"-2"
		grant := device.Grant{ID: "half-known", Devices: []device.ID{stranger, known, other}}
		if err := refuses(s, grant, stranger, other); err != nil {
			return err
		}
		// The refused grant was not recorded: its name is still free.
		after, err := prepare(s, grant.ID, known)
		if err != nil {
			return err
		}
		fresh, err := prepare(s, "fresh", known)
		if err != nil {
			return err
		}
		if !slices.Equal(hostPaths(after), hostPaths(fresh)) {
			return fmt.Errorf("a grant that was refused before got the nodes %v, a new one %v", hostPaths(after), hostPaths(fresh))
		}
		return nil
	})
}

// refuses checks that the grant fails, naming exactly the unknown devices,
// and leaves nothing behind.
func refuses(s Subject, grant device.Grant, unknown ...device.ID) error {
	footprint, err := s.footprint()
	if err != nil {
		return err
	}
	ctx, cancel := background(s)
	defer cancel()
	edits, err := s.Driver.Prepare(ctx, grant)
	if err := namesUnknown(s, err, unknown...); err != nil {
		return fmt.Errorf("Prepare of %v: %w", grant.Devices, err)
	}
	if !sameEdits(edits, device.Edits{}) {
		return fmt.Errorf("Prepare of %v failed and yet returned %+v", grant.Devices, edits)
	}
	return s.expectFootprint(footprint, "a grant that was refused")
}

func namesUnknown(s Subject, err error, unknown ...device.ID) error {
	var named *hardware.UnknownDeviceError
	if !errors.As(err, &named) {
		return fmt.Errorf("got the error %v, wanted an UnknownDeviceError", err)
	}
	got := slices.Sorted(slices.Values(named.IDs))
	slices.Sort(unknown)
	if !slices.Equal(got, unknown) {
		return fmt.Errorf("the error names %v, unknown are %v", got, unknown)
	}
	if named.Driver != s.Driver.Name() {
		return fmt.Errorf("the error names the driver %q, which is called %q", named.Driver, s.Driver.Name())
	}
	return nil
}

func checkUnprepare(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		id := devices[0].ID
		footprint, err := s.footprint()
		if err != nil {
			return err
		}
		before, err := prepare(s, "undone", id)
		if err != nil {
			return err
		}
		for range 2 {
			if err := unprepare(s, "undone"); err != nil {
				return err
			}
		}
		if err := s.expectFootprint(footprint, "Unprepare"); err != nil {
			return err
		}
		after, err := prepare(s, "undone", id)
		if err != nil {
			return err
		}
		if !slices.Equal(hostPaths(before), hostPaths(after)) {
			return fmt.Errorf("after Unprepare the same grant got the nodes %v, before %v", hostPaths(after), hostPaths(before))
		}
		return nil
	})
}

func checkUnprepareUnknown(s Subject) error {
	return whileWatching(s, func(*watching, []device.Device) error {
		return unprepare(s, "never-prepared")
	})
}

func sameEdits(a, b device.Edits) bool {
	return slices.Equal(a.DeviceNodes, b.DeviceNodes) && slices.Equal(a.Mounts, b.Mounts) &&
		(len(a.Env)+len(b.Env) == 0 || reflect.DeepEqual(a.Env, b.Env))
}
