package host

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// Bind shows the folder Source at Target in a mount namespace.
type Bind struct{ Source, Target string }

// MakeMountNamespace makes a mount namespace in which each Target shows its
// Source, and pins it to the file so that it outlives every process. One that
// is pinned there already is kept: containers may be running in it.
//
// The file's folder must be a PinningFolder. The work inside the new namespace is done by a helper process: maker is the
// command line that calls MountAll there with the binds.
func MakeMountNamespace(file string, maker func(binds []Bind) []string, binds []Bind) error {
	if IsPinned(file) {
		return nil
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return err
	}
	args := maker(binds)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	// The helper says when it has mounted everything, and then holds the
	// namespace open until its standard input is closed.
	in, err := cmd.StdinPipe()
	if err != nil {
		return err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	var problem strings.Builder
	cmd.Stderr = &problem
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	_, readErr := out.Read(make([]byte, 1))
	if readErr == nil {
		err = unix.Mount(fmt.Sprintf("/proc/%d/ns/mnt", cmd.Process.Pid), file, "", unix.MS_BIND, "")
	}
	_ = in.Close()
	if waitErr := cmd.Wait(); readErr != nil || waitErr != nil {
		return fmt.Errorf("make a mount namespace: %w: %s", errors.Join(readErr, waitErr), strings.TrimSpace(problem.String()))
	}
	if err != nil {
		return fmt.Errorf("pin the mount namespace to %s: %w", file, err)
	}
	return nil
}

// MountAll makes the binds in the calling process' own, new namespace. Mounts
// below a target are passed on to what is started later, as the kubelet and
// the container runtime need; nothing is passed back to the machine.
func MountAll(binds []Bind) error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("separate the mounts: %w", err)
	}
	for _, bind := range binds {
		if err := unix.Mount(bind.Source, bind.Target, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("mount %s at %s: %w", bind.Source, bind.Target, err)
		}
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_SHARED, ""); err != nil {
		return fmt.Errorf("share the mounts: %w", err)
	}
	return nil
}

// EnterMountNamespace takes the calling thread, which must go on to exec, into
// the pinned namespace.
func EnterMountNamespace(file string) error {
	runtime.LockOSThread()
	ns, err := os.Open(file)
	if err != nil {
		return err
	}
	defer ns.Close()
	// Threads share the working directory and root; a namespace can be
	// entered only by one that does not.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return fmt.Errorf("unshare: %w", err)
	}
	if err := unix.Setns(int(ns.Fd()), unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("enter the mount namespace %s: %w", file, err)
	}
	return os.Chdir("/")
}

// IsPinned reports whether the file holds a namespace.
func IsPinned(file string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(file, &fs) == nil && fs.Type == unix.NSFS_MAGIC
}

// Unpin gives up the namespace at the file; it goes with its last process.
func Unpin(file string) error {
	for IsPinned(file) {
		if err := unix.Unmount(file, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unpin %s: %w", file, err)
		}
	}
	if err := os.Remove(file); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// PinningFolder makes the folder a mount of its own that passes nothing on:
// a namespace can not be pinned where it would be seen from inside itself.
func PinningFolder(folder string) error {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if isMountPoint(folder) {
		return nil
	}
	if err := unix.Mount(folder, folder, "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("mount %s: %w", folder, err)
	}
	if err := unix.Mount("", folder, "", unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make %s private: %w", folder, err)
	}
	return nil
}

// UnmountFolder undoes what the pinning of namespaces did to the folder.
func UnmountFolder(folder string) error {
	for isMountPoint(folder) {
		if err := unix.Unmount(folder, unix.MNT_DETACH); err != nil {
			return fmt.Errorf("unmount %s: %w", folder, err)
		}
	}
	return nil
}

func isMountPoint(path string) bool {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return false
	}
	for line := range strings.Lines(string(mounts)) {
		if fields := strings.Fields(line); len(fields) > 4 && fields[4] == path {
			return true
		}
	}
	return false
}
