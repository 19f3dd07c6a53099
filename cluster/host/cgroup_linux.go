package host

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

const cgroupMount = "/sys/fs/cgroup"

// Cgroups are the machine's cgroup hierarchies: one on cgroup v2, one for
// each controller on v1.
type Cgroups struct {
	hierarchies []string
	unified     bool
}

// FindCgroups looks how the machine has mounted its cgroups.
func FindCgroups() (Cgroups, error) {
	var fs unix.Statfs_t
	if err := unix.Statfs(cgroupMount, &fs); err != nil {
		return Cgroups{}, fmt.Errorf("look at %s: %w", cgroupMount, err)
	}
	if fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return Cgroups{hierarchies: []string{cgroupMount}, unified: true}, nil
	}
	mounts, err := os.Open("/proc/self/mounts")
	if err != nil {
		return Cgroups{}, err
	}
	defer mounts.Close()
	var c Cgroups
	for lines := bufio.NewScanner(mounts); lines.Scan(); {
		// Beside the controllers of v1 there may be a v2 hierarchy without any.
		if fields := strings.Fields(lines.Text()); len(fields) > 2 && strings.HasPrefix(fields[2], "cgroup") {
			c.hierarchies = append(c.hierarchies, fields[1])
		}
	}
	if len(c.hierarchies) == 0 {
		return Cgroups{}, fmt.Errorf("no cgroup is mounted below %s", cgroupMount)
	}
	return c, nil
}

// Make makes the folder, with what its processes may use, in every hierarchy.
func (c Cgroups) Make(folder string) error {
	for _, hierarchy := range c.hierarchies {
		path := hierarchy
		for part := range strings.SplitSeq(folder, "/") {
			parent := path
			path = filepath.Join(path, part)
			if c.unified {
				passControllersOn(parent)
			}
			if err := os.Mkdir(path, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
				return fmt.Errorf("make the cgroup %s: %w", path, err)
			}
			if err := inheritCPUSet(parent, path); err != nil {
				return err
			}
		}
	}
	return nil
}

// passControllersOn lets the children of a v2 cgroup have what it has itself.
// One that can not be passed on (the kernel refuses some in places) is left
// out: the kubelet says what it misses.
func passControllersOn(path string) {
	available, err := os.ReadFile(filepath.Join(path, "cgroup.controllers"))
	if err != nil {
		return
	}
	for controller := range strings.FieldsSeq(string(available)) {
		_ = os.WriteFile(filepath.Join(path, "cgroup.subtree_control"), []byte("+"+controller), 0o644)
	}
}

// inheritCPUSet fills in what a v1 cpuset starts without, and can not hold a
// process without.
func inheritCPUSet(parent, path string) error {
	for _, file := range []string{"cpuset.cpus", "cpuset.mems"} {
		value, err := os.ReadFile(filepath.Join(path, file))
		if err != nil || strings.TrimSpace(string(value)) != "" {
			continue
		}
		if value, err = os.ReadFile(filepath.Join(parent, file)); err != nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(path, file), value, 0o644); err != nil && len(strings.TrimSpace(string(value))) > 0 {
			return fmt.Errorf("fill in %s: %w", filepath.Join(path, file), err)
		}
	}
	return nil
}

// Enter moves the calling process into the folder, in the one hierarchy that
// is enough to find it again.
func (c Cgroups) Enter(folder string) error {
	return os.WriteFile(filepath.Join(c.tracking(), folder, "cgroup.procs"), []byte("0"), 0o644)
}

func (c Cgroups) tracking() string {
	for _, hierarchy := range c.hierarchies {
		if filepath.Base(hierarchy) == "pids" {
			return hierarchy
		}
	}
	return c.hierarchies[0]
}

// Processes are all processes in the folder and below it.
func (c Cgroups) Processes(folder string) []int {
	var pids []int
	seen := map[int]bool{}
	for _, hierarchy := range c.hierarchies {
		_ = filepath.WalkDir(filepath.Join(hierarchy, folder), func(path string, entry os.DirEntry, err error) error {
			if err != nil || entry.Name() != "cgroup.procs" {
				return nil
			}
			data, _ := os.ReadFile(path)
			for field := range strings.FieldsSeq(string(data)) {
				if pid, err := strconv.Atoi(field); err == nil && pid > 0 && !seen[pid] {
					seen[pid] = true
					pids = append(pids, pid)
				}
			}
			return nil
		})
	}
	return pids
}

// Remove ends every process in the folder and removes it from all
// hierarchies.
func (c Cgroups) Remove(folder string, timeout time.Duration) error {
	deadline := time.Now().Add(timeout)
	for {
		pids := c.Processes(folder)
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
		var left string
		for _, hierarchy := range c.hierarchies {
			if path := filepath.Join(hierarchy, folder); !removeTree(path) {
				left = path
			}
		}
		if left == "" {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the cgroup %s can not be removed; processes in it: %v", left, pids)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// removeTree removes a folder of cgroups, deepest first, and reports whether
// it is gone.
func removeTree(path string) bool {
	entries, _ := os.ReadDir(path)
	for _, entry := range entries {
		if entry.IsDir() {
			removeTree(filepath.Join(path, entry.Name()))
		}
	}
	err := os.Remove(path)
	return err == nil || errors.Is(err, os.ErrNotExist)
}
