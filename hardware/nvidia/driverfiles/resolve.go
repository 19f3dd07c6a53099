package driverfiles

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// maxLinks is where the kernel gives up as well.
const maxLinks = 40

// resolve follows every symbolic link of a path, within the file system: an
// absolute target starts again at its root. The host's root may be mounted
// somewhere below ours, where the kernel would follow such a link out of it.
// Paths here and below are fs.FS paths: slash-separated, without a leading
// slash, "." for the root.
func resolve(host fs.FS, name string) (string, error) {
	done, rest := ".", parts(name)
	for links := 0; len(rest) > 0; {
		next := path.Join(done, rest[0])
		if rest = rest[1:]; next == ".." || strings.HasPrefix(next, "../") {
			next = "."
		}
		info, err := fs.Lstat(host, next)
		if err != nil {
			return "", err
		}
		if info.Mode()&fs.ModeSymlink == 0 {
			done = next
			continue
		}
		if links++; links > maxLinks {
			return "", fmt.Errorf("follow /%s: more than %d links", name, maxLinks)
		}
		target, err := fs.ReadLink(host, next)
		if err != nil {
			return "", err
		}
		if path.IsAbs(target) {
			done = "."
		}
		rest = append(parts(target), rest...)
	}
	return done, nil
}

func parts(name string) []string {
	return strings.FieldsFunc(name, func(r rune) bool { return r == '/' })
}

// under returns the fs.FS path of a name in a folder of the host.
func under(root, name string) string {
	return strings.TrimPrefix(path.Join("/", root, name), "/")
}

// list returns the resolved path of a folder and what it holds.
func list(host fs.FS, name string) (string, []fs.DirEntry, bool) {
	if name == "" {
		name = "."
	}
	real, err := resolve(host, name)
	if err != nil {
		return "", nil, false
	}
	entries, err := fs.ReadDir(host, real)
	return real, entries, err == nil
}
