package host

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// PortHolder names the process that listens on the port at the address, or at
// all addresses; it is empty when nobody does.
func PortHolder(address netip.Addr, port int) string {
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		data, err := os.ReadFile(table)
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(data)) {
			if inode, ok := listens(line, address, port); ok {
				return holderOf(inode)
			}
		}
	}
	return ""
}

// listens reads a line of /proc/net/tcp: whether it is a listener that stands
// in the way, and the inode of its socket.
func listens(line string, address netip.Addr, port int) (inode string, ok bool) {
	const listening = "0A"
	fields := strings.Fields(line)
	if len(fields) < 10 || fields[3] != listening {
		return "", false
	}
	hexAddress, hexPort, _ := strings.Cut(fields[1], ":")
	if p, err := strconv.ParseUint(hexPort, 16, 16); err != nil || int(p) != port {
		return "", false
	}
	local, err := parseAddress(hexAddress)
	if err != nil || !(local.IsUnspecified() || local == address) {
		return "", false
	}
	return fields[9], true
}

// parseAddress reads the kernel's notation: words of four bytes, each with
// its bytes reversed.
func parseAddress(text string) (netip.Addr, error) {
	bytes, err := hex.DecodeString(text)
	if err != nil {
		return netip.Addr{}, err
	}
	for word := 0; word+4 <= len(bytes); word += 4 {
		b := bytes[word : word+4]
		b[0], b[1], b[2], b[3] = b[3], b[2], b[1], b[0]
	}
	address, ok := netip.AddrFromSlice(bytes)
	if !ok {
		return netip.Addr{}, fmt.Errorf("%q is no address", text)
	}
	return address.Unmap(), nil
}

func holderOf(inode string) string {
	links, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, link := range links {
		if target, err := os.Readlink(link); err == nil && target == "socket:["+inode+"]" {
			pid := strings.Split(link, "/")[2]
			name, _ := os.ReadFile(filepath.Join("/proc", pid, "comm"))
			return fmt.Sprintf("%s (pid %s)", strings.TrimSpace(string(name)), pid)
		}
	}
	return "a process that can not be seen from here"
}
