// Package setup tests what stands between a new user and the first command:
// the scripts that look at the machine before anything is built.
package setup

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// preflight runs hack/preflight in a folder that everybody can read.
func preflight(t *testing.T, change func(cmd *exec.Cmd, folder string)) (string, error) {
	t.Helper()
	folder := t.TempDir()
	if err := os.Chmod(filepath.Dir(folder), 0o755); err != nil {
		t.Fatal(err)
	}
	for from, to := range map[string]string{"../../hack/preflight": "preflight", "../../go.mod": "go.mod"} {
		data, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, to), data, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command("/bin/bash", filepath.Join(folder, "preflight"))
	cmd.Dir = folder
	cmd.Env = os.Environ()
	change(cmd, folder)
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// only makes a PATH that has these programs and the plain ones of a system.
func only(t *testing.T, folder string, programs ...string) string {
	t.Helper()
	bin := filepath.Join(folder, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, program := range append(programs, "uname", "id", "awk", "sed", "sort", "head", "df", "tail", "tr", "dirname") {
		path, err := exec.LookPath(program)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(path, filepath.Join(bin, program)); err != nil {
			t.Fatal(err)
		}
	}
	return "PATH=" + bin
}

func TestMachineWithEverything(t *testing.T) {
	if out, err := preflight(t, func(*exec.Cmd, string) {}); err != nil || out != "" {
		t.Errorf("%v: %s", err, out)
	}
}

func TestWhatIsMissingIsSaidInOneSentence(t *testing.T) {
	for name, test := range map[string]struct {
		change func(cmd *exec.Cmd, folder string)
		want   string
	}{
		"not root": {func(cmd *exec.Cmd, _ string) {
			cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		}, "run it with sudo"},
		"no Go":       {func(cmd *exec.Cmd, folder string) { cmd.Env = append(cmd.Env, only(t, folder, "gcc")) }, "Go is missing"},
		"no compiler": {func(cmd *exec.Cmd, folder string) { cmd.Env = append(cmd.Env, only(t, folder, "go")) }, "a C compiler is missing"},
		"old Go": {func(_ *exec.Cmd, folder string) {
			if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("go 99.1\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}, "Go 99.1 or newer is needed"},
		"no disk": {func(cmd *exec.Cmd, folder string) {
			bin := filepath.Join(folder, "bin")
			if err := os.Mkdir(bin, 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(filepath.Join(bin, "df"), []byte("#!/bin/sh\necho Avail; echo 1G\n"), 0o755); err != nil {
				t.Fatal(err)
			}
			cmd.Env = append(cmd.Env, "PATH="+bin+":"+os.Getenv("PATH"))
		}, "has 1 GiB free"},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := preflight(t, test.change)
			if err == nil || !strings.Contains(out, test.want) || strings.Count(out, "\n") != 1 {
				t.Errorf("%v: %q, want one line with %q", err, out, test.want)
			}
		})
	}
}
