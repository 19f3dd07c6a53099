package conformance

import (
	"fmt"
	"maps"
	"slices"

	"github.com/kilter-dev/kilter/device"
)

// checkApart is why grants exist: who holds one device can not open another.
func checkApart(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		owner := map[string]device.ID{}
		for _, d := range devices {
			edits, err := prepare(s, "apart-"+string(d.ID), d.ID)
			if err != nil {
				return err
			}
			for _, node := range own(s, edits) {
				if other, taken := owner[node]; taken {
					return fmt.Errorf("the grants of %s and %s both hold the node %s", other, d.ID, node)
				}
				owner[node] = d.ID
			}
		}

		// All but the last: the grant holds what its devices hold, and
		// nothing of the one that was left out.
		var ids []device.ID
		for _, d := range devices[:len(devices)-1] {
			ids = append(ids, d.ID)
		}
		edits, err := prepare(s, "all-but-one", ids...)
		if err != nil {
			return err
		}
		var wanted []string
		for node, id := range owner {
			if id != devices[len(devices)-1].ID {
				wanted = append(wanted, node)
			}
		}
		slices.Sort(wanted)
		if got := own(s, edits); !slices.Equal(got, wanted) {
			return fmt.Errorf("the grant of %v holds the nodes %v, its devices have %v", ids, got, wanted)
		}
		return nil
	})
}

// own returns the host paths of the nodes that are not shared, sorted.
func own(s Subject, edits device.Edits) []string {
	return slices.DeleteFunc(hostPaths(edits), func(path string) bool {
		return slices.Contains(s.SharedNodes, path)
	})
}

func hostPaths(edits device.Edits) []string {
	var paths []string
	for _, n := range edits.DeviceNodes {
		paths = append(paths, n.HostPath)
	}
	slices.Sort(paths)
	return paths
}

func cloneEdits(e device.Edits) device.Edits {
	return device.Edits{
		DeviceNodes: slices.Clone(e.DeviceNodes),
		Mounts:      slices.Clone(e.Mounts),
		Env:         maps.Clone(e.Env),
	}
}

// scribble writes over edits as a caller might, who owns what it was given.
func scribble(e device.Edits) {
	for i := range e.DeviceNodes {
		e.DeviceNodes[i] = device.DeviceNode{}
	}
	for i := range e.Mounts {
		e.Mounts[i] = device.Mount{}
	}
	clear(e.Env)
}

func (s Subject) footprint() (string, error) {
	if s.Footprint == nil {
		return "", nil
	}
	footprint, err := s.Footprint()
	if err != nil {
		return "", fmt.Errorf("look at the footprint: %w", err)
	}
	return footprint, nil
}

func (s Subject) expectFootprint(wanted, after string) error {
	got, err := s.footprint()
	if err == nil && got != wanted {
		err = fmt.Errorf("%s left %q on the machine, where %q was expected", after, got, wanted)
	}
	return err
}
