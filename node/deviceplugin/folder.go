package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// How often the folder is looked at even when nothing is heard from it. Events
// are quick; looking is what can be relied on.
const (
	lookPause    = 3 * time.Second
	missingPause = time.Second
)

// identity tells a file from another that has taken its place.
type identity struct {
	device, inode uint64
	modified      int64
}

func identify(path string) (identity, error) {
	info, err := os.Lstat(path)
	if err != nil {
		return identity{}, err
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return identity{}, fmt.Errorf("%s: the system does not tell files apart", path)
	}
	return identity{stat.Dev, stat.Ino, info.ModTime().UnixNano()}, nil
}

// folder watches the kubelet's folder and tells when to look at it again.
type folder struct {
	path   string
	logger *slog.Logger

	mu      sync.Mutex
	changed chan struct{}
}

func newFolder(path string, logger *slog.Logger) *folder {
	return &folder{path: path, logger: logger, changed: make(chan struct{})}
}

// change returns a channel that is closed when something may have happened in
// the folder, and in any case every few seconds.
func (f *folder) change() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.changed
}

func (f *folder) announce() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.changed)
	f.changed = make(chan struct{})
}

// watch announces changes until ctx ends. It returns an error when the folder
// can never again be seen from this process.
func (f *folder) watch(ctx context.Context) error {
	// Without events, looking every now and then has to do.
	var events chan fsnotify.Event
	watcher, err := fsnotify.NewWatcher()
	if err != nil {
		f.logger.Warn("no file events; the kubelet's folder is looked at every few seconds", "error", err)
	} else {
		defer func() { _ = watcher.Close() }()
		events = watcher.Events
	}
	var watched inode
	for {
		found, err := f.inspect()
		if err != nil {
			return err
		}
		if found != watched && watcher != nil {
			// A folder that was made anew needs a new watch. Its removal has
			// ended the old one.
			watched = inode{}
			if found != (inode{}) && watcher.Add(f.path) == nil {
				watched = found
			}
		}
		pause := lookPause
		if found == (inode{}) {
			pause = missingPause
		}
		f.announce()
		if !f.hear(ctx, events, pause) {
			return nil
		}
	}
}

// hear waits for an event that matters, or the end of the pause.
func (f *folder) hear(ctx context.Context, events <-chan fsnotify.Event, pause time.Duration) bool {
	timer := time.After(pause)
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer:
			return true
		case event := <-events:
			name := filepath.Base(event.Name)
			if name == kubeletSocket || strings.HasPrefix(name, socketPrefix) || event.Name == f.path {
				return true
			}
		}
	}
}

// inode tells folders apart; the zero value is none.
type inode struct {
	device, number uint64
}

// inspect looks at the folder itself. A folder that was removed while it is
// mounted here is seen as one without a name: what is made in its place on the
// host can not be reached from this process any more.
func (f *folder) inspect() (inode, error) {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return inode{}, nil
	}
	if err != nil {
		return inode{}, fmt.Errorf("look at the kubelet's folder: %w", err)
	}
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() {
		return inode{}, fmt.Errorf("%s, the kubelet's folder for device plugins, is no folder", f.path)
	}
	if stat.Nlink == 0 {
		return inode{}, fmt.Errorf("%s was removed on the host and this process still has the old folder mounted; it must be started again to see the new one", f.path)
	}
	return inode{stat.Dev, stat.Ino}, nil
}

// removeStaleSockets removes what an agent before this one left behind: our
// sockets on which nobody listens.
func (f *folder) removeStaleSockets() {
	sockets, _ := filepath.Glob(filepath.Join(f.path, socketPrefix+"*.sock")) // the pattern is well-formed
	for _, path := range sockets {
		conn, err := net.DialTimeout("unix", path, time.Second)
		if err == nil {
			_ = conn.Close()
			continue
		}
		if errors.Is(err, syscall.ECONNREFUSED) {
			if err := os.Remove(path); err != nil {
				f.logger.Warn("could not remove an old socket", "socket", path, "error", err)
			}
		}
	}
}
