package onemachine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
)

// Down takes the cluster away: its processes, mounts, cgroups, interfaces and
// the folders it made outside its data folder. The data folder goes too,
// unless keep is set: Up then brings the same cluster back. It needs nothing
// of what it removes to be whole, so it also clears up after a crash. It tells
// whether there was a cluster.
func Down(ctx context.Context, files layout.Files, keep bool) (there bool, err error) {
	if err := requireRoot(); err != nil {
		return false, err
	}
	// When the file is damaged, what it says is lost; what the machine shows
	// is not, and is taken away all the same.
	s, err := readState(files)
	if errors.Is(err, ErrNoCluster) {
		return false, nil
	}
	unlock, err := onlyOne(files)
	if err != nil {
		return true, err
	}
	defer unlock()
	if err := stopSupervisor(ctx, files); err != nil {
		return true, err
	}
	if err := giveBack(files, s); err != nil {
		return true, err
	}
	if keep {
		return true, nil
	}
	if err := os.RemoveAll(files.Data); err != nil {
		return true, fmt.Errorf("remove the data folder: %w", err)
	}
	return true, nil
}

// stopSupervisor asks the supervisor to stop its processes and waits for it.
func stopSupervisor(ctx context.Context, files layout.Files) error {
	pid := supervisorPID(files.Lock())
	if pid == 0 {
		return nil
	}
	if err := syscall.Kill(pid, syscall.SIGTERM); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("stop the supervisor (pid %d): %w", pid, err)
	}
	for supervisorPID(files.Lock()) != 0 {
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the supervisor (pid %d) to end: %w", pid, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// giveBack returns everything that was borrowed from the machine. The order
// matters: namespaces go with their last process.
func giveBack(files layout.Files, s state) error {
	cgroups, err := host.FindCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Remove(layout.Cgroup, 30*time.Second); err != nil {
		return err
	}
	pins, _ := filepath.Glob(files.Run("*.mnt"))
	for _, pin := range pins {
		if err := host.Unpin(pin); err != nil {
			return err
		}
	}
	if err := host.UnmountFolder(files.Run("")); err != nil {
		return err
	}
	if err := os.RemoveAll(files.Run("")); err != nil {
		return fmt.Errorf("remove sockets: %w", err)
	}
	if err := host.RemoveBridge(layout.Bridge); err != nil {
		return err
	}
	host.RemoveFolders(s.MadeFolders)
	if err := os.Remove(files.Status()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Statuses is how the cluster's processes are; running tells whether a
// supervisor looks after them.
func Statuses(files layout.Files) (statuses []process.Status, running bool, err error) {
	if _, err := readState(files); err != nil {
		return nil, false, err
	}
	statuses, err = process.ReadStatus(files.Status())
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, false, fmt.Errorf("read the status of the processes: %w", err)
	}
	return statuses, supervisorPID(files.Lock()) != 0, nil
}

// ContainerdSockets are the sockets of the nodes' container runtimes, by node.
func ContainerdSockets(files layout.Files) (map[string]string, error) {
	s, err := readState(files)
	if err != nil {
		return nil, err
	}
	sockets := map[string]string{}
	for _, node := range s.Spec.Nodes {
		sockets[node.Name] = s.cluster(files).ContainerdSocket(node.Name)
	}
	return sockets, nil
}
