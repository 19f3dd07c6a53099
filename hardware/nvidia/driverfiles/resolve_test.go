package driverfiles

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// The links are real ones here, because they have to be followed as the kernel
// would if the folder were its root.
func TestResolveStaysInsideTheRoot(t *testing.T) {
	root := t.TempDir()
	for _, folder := range []string{"a/b", "c"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "a/b/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for link, target := range map[string]string{
		"c/relative": "../a/b/file",
		"c/absolute": "/a/b/file",
		"c/folder":   "/a/b",
		"c/above":    "../../../../a/b/file",
		"c/chain":    "relative",
		"c/loop":     "loop",
		"c/dangling": "/a/nothing",
		"c/root":     "/",
	} {
		if err := os.Symlink(target, filepath.Join(root, link)); err != nil {
			t.Fatal(err)
		}
	}
	for name, want := range map[string]string{
		"a/b/file":        "a/b/file",
		"c/relative":      "a/b/file",
		"c/absolute":      "a/b/file",
		"c/folder/file":   "a/b/file",
		"c/folder/../b":   "a/b",
		"c/above":         "a/b/file",
		"c/chain":         "a/b/file",
		"c/root/a":        "a",
		"c/root":          ".",
		"c/loop":          "",
		"c/dangling":      "",
		"c/relative/more": "",
	} {
		got, err := resolve(os.DirFS(root), name)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("resolve(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := fs.Stat(os.DirFS(root), "c/absolute"); err == nil {
		t.Error("the file system follows absolute links by itself, so resolve was not tested")
	}
}
