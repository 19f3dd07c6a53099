package host

import (
	"fmt"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestPortHolder(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	port := listener.Addr().(*net.TCPAddr).Port
	want := fmt.Sprintf("(pid %d)", os.Getpid())
	if holder := PortHolder(netip.MustParseAddr("127.0.0.1"), port); !strings.Contains(holder, want) {
		t.Errorf("the holder is %q, not %s", holder, want)
	}
	// One who listens on its own address is in nobody else's way.
	if holder := PortHolder(netip.MustParseAddr("127.0.0.2"), port); holder != "" {
		t.Errorf("another address is taken by %q", holder)
	}
	everywhere, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	defer everywhere.Close()
	if holder := PortHolder(netip.MustParseAddr("127.0.0.9"), everywhere.Addr().(*net.TCPAddr).Port); !strings.Contains(holder, want) {
		t.Errorf("who listens everywhere is %q", holder)
	}
}

func TestParseAddress(t *testing.T) {
	for text, want := range map[string]string{
		"0100007F":                         "127.0.0.1",
		"00000000":                         "0.0.0.0",
		"0000000000000000FFFF00000100007F": "127.0.0.1",
		"00000000000000000000000000000000": "::",
	} {
		if got, err := parseAddress(text); err != nil || got.String() != want {
			t.Errorf("%s is %s (%v), want %s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "xyz", "0100"} {
		if got, err := parseAddress(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func TestBridgeComesAndGoes(t *testing.T) {
	name := fmt.Sprintf("kt%d", os.Getpid())
	subnet := netip.MustParsePrefix("10.251.0.0/16")
	addresses := []netip.Prefix{netip.MustParsePrefix("10.251.0.1/16"), netip.MustParsePrefix("10.251.1.1/32")}
	t.Cleanup(func() { _ = RemoveBridge(name) })
	if used, err := SubnetInUse(subnet, ""); err != nil || used != "" {
		t.Fatalf("before: %q %v", used, err)
	}
	for range 2 {
		if err := MakeBridge(name, addresses); err != nil {
			t.Fatal(err)
		}
	}
	if link, err := net.InterfaceByName(name); err != nil || link.HardwareAddr.String() != "02:6b:0a:fb:00:01" {
		t.Errorf("its hardware address is %v (%v), and would change with its ports", link.HardwareAddr, err)
	}
	if used, err := SubnetInUse(subnet, ""); err != nil || !strings.Contains(used, name) {
		t.Errorf("with the bridge: %q %v", used, err)
	}
	if used, err := SubnetInUse(subnet, name); err != nil || used != "" {
		t.Errorf("for its owner: %q %v", used, err)
	}
	for range 2 {
		if err := RemoveBridge(name); err != nil {
			t.Error(err)
		}
	}
	if !isGone(name) {
		t.Error("the bridge is left")
	}
}

func TestFoldersAreLeftAsTheyWere(t *testing.T) {
	root := t.TempDir()
	there := filepath.Join(root, "there")
	if err := os.Mkdir(there, 0o755); err != nil {
		t.Fatal(err)
	}
	wanted := []string{filepath.Join(there, "a/b"), filepath.Join(root, "c"), there}
	missing := MissingFolders(wanted)
	if want := []string{filepath.Join(there, "a"), filepath.Join(there, "a/b"), filepath.Join(root, "c")}; !slices.Equal(missing, want) {
		t.Fatalf("missing: %v", missing)
	}
	if err := MakeFolders(wanted); err != nil {
		t.Fatal(err)
	}
	// What somebody else has put to use stays.
	if err := os.WriteFile(filepath.Join(root, "c/file"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	RemoveFolders(missing)
	for path, want := range map[string]bool{filepath.Join(there, "a"): false, there: true, filepath.Join(root, "c/file"): true} {
		if _, err := os.Stat(path); (err == nil) != want {
			t.Errorf("%s is there: %t", path, err == nil)
		}
	}
}

func TestCgroupsAreEmptiedAndRemoved(t *testing.T) {
	cgroups, err := FindCgroups()
	if err != nil {
		t.Fatal(err)
	}
	top := fmt.Sprintf("kilter-test-%d", os.Getpid())
	inner := top + "/a/b"
	t.Cleanup(func() { _ = cgroups.Remove(top, time.Second) })
	if err := cgroups.Make(inner); err != nil {
		t.Fatal(err)
	}
	if err := cgroups.Make(inner); err != nil {
		t.Errorf("a second time: %v", err)
	}
	sleeper := exec.Command("sleep", "1000")
	if err := sleeper.Start(); err != nil {
		t.Fatal(err)
	}
	procs := filepath.Join(cgroups.tracking(), inner, "cgroup.procs")
	if err := os.WriteFile(procs, fmt.Appendf(nil, "%d", sleeper.Process.Pid), 0o644); err != nil {
		t.Fatal(err)
	}
	if pids := cgroups.Processes(top); !slices.Equal(pids, []int{sleeper.Process.Pid}) {
		t.Errorf("processes in it: %v", pids)
	}
	if err := cgroups.Remove(top, 10*time.Second); err != nil {
		t.Error(err)
	}
	if err := sleeper.Wait(); err == nil || sleeper.ProcessState.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Errorf("the process in it ended with %v", err)
	}
	for _, hierarchy := range cgroups.hierarchies {
		if _, err := os.Stat(filepath.Join(hierarchy, top)); err == nil {
			t.Errorf("%s is left", filepath.Join(hierarchy, top))
		}
	}
	if err := cgroups.Remove(top, time.Second); err != nil {
		t.Errorf("what is not there: %v", err)
	}
}

// TestMain also is the helper that mounts, and the program that looks.
func TestMain(m *testing.M) {
	switch {
	case len(os.Args) == 4 && os.Args[1] == "mount":
		if err := MountAll([]Bind{{os.Args[2], os.Args[3]}}); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("mounted")
		_, _ = os.Stdin.Read(make([]byte, 1))
	case len(os.Args) == 4 && os.Args[1] == "look":
		if err := EnterMountNamespace(os.Args[2]); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		data, err := os.ReadFile(os.Args[3])
		fmt.Printf("%s%v", data, err)
	default:
		os.Exit(m.Run())
	}
}

func TestMountNamespaceOutlivesItsMaker(t *testing.T) {
	root := t.TempDir()
	pins, source, target := filepath.Join(root, "pins"), filepath.Join(root, "source"), filepath.Join(root, "target")
	for _, folder := range []string{source, target} {
		if err := os.Mkdir(folder, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(source, "file"), []byte("inside "), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := PinningFolder(pins); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(pins, "node.mnt")
	t.Cleanup(func() {
		if err := Unpin(file); err != nil {
			t.Error(err)
		}
		if err := UnmountFolder(pins); err != nil {
			t.Error(err)
		}
		if IsPinned(file) || isMountPoint(pins) {
			t.Error("something is left")
		}
	})
	maker := func(binds []Bind) []string {
		return []string{"/proc/self/exe", "mount", binds[0].Source, binds[0].Target}
	}
	for range 2 { // the second time keeps the first
		if err := MakeMountNamespace(file, maker, []Bind{{source, target}}); err != nil {
			t.Fatal(err)
		}
	}
	out, err := exec.Command("/proc/self/exe", "look", file, filepath.Join(target, "file")).CombinedOutput()
	if err != nil || string(out) != "inside <nil>" {
		t.Errorf("from inside: %q %v", out, err)
	}
	if _, err := os.Stat(filepath.Join(target, "file")); err == nil {
		t.Error("the mount is seen from outside")
	}
}

func TestFailedMountLeavesNothingPinned(t *testing.T) {
	root := t.TempDir()
	if err := PinningFolder(root); err != nil {
		t.Fatal(err)
	}
	defer UnmountFolder(root)
	file := filepath.Join(root, "node.mnt")
	maker := func(binds []Bind) []string {
		return []string{"/proc/self/exe", "mount", binds[0].Source, binds[0].Target}
	}
	err := MakeMountNamespace(file, maker, []Bind{{filepath.Join(root, "none"), root}})
	if err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("the error is %v", err)
	}
	if IsPinned(file) {
		t.Error("a namespace is pinned")
	}
}
