package nvidia

import (
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/device"
)

const (
	pciDevices = "sys/bus/pci/devices"
	pciDriver  = "sys/bus/pci/drivers/nvidia"
)

// place is where a GPU sits in the machine.
type place struct {
	address  string // as the kernel writes it; empty when not known
	root     string // the root complex, such as pci0000:00
	numaNode int
}

// placeOf looks an address up in sysfs. What sysfs does not say is left out.
func placeOf(host fs.FS, address string) place {
	p := place{address: address, numaNode: device.UnknownNUMANode}
	if address == "" {
		return p
	}
	folder := path.Join(pciDevices, address)
	if target, err := fs.ReadLink(host, folder); err == nil {
		for part := range strings.SplitSeq(target, "/") {
			if strings.HasPrefix(part, "pci") {
				p.root = part
				break
			}
		}
	}
	if text, err := fs.ReadFile(host, path.Join(folder, "numa_node")); err == nil {
		if node, err := strconv.Atoi(strings.TrimSpace(string(text))); err == nil && node >= 0 {
			p.numaNode = node
		}
	}
	return p
}

// onBus reports whether the machine has a device at the address; where sysfs
// can not be read, it says nothing against it.
func onBus(host fs.FS, address string) bool {
	if _, err := fs.Stat(host, pciDevices); err != nil || address == "" {
		return true
	}
	_, err := fs.Lstat(host, path.Join(pciDevices, address))
	return err == nil
}

// bound returns the addresses that the kernel's half of the driver serves, in
// one string to compare; empty where sysfs does not say.
func bound(host fs.FS) string {
	entries, err := fs.ReadDir(host, pciDriver)
	if err != nil {
		return ""
	}
	var addresses []string
	for _, e := range entries {
		if strings.Contains(e.Name(), ":") { // the rest are the driver's controls
			addresses = append(addresses, e.Name())
		}
	}
	return strings.Join(addresses, " ")
}

// addressOf turns NVML's address, as in 00000000:3B:00.0, into the kernel's,
// as in 0000:3b:00.0.
func addressOf(info nvml.PciInfo) string {
	domain, rest, ok := strings.Cut(strings.ToLower(text(info.BusId[:])), ":")
	if !ok {
		return ""
	}
	number, err := strconv.ParseUint(domain, 16, 32)
	if err != nil {
		return ""
	}
	return fmt.Sprintf("%04x:%s", number, rest)
}

// text reads a string of C.
func text(chars []int8) string {
	var b strings.Builder
	for _, c := range chars {
		if c == 0 {
			break
		}
		b.WriteByte(byte(c))
	}
	return b.String()
}
