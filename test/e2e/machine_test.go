//go:build e2e

package e2e

import (
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// machine is what a cluster could leave behind on it.
type machine map[string]bool

func lookAtMachine(bin string) machine {
	m := machine{}
	m.mounts()
	m.cgroups()
	m.interfaces()
	m.processes(bin)
	m.files()
	if forward, err := os.ReadFile("/proc/sys/net/ipv4/ip_forward"); err == nil {
		m["ip_forward is "+strings.TrimSpace(string(forward))] = true
	}
	return m
}

// missingFrom lists what the later look has and this one has not.
func (m machine) missingFrom(later machine) []string {
	var more []string
	for thing := range later {
		if !m[thing] {
			more = append(more, thing)
		}
	}
	return more
}

func (m machine) mounts() {
	data, _ := os.ReadFile("/proc/self/mountinfo")
	for line := range strings.Lines(string(data)) {
		if fields := strings.Fields(line); len(fields) > 4 {
			m["mount at "+fields[4]] = true
		}
	}
}

func (m machine) cgroups() {
	_ = filepath.WalkDir("/sys/fs/cgroup", func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() && (strings.Contains(path, "kilter") || strings.Contains(path, "kubepods")) {
			m["cgroup "+path] = true
		}
		return nil
	})
}

func (m machine) interfaces() {
	all, _ := net.Interfaces()
	for _, one := range all {
		m["interface "+one.Name] = true
	}
}

// processes are those of the programs under test, wherever they ended up, and
// the network namespaces that any process is in.
func (m machine) processes(bin string) {
	links, _ := filepath.Glob("/proc/[0-9]*/exe")
	for _, link := range links {
		program, err := os.Readlink(link)
		if err != nil {
			continue
		}
		name := filepath.Base(program)
		if strings.HasPrefix(program, bin) || name == "pause" || name == "probe" || program == "/kilter" {
			m["process "+program+" "+filepath.Base(filepath.Dir(link))] = true
		}
		if namespace, err := os.Readlink(filepath.Join(filepath.Dir(link), "ns/net")); err == nil {
			m["network namespace "+namespace] = true
		}
	}
}

func (m machine) files() {
	for _, folder := range []string{"/", "/var/lib", "/run", "/var/run", "/etc", "/etc/cni", "/opt", "/run/netns", "/var/log", "/dev"} {
		entries, _ := os.ReadDir(folder)
		for _, entry := range entries {
			// Terminals and the like come and go on a machine in use.
			if folder == "/dev" && !strings.HasPrefix(entry.Name(), "nvidia") {
				continue
			}
			m["file "+filepath.Join(folder, entry.Name())] = true
		}
	}
}
