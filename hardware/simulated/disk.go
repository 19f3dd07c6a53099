package simulated

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"sync"

	"github.com/kilter-dev/kilter/machines"
)

const (
	devFolder    = "dev"
	driverFolder = "driver"
)

// disk is the driver's folder on the node. It goes through os.Root: whatever
// somebody puts into the folder, a link out of it is not followed.
type disk struct {
	path    string
	machine machines.Machine

	mu sync.Mutex // one repair at a time
}

// open makes the folder when it is missing. The caller closes it.
func (d *disk) open() (*os.Root, error) {
	if err := os.MkdirAll(d.path, 0o755); err != nil {
		return nil, fmt.Errorf("make the driver's folder: %w", err)
	}
	root, err := os.OpenRoot(d.path)
	if err != nil {
		return nil, fmt.Errorf("open the driver's folder: %w", err)
	}
	return root, nil
}

// repair makes what is missing and replaces what is wrong. Where nothing is,
// it only looks.
func (d *disk) repair() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	root, err := d.open()
	if err != nil {
		return err
	}
	defer root.Close()

	for _, name := range []string{devFolder, driverFolder, driverFolder + "/lib64", driverFolder + "/bin"} {
		if err := makeFolder(root, name); err != nil {
			return fmt.Errorf("make the folder %s in %s: %w", name, d.path, err)
		}
	}
	if err := keepFile(root, driverFolder+"/version", versionFile(d.machine)); err != nil {
		return fmt.Errorf("write %s/version in %s: %w", driverFolder, d.path, err)
	}
	if err := makeNodes(root, len(d.machine.Devices)); err != nil {
		return fmt.Errorf("make the device nodes in %s/%s: %w", d.path, devFolder, err)
	}
	return nil
}

func versionFile(m machines.Machine) []byte {
	return fmt.Appendf(nil, `# This is a simulated driver, made by Kilter. There is no GPU behind it.
simulated: true
machine: %s
driver: %s
cuda: %s
`, m.Name, m.DriverVersion, m.CUDAVersion)
}

// makeFolder makes a folder that every user can read: containers look into it
// as somebody else.
func makeFolder(root *os.Root, name string) error {
	const mode = 0o755
	info, err := root.Stat(name)
	switch {
	case err == nil && info.IsDir() && info.Mode().Perm() == mode:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		if err := root.Mkdir(name, mode); err != nil {
			return err
		}
	case err != nil:
		return err
	case !info.IsDir():
		return errors.New("something else has its name; remove it")
	}
	return root.Chmod(name, mode)
}

// keepFile writes the file unless it already says so.
func keepFile(root *os.Root, name string, data []byte) error {
	const mode = 0o644
	if info, err := root.Lstat(name); err == nil && info.Mode() == mode {
		if now, err := root.ReadFile(name); err == nil && string(now) == string(data) {
			return nil
		}
	}
	return writeFile(root, name, data, mode)
}

// writeFile replaces the file as a whole: a reader, or a crash in the middle,
// sees the old file or the new one. What is in the way of the temporary file
// is left from such a crash.
func writeFile(root *os.Root, name string, data []byte, mode fs.FileMode) error {
	temporary := name + ".tmp"
	if err := root.Remove(temporary); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	err = errors.Join(err, file.Chmod(mode), file.Sync(), file.Close())
	if err == nil {
		err = root.Rename(temporary, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temporary))
	}
	return syncFolder(root, path.Dir(name))
}

// syncFolder makes a rename in the folder last.
func syncFolder(root *os.Root, name string) error {
	folder, err := root.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
