package nvidia

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

func TestLibraryIsLookedForOnTheHost(t *testing.T) {
	root := t.TempDir()
	l := library{host: os.DirFS(root), hostRoot: root}
	if _, err := l.load(); !errors.Is(err, errNoLibrary) {
		t.Fatalf("got %v where there is no driver", err)
	}

	folder := filepath.Join(root, "usr/lib/x86_64-linux-gnu")
	install := func(version string) {
		t.Helper()
		name, link := "libnvidia-ml.so."+version, filepath.Join(folder, "libnvidia-ml.so.1")
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name), []byte("no library"), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(link); err != nil && !errors.Is(err, os.ErrNotExist) {
			t.Fatal(err)
		}
		if err := os.Symlink(name, link); err != nil {
			t.Fatal(err)
		}
	}
	install("550.54.15")
	lib, err := l.load()
	if err != nil {
		t.Fatal(err)
	}
	if ret := lib.Init(); ret != nvml.ERROR_LIBRARY_NOT_FOUND {
		t.Errorf("a file that is no library started with %d", ret)
	}
	if again, err := l.load(); err != nil || again != lib {
		t.Errorf("it was loaded a second time: %v, %v", again, err)
	}

	install("570.86.15")
	if _, err := l.load(); !errors.Is(err, ErrDriverReplaced) || !strings.Contains(err.Error(), "570.86.15") {
		t.Errorf("got %v after the driver was replaced", err)
	}
}
