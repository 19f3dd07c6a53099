package onemachine

import (
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/plan"
)

const neededDiskBytes = 2 << 30

// preflight looks for everything that would make Up fail half-way, and says
// what to do about it, before anything has been changed.
func preflight(c plan.Cluster) error {
	for _, program := range plan.Programs() {
		if _, err := os.Stat(c.Program(program)); err != nil {
			return fmt.Errorf("the program %s is missing from %s: run `make build`", program, c.Programs)
		}
	}
	if err := enoughDisk(c.Files.Data, neededDiskBytes); err != nil {
		return err
	}
	if longest := len(c.ContainerdSocket(longestName(c.Spec))); longest > 107 {
		return fmt.Errorf("the path of the data folder %s is too long for sockets below it (%d characters too many): choose a shorter one with --data", c.Files.Data, longest-107)
	}
	if err := kernelHas("overlay"); err != nil {
		return err
	}
	if _, err := host.FindCgroups(); err != nil {
		return err
	}
	used, err := host.SubnetInUse(c.Spec.Subnet, layout.Bridge)
	if err != nil {
		return err
	}
	if used != "" {
		return fmt.Errorf("the network %s is in use on this machine (%s): choose another with --subnet, such as --subnet 10.198.0.0/16", c.Spec.Subnet, used)
	}
	if holder := host.PortHolder(c.Addresses().API(), layout.APIPort); holder != "" {
		return portInUse("the API server", c.Addresses().API(), layout.APIPort, holder)
	}
	for i, node := range c.Spec.Nodes {
		if holder := host.PortHolder(c.Addresses().Node(i), layout.KubeletPort); holder != "" {
			return portInUse("the kubelet of "+node.Name, c.Addresses().Node(i), layout.KubeletPort, holder)
		}
	}
	return nil
}

func portInUse(who string, address netip.Addr, port int, holder string) error {
	return fmt.Errorf("%s needs port %d at %s, and %s listens there or at all addresses: stop that, or let it listen on an address of its own", who, port, address, holder)
}

func longestName(spec plan.Spec) string {
	longest := ""
	for _, node := range spec.Nodes {
		if len(node.Name) > len(longest) {
			longest = node.Name
		}
	}
	return longest
}

// enoughDisk looks at the folder, or at the nearest one above it that exists.
func enoughDisk(folder string, need uint64) error {
	var fs unix.Statfs_t
	for unix.Statfs(folder, &fs) != nil && folder != "/" {
		folder = filepath.Dir(folder)
	}
	if free := fs.Bavail * uint64(fs.Bsize); free < need {
		return fmt.Errorf("%s has %d MiB free and the cluster needs %d MiB: free some, or choose another folder with --data", folder, free>>20, need>>20)
	}
	return nil
}

func kernelHas(filesystem string) error {
	known, err := os.ReadFile("/proc/filesystems")
	if err != nil {
		return fmt.Errorf("look for the kernel's file systems: %w", err)
	}
	for line := range strings.Lines(string(known)) {
		if fields := strings.Fields(line); len(fields) > 0 && fields[len(fields)-1] == filesystem {
			return nil
		}
	}
	return fmt.Errorf("the kernel has no %s file system, which containers need: `modprobe %s`, or another kernel", filesystem, filesystem)
}

// requireRoot is the first thing every command asks that changes the machine.
func requireRoot() error {
	if os.Geteuid() != 0 {
		return fmt.Errorf("only root can make the cgroups, mounts and devices that a cluster needs: run it with sudo")
	}
	return nil
}
