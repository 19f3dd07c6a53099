package deviceplugin

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// sockets are the plugin sockets in the kubelet's folder.
func (r *rig) sockets() []string {
	r.tb.Helper()
	found, err := filepath.Glob(filepath.Join(r.PluginFolder, "kilter-*.sock"))
	if err != nil {
		r.tb.Fatal(err)
	}
	return found
}

func TestKubeletComesLate(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Eventually("the door says what it waits for", func() bool {
		waiting := r.door.Waiting()
		return len(waiting) == 1 && waiting[0] == gpu+": the kubelet is not there yet"
	})
	r.Start()
	r.ready(gpu, 2)
	if n := r.log.count("the kubelet is not there yet"); n != 1 {
		t.Errorf("logged %d times, want once", n)
	}
}

func TestKubeletRestarts(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	_, id := r.admit("a", "u1")
	for range 3 {
		r.Restart()
		r.ready(gpu, 2)
		if got := r.Available(gpu); len(got) != 1 || got[0] == id {
			t.Errorf("available after a restart: %v; %s is taken", got, id)
		}
	}
	r.Eventually("only the socket in use is left", func() bool { return len(r.sockets()) == 1 && r.Plugins(gpu) == 1 })
}

func TestKubeletIsAwayForAWhile(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	r.Kill()
	r.Eventually("the door knows", func() bool { return len(r.door.Waiting()) == 1 })
	r.driver.setHealth("gpu1", "too hot")
	r.Start()
	r.ready(gpu, 1)
}

func TestOwnSocketIsDeleted(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	before := r.sockets()
	if len(before) != 1 {
		t.Fatalf("sockets %v", before)
	}
	info, err := os.Stat(before[0])
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the socket has mode %v, %v; want 0600", info.Mode(), err)
	}
	if err := os.Remove(before[0]); err != nil {
		t.Fatal(err)
	}
	// Meanwhile Pods come and go as ever, and no device goes missing.
	n := 0
	r.Eventually("there is a new socket, and only that is connected", func() bool {
		n++
		pod := r.podNamed("a", fmt.Sprint("u", n))
		if _, _, err := r.Admit(t.Context(), pod, gpu, 1); err != nil {
			t.Fatal(err)
		}
		r.End(pod.UID)
		r.api.Finish(pod)
		if healthy := r.Healthy(gpu); healthy != 2 {
			t.Fatalf("%d healthy devices", healthy)
		}
		now := r.sockets()
		return r.Registrations() == 2 && len(now) == 1 && now[0] != before[0] && r.Plugins(gpu) == 1
	})
}

func TestFolderIsWipedAndTheKubeletForgets(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(3)...))
	r.Start()
	r.ready(gpu, 3)
	first, id := r.admit("a", "u1")

	// Everything in the folder goes, the kubelet's checkpoint with it.
	entries, err := os.ReadDir(r.PluginFolder)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if err := os.Remove(filepath.Join(r.PluginFolder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	r.Forget()
	r.registered(3)

	// The kubelet takes all three for free. Two Pods come at once.
	second, third := r.podNamed("b", "u2"), r.podNamed("c", "u3")
	taken := map[string]string{id: "a"}
	given, _, err := r.Admit(t.Context(), second, gpu, 1)
	if err != nil {
		t.Fatalf("the second Pod: %v", err)
	}
	if other := taken[given[0]]; other != "" {
		t.Fatalf("%s was given to b and is held by %s", given[0], other)
	}
	taken[given[0]] = "b"
	if given, _, err = r.Admit(t.Context(), third, gpu, 1); err != nil || taken[given[0]] != "" {
		t.Fatalf("the third Pod was given %v, %v", given, err)
	}

	// The agent is killed and started again: it remembers, also when the
	// kubelet has nothing else to give.
	r.stop()
	r.open(r.ledgerFile(), r.PluginFolder, r.driver)
	r.ready(gpu, 3)
	fourth := r.podNamed("d", "u4")
	if given, _, err = r.Admit(t.Context(), fourth, gpu, 1); err == nil || !strings.Contains(err.Error(), "default/a/main") {
		t.Errorf("a fourth Pod was given %v, %v", given, err)
	}

	r.End(first.UID)
	r.api.Delete(first)
	r.Eventually("the fourth Pod gets what the first had", func() bool {
		given, _, err = r.Admit(t.Context(), fourth, gpu, 1)
		return err == nil && given[0] == id
	})
}

func (r *rig) ledgerFile() string { return filepath.Join(filepath.Dir(r.PluginFolder), "ledger.json") }

func TestFolderIsRemovedAndMadeAgain(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	r.Kill()
	if err := os.RemoveAll(r.PluginFolder); err != nil {
		t.Fatal(err)
	}
	r.Eventually("the door knows", func() bool { return len(r.door.Waiting()) == 1 })
	r.Start()
	r.ready(gpu, 2)
	r.admit("a", "u1")
}

func TestStaleMountOfTheFolderIsAnError(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	r.stop()
	// A descriptor of the folder goes on showing it after its removal, just
	// as a mount of it does.
	mount, err := os.Open(r.PluginFolder)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = mount.Close() }()
	r.open(r.ledgerFile(), fmt.Sprintf("/proc/self/fd/%d", mount.Fd()), r.driver)
	r.ready(gpu, 2)
	r.Kill()
	if err := os.RemoveAll(r.PluginFolder); err != nil {
		t.Fatal(err)
	}
	r.Start()
	select {
	case err := <-r.ended:
		if err == nil || !strings.Contains(err.Error(), "was removed on the host") || !strings.Contains(err.Error(), "started again") {
			t.Errorf("the door ended with %v", err)
		}
	case <-r.context().Done():
		t.Error("the door goes on with a folder that nobody else sees")
	}
}

func TestRegistrationIsRefused(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Refuse(errors.New("the resource name is already taken"))
	r.Start()
	r.Eventually("it was tried again", func() bool { return r.Registrations() >= 3 })
	if n := r.log.count("the resource name is already taken"); n != 1 {
		t.Errorf("the kubelet's reason was logged %d times, want once", n)
	}
	if waiting := r.door.Waiting(); len(waiting) != 1 || !strings.Contains(waiting[0], "already taken") {
		t.Errorf("waiting for %q", waiting)
	}
	if n := len(r.sockets()); n > 1 {
		t.Errorf("%d sockets are left of refused registrations", n)
	}
	r.Refuse(nil)
	r.ready(gpu, 2)
}

func TestAgentIsKilledAndStartedAgain(t *testing.T) {
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	r.Start()
	r.ready(gpu, 2)
	_, id := r.admit("a", "u1")
	r.stop()
	r.Eventually("the kubelet has lost the plugin", func() bool { return r.Healthy(gpu) == 0 })

	// What kill -9 leaves behind: a socket on which nobody listens. That of
	// a living plugin of somebody else is not touched.
	stale := filepath.Join(r.PluginFolder, "kilter-nvidia.com-gpu-old.sock")
	living := filepath.Join(r.PluginFolder, "kilter-living.sock")
	for _, path := range []string{stale, living} {
		listener, err := net.Listen("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		listener.(*net.UnixListener).SetUnlinkOnClose(false)
		defer func() { _ = listener.Close() }()
		if path == stale {
			_ = listener.Close()
		}
	}
	r.open(r.ledgerFile(), r.PluginFolder, r.driver)
	r.ready(gpu, 2)
	if _, err := os.Stat(stale); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the old socket is still there: %v", err)
	}
	if _, err := os.Stat(living); err != nil {
		t.Errorf("the socket of a living plugin was removed: %v", err)
	}
	if got := r.Available(gpu); len(got) != 1 || got[0] == id {
		t.Errorf("available: %v; %s is taken", got, id)
	}
	_, _, err := r.Give(t.Context(), r.podNamed("b", "u2"), "main", gpu, id)
	if err == nil || !strings.Contains(err.Error(), "default/a/main") {
		t.Errorf("a held device after the restart of the agent: %v", err)
	}
}

func TestListsOfOneAfterAnother(t *testing.T) {
	// Pods come and go on one device, each ending a moment before the next
	// comes: the news travel at different speeds, and none is lost.
	r := newRig(t, newFakeDriver("nvidia", gpus(1)...))
	r.Start()
	r.ready(gpu, 1)
	for i := range 10 {
		uid := fmt.Sprintf("u%d", i)
		pod := r.podNamed("web-0", uid) // a StatefulSet's: always the same name
		ids, _, err := r.Admit(t.Context(), pod, gpu, 1)
		if err != nil || ids[0] != "gpu0" {
			t.Fatalf("Pod %d: %v, %v", i, ids, err)
		}
		if i%2 == 0 {
			r.known("gpu0", uid)
		}
		r.End(uid)
		r.api.Finish(pod)
	}
}

func TestSomebodyElsesDevices(t *testing.T) {
	// A Pod that was given the devices by another plugin before, under the
	// same resource, is their holder here too.
	r := newRig(t, newFakeDriver("nvidia", gpus(2)...))
	pod := r.podNamed("old", "u1")
	r.Start()
	r.ready(gpu, 2)
	r.AddPod(pod)
	if _, _, err := r.Give(t.Context(), pod, "main", gpu, "gpu1"); err != nil {
		t.Fatal(err)
	}
	r.stop()
	if err := os.Remove(r.ledgerFile()); err != nil {
		t.Fatal(err)
	}
	r.open(r.ledgerFile(), r.PluginFolder, newFakeDriver("nvidia", gpus(2)...))
	r.known("gpu1", "u1")
	holds := r.ledger.Holds()
	if len(holds) != 1 || holds[0].Device != device.ID("gpu1") || holds[0].Holder.Pod != "old" {
		t.Errorf("holds %v", holds)
	}
}
