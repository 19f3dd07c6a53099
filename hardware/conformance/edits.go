package conformance

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// Edits checks what a driver wants done to a container. It returns all that
// is wrong with it.
func Edits(edits device.Edits) error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }

	taken := map[string]bool{}
	place := func(what, hostPath, containerPath string) {
		for side, p := range map[string]string{"host": hostPath, "container": containerPath} {
			if !path.IsAbs(p) || path.Clean(p) != p {
				wrong("%s %s: %s path %q is not absolute and clean", what, containerPath, side, p)
			}
		}
		if taken[containerPath] {
			wrong("%s %s: the container path is used twice", what, containerPath)
		}
		taken[containerPath] = true
	}

	for _, n := range edits.DeviceNodes {
		place("device node", n.HostPath, n.ContainerPath)
		if !permissions(n.Permissions) {
			wrong("device node %s: permissions %q are not some of r, w and m", n.ContainerPath, n.Permissions)
		}
	}
	for _, m := range edits.Mounts {
		place("mount", m.HostPath, m.ContainerPath)
		if !m.ReadOnly {
			wrong("mount %s: it can be written from the container", m.ContainerPath)
		}
	}
	for name, value := range edits.Env {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.Contains(value, "\x00") {
			wrong("environment %q=%q can not be passed to a process", name, value)
		}
	}
	return errors.Join(errs...)
}

// permissions reports whether p holds at least one of r, w and m, and each at
// most once.
func permissions(p string) bool {
	rest := p
	for _, letter := range []string{"r", "w", "m"} {
		rest = strings.Replace(rest, letter, "", 1)
	}
	return p != "" && rest == ""
}
