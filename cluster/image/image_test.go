package image

import (
	"archive/tar"
	"bytes"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
)

// compile makes a program; static ones need no libraries.
func compile(t *testing.T, static bool) string {
	t.Helper()
	folder := t.TempDir()
	source, program := filepath.Join(folder, "main.c"), filepath.Join(folder, "program")
	if err := os.WriteFile(source, []byte("int main(void) { return 0; }\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	args := []string{"-o", program, source}
	if static {
		args = append(args, "-static")
	}
	if out, err := exec.Command("gcc", args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return program
}

func contents(t *testing.T, recipe Recipe) []string {
	t.Helper()
	image, err := recipe.Build()
	if err != nil {
		t.Fatal(err)
	}
	files := mutate.Extract(image)
	defer files.Close()
	var names []string
	for reader := tar.NewReader(files); ; {
		header, err := reader.Next()
		if err == io.EOF {
			return names
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			names = append(names, header.Name)
		}
	}
}

func TestStaticProgramStandsAlone(t *testing.T) {
	if names := contents(t, Recipe{Reference: "a/b:c", Program: compile(t, true)}); !slices.Equal(names, []string{"program"}) {
		t.Errorf("the image holds %v", names)
	}
}

func TestDynamicProgramBringsItsLibraries(t *testing.T) {
	names := contents(t, Recipe{Reference: "a/b:c", Program: compile(t, false)})
	for _, want := range []string{"program", "libc.so.6", "ld-linux"} {
		if !slices.ContainsFunc(names, func(name string) bool { return strings.Contains(name, want) }) {
			t.Errorf("%s is not among %v", want, names)
		}
	}
}

func TestSameRecipeSameImage(t *testing.T) {
	recipe := Recipe{Reference: "a/b:c", Program: compile(t, true), Env: []string{"A=B"}}
	var archives [2]bytes.Buffer
	for i := range archives {
		image, err := recipe.Build()
		if err != nil {
			t.Fatal(err)
		}
		if err := Write(&archives[i], recipe.Reference, image); err != nil {
			t.Fatal(err)
		}
	}
	if !bytes.Equal(archives[0].Bytes(), archives[1].Bytes()) {
		t.Error("two builds differ")
	}
}

func TestWhatIsNoProgramIsRefused(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + "-missing"} {
		if _, err := (Recipe{Reference: "a/b:c", Program: path}).Build(); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if err := Write(io.Discard, "NOT a name", nil); err == nil {
		t.Error("a bad name is taken")
	}
}
