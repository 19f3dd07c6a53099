package simulated

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/device"
)

// TestRepair spoils the folder, and wants it as it was after the next Watch,
// and after the next Prepare of a driver that has been running all along.
func TestRepair(t *testing.T) {
	for _, test := range []struct {
		name  string
		spoil func(root string) error
	}{
		{"nothing", func(string) error { return nil }},
		{"all is gone", os.RemoveAll},
		{"a node is gone", func(root string) error { return os.Remove(root + "/dev/nvidia1") }},
		{"the nodes are gone", func(root string) error { return os.RemoveAll(root + "/dev") }},
		{"the driver is gone", func(root string) error { return os.RemoveAll(root + "/driver") }},
		{"a file for a node", func(root string) error {
			return errors.Join(os.Remove(root+"/dev/nvidia0"), os.WriteFile(root+"/dev/nvidia0", []byte("x"), 0o666))
		}},
		{"a folder for a node", func(root string) error {
			return errors.Join(os.Remove(root+"/dev/nvidia0"), os.Mkdir(root+"/dev/nvidia0", 0o755))
		}},
		{"a link for a node", func(root string) error {
			return errors.Join(os.Remove(root+"/dev/nvidia0"), os.Symlink("nvidia1", root+"/dev/nvidia0"))
		}},
		{"a pipe for a node", func(root string) error {
			return errors.Join(os.Remove(root+"/dev/nvidiactl"), unix.Mkfifo(root+"/dev/nvidiactl", 0o666))
		}},
		{"another's number", func(root string) error {
			return errors.Join(os.Remove(root+"/dev/nvidia0"),
				unix.Mknod(root+"/dev/nvidia0", unix.S_IFCHR|0o666, int(unix.Mkdev(major, 1))))
		}},
		{"a closed node", func(root string) error { return os.Chmod(root+"/dev/nvidia0", 0o600) }},
		{"a closed folder", func(root string) error { return os.Chmod(root+"/driver", 0o700) }},
		{"another version", func(root string) error { return os.WriteFile(root+"/driver/version", []byte("real"), 0o644) }},
		{"a crash in the middle of the version", func(root string) error {
			return errors.Join(os.Remove(root+"/driver/version"), os.WriteFile(root+"/driver/version.tmp", []byte("# Th"), 0o600))
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := filepath.Join(t.TempDir(), "simulated")
			d := open(t, "t4x2", root)
			id := look(t, d)[0].ID
			want := tree(t, root)
			version, err := os.ReadFile(root + "/driver/version")
			if err != nil {
				t.Fatal(err)
			}
			for _, again := range []struct {
				name   string
				repair func()
			}{
				{"Watch", func() { look(t, open(t, "t4x2", root)) }},
				{"Prepare", func() {
					if _, err := d.Prepare(t.Context(), device.Grant{ID: "g", Devices: []device.ID{id}}); err != nil {
						t.Error(err)
					}
				}},
			} {
				if err := test.spoil(root); err != nil {
					t.Fatal(err)
				}
				again.repair()
				if got := tree(t, root); !slices.Equal(got, want) {
					t.Errorf("after %s the folder has\n%s\nwant\n%s", again.name, strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
				if now, err := os.ReadFile(root + "/driver/version"); string(now) != string(version) {
					t.Errorf("after %s the version is %q, %v", again.name, now, err)
				}
			}
		})
	}
}

func TestRepairOnlyLooksWhereAllIsWell(t *testing.T) {
	root := t.TempDir()
	inodes := func() []uint64 {
		var all []uint64
		for _, name := range []string{"dev/nvidia0", "dev/nvidiactl", "driver/version"} {
			var found unix.Stat_t
			if err := unix.Lstat(filepath.Join(root, name), &found); err != nil {
				t.Fatal(err)
			}
			all = append(all, found.Ino)
		}
		return all
	}
	look(t, open(t, "t4x2", root))
	before := inodes()
	look(t, open(t, "t4x2", root))
	if after := inodes(); !slices.Equal(before, after) {
		t.Errorf("what was sound was made again: %v, then %v", before, after)
	}
}

// TestNothingOutside puts links that lead out of the folder where the driver
// writes, and wants what they lead to untouched.
func TestNothingOutside(t *testing.T) {
	for _, test := range []struct {
		name    string
		link    string // within the folder
		target  string // beside it
		refused bool
	}{
		{"the folder of nodes", "dev", "outside", true},
		{"the driver's folder", "driver", "outside", true},
		{"the driver's libraries", "driver/lib64", "outside", true},
		{"a node", "dev/nvidia0", "outside/file", false},
		{"a node that would be new", "dev/nvidia0", "outside/new", false},
		{"the version", "driver/version", "outside/file", false},
		{"the temporary version", "driver/version.tmp", "outside/file", false},
		{"the faults", "faults.json", "outside/file", false},
		{"the temporary faults", "faults.json.tmp", "outside/new", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			parent := t.TempDir()
			root, outside := filepath.Join(parent, "simulated"), filepath.Join(parent, "outside")
			link := filepath.Join(root, test.link)
			if err := errors.Join(
				os.Mkdir(outside, 0o700),
				os.WriteFile(outside+"/file", []byte("mine"), 0o600),
				os.MkdirAll(filepath.Dir(link), 0o755),
				os.Symlink(filepath.Join(parent, test.target), link),
			); err != nil {
				t.Fatal(err)
			}
			before := tree(t, outside)

			d := open(t, "t4x2", root)
			var watched bool
			err := d.Watch(ended(t), func([]device.Device) { watched = true })
			if refused := err != nil; refused != test.refused || watched == test.refused {
				t.Errorf("Watch returned %v, and reported: %v", err, watched)
			}
			if err := d.Fail(d.devices[0].ID, "to have it written"); err != nil {
				t.Error(err)
			}
			if after := tree(t, outside); !slices.Equal(before, after) {
				t.Errorf("outside was %v and is %v", before, after)
			}
			if file, err := os.ReadFile(outside + "/file"); string(file) != "mine" {
				t.Errorf("the file outside says %q, %v", file, err)
			}
			beside, err := os.ReadDir(parent)
			if err != nil || len(beside) != 2 {
				t.Errorf("beside the folder are %v, %v", beside, err)
			}
		})
	}
}

func TestForeignNodeIsRefused(t *testing.T) {
	root := t.TempDir()
	real := filepath.Join(root, "dev", "nvidia0")
	if err := errors.Join(
		os.Mkdir(filepath.Dir(real), 0o755),
		unix.Mknod(real, unix.S_IFCHR|0o666, int(unix.Mkdev(195, 0))),
	); err != nil {
		t.Fatal(err)
	}
	err := open(t, "t4x2", root).Watch(ended(t), func([]device.Device) { t.Error("reported") })
	if err == nil || !strings.Contains(err.Error(), "nvidia0: it is the node of device 195:0; the simulated driver needs a folder of its own") {
		t.Errorf("Watch returned %v", err)
	}
	var found unix.Stat_t
	if err := unix.Lstat(real, &found); err != nil || found.Rdev != unix.Mkdev(195, 0) {
		t.Errorf("the node is now %d:%d, %v", unix.Major(found.Rdev), unix.Minor(found.Rdev), err)
	}
}

func TestFullFolderIsNotRemoved(t *testing.T) {
	root := t.TempDir()
	if err := os.MkdirAll(root+"/dev/nvidia0/something", 0o755); err != nil {
		t.Fatal(err)
	}
	err := open(t, "t4x2", root).Watch(ended(t), func([]device.Device) { t.Error("reported") })
	if !errors.Is(err, unix.ENOTEMPTY) {
		t.Errorf("Watch returned %v", err)
	}
}

// TestNotPermitted gives up the capability in one thread, which ends with the
// goroutine that is locked to it.
func TestNotPermitted(t *testing.T) {
	d := open(t, "t4x2", t.TempDir())
	result := make(chan error)
	go func() {
		runtime.LockOSThread()
		if err := dropMknod(); err != nil {
			result <- err
			return
		}
		result <- d.Watch(ended(t), func([]device.Device) { t.Error("reported") })
	}()
	err := <-result
	if !errors.Is(err, unix.EPERM) || !strings.Contains(err.Error(), "run as root, in a container with the capability MKNOD") {
		t.Errorf("Watch returned %v", err)
	}
}

func dropMknod() error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return err
	}
	data[0].Effective &^= 1 << unix.CAP_MKNOD
	return unix.Capset(&header, &data[0])
}
