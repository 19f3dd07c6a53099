package image

import (
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
)

// Where the dynamic loaders of Debian, Ubuntu, Fedora and their kin look by
// default. A library keeps its path in the image, so its loader finds it.
var libraryFolders = []string{
	"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu",
	"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
	"/lib64", "/usr/lib64", "/lib", "/usr/lib",
}

// What libraries that are opened at run time, as a GPU's driver is, expect of
// the C library around them.
var alwaysWithLibc = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "librt.so.1"}

// libraries lists the files that a program needs in order to start: its
// dynamic loader and its shared libraries, and theirs. It is empty for a
// static program.
func libraries(program string) ([]string, error) {
	interpreter, needed, err := dynamic(program)
	if err != nil {
		return nil, fmt.Errorf("read the program %s: %w", program, err)
	}
	if interpreter == "" {
		return nil, nil
	}
	files := []string{interpreter}
	queue := append(needed, alwaysWithLibc...)
	for seen := map[string]bool{}; len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if seen[name] {
			continue
		}
		seen[name] = true
		file, err := findLibrary(name)
		if err != nil {
			if slices.Contains(alwaysWithLibc, name) {
				continue // newer C libraries are one file
			}
			return nil, fmt.Errorf("%s needs %s: %w", program, name, err)
		}
		_, more, err := dynamic(file)
		if err != nil {
			return nil, fmt.Errorf("read the library %s: %w", file, err)
		}
		files = append(files, file)
		queue = append(queue, more...)
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// dynamic reads an ELF file's dynamic loader and the libraries it names.
func dynamic(path string) (interpreter string, needed []string, err error) {
	file, err := elf.Open(path)
	if err != nil {
		return "", nil, err
	}
	defer file.Close()
	for _, segment := range file.Progs {
		if segment.Type == elf.PT_INTERP {
			data := make([]byte, segment.Filesz)
			if _, err := segment.ReadAt(data, 0); err != nil {
				return "", nil, err
			}
			interpreter = string(data[:len(data)-1])
		}
	}
	needed, err = file.ImportedLibraries()
	return interpreter, needed, err
}

func findLibrary(name string) (string, error) {
	if filepath.IsAbs(name) {
		return name, nil
	}
	for _, folder := range libraryFolders {
		if path := filepath.Join(folder, name); isFile(path) {
			return path, nil
		}
	}
	return "", errors.New("not found in the usual library folders")
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
