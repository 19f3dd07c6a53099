package simulated

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// major is a number that Linux leaves to local and experimental use. It never
// hands it out, so a simulated node can not lead to a real device.
const major = 60

const nodeMode = 0o666

// node is a character device in the folder dev.
type node struct {
	name  string
	minor uint32
}

// The nodes that every user of the vendor's driver opens, numbered from the
// top, out of the way of the devices.
var controlNodes = []node{{"nvidiactl", 255}, {"nvidia-uvm", 254}}

func deviceNode(index int) node {
	return node{fmt.Sprintf("nvidia%d", index), uint32(index)}
}

// makeNodes makes the control nodes and those of so many devices.
func makeNodes(root *os.Root, devices int) error {
	folder, err := root.Open(devFolder)
	if err != nil {
		return err
	}
	defer folder.Close()
	for _, n := range controlNodes {
		if err := n.make(folder); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	for i := range devices {
		n := deviceNode(i)
		if err := n.make(folder); err != nil {
			return fmt.Errorf("%s: %w", n.name, err)
		}
	}
	return nil
}

// make sees to it that the node is in the folder. Something else with its name
// is removed, but never the node of another device: then the folder is not
// the driver's own.
func (n node) make(folder *os.File) error {
	at := int(folder.Fd())
	var found unix.Stat_t
	err := unix.Fstatat(at, n.name, &found, unix.AT_SYMLINK_NOFOLLOW)
	switch {
	case err == nil && n.is(found):
		return nil
	case err == nil && foreign(found):
		return fmt.Errorf("it is the node of device %d:%d; the simulated driver needs a folder of its own",
			unix.Major(found.Rdev), unix.Minor(found.Rdev))
	case err == nil:
		if err := remove(at, n.name, found); err != nil {
			return fmt.Errorf("something else has its name, and removing it fails: %w", err)
		}
	case !errors.Is(err, unix.ENOENT):
		return err
	}

	err = unix.Mknodat(at, n.name, unix.S_IFCHR|nodeMode, int(unix.Mkdev(major, n.minor)))
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("mknod: %w; run as root, in a container with the capability MKNOD", err)
	}
	if err != nil {
		return fmt.Errorf("mknod: %w", err)
	}
	return unix.Fchmodat(at, n.name, nodeMode, 0) // mknod minds the umask
}

func (n node) is(found unix.Stat_t) bool {
	return found.Mode == unix.S_IFCHR|nodeMode && found.Rdev == unix.Mkdev(major, n.minor)
}

func foreign(found unix.Stat_t) bool {
	kind := found.Mode & unix.S_IFMT
	return kind == unix.S_IFBLK || kind == unix.S_IFCHR && unix.Major(found.Rdev) != major
}

// remove removes a file, a link or an empty folder, such as a container
// runtime makes where the path of a mount is missing.
func remove(at int, name string, found unix.Stat_t) error {
	flags := 0
	if found.Mode&unix.S_IFMT == unix.S_IFDIR {
		flags = unix.AT_REMOVEDIR
	}
	return unix.Unlinkat(at, name, flags)
}
