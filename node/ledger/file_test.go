package ledger

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

func TestMalformedFileIsMovedAsideAndRebuilt(t *testing.T) {
	for name, content := range map[string]string{
		"half a file":    `{"schema": 1, "holds": [{"dev`,
		"another schema": `{"schema": 2, "bootID": "boot-1", "holds": []}`,
		"unknown field":  `{"schema": 1, "bootID": "boot-1", "holds": [], "extra": 1}`,
		"empty hold":     `{"schema": 1, "bootID": "boot-1", "holds": [{}]}`,
		"empty":          ``,
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ledger.json")
			if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			w := &world{}
			w.give("a", "u1", "0")
			ledger := w.open(t, file, &log)
			if kept, err := os.ReadFile(file + ".malformed"); err != nil || string(kept) != content {
				t.Errorf("moved aside: %q, %v", kept, err)
			}
			if !strings.Contains(log.String(), "moved aside") {
				t.Errorf("not in the log:\n%s", &log)
			}
			if err := ledger.Refresh(t.Context()); err != nil {
				t.Fatal(err)
			}
			expect(t, ledger, map[device.ID]string{"0": "a u1"})
		})
	}
}

func TestRebootEndsHoldsAndGrants(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.json")
	var log bytes.Buffer
	w := &world{}
	w.give("a", "u1", "0")
	ledger := w.open(t, file, &log)
	ledger.Granted(Grant{Grant: device.Grant{ID: "g", Devices: []device.ID{"0"}}, Driver: "d", At: time.Now()})
	if err := ledger.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	ledger.save()

	same := w.open(t, file, &log)
	expect(t, same, map[device.ID]string{"0": "a u1"})
	if ended := same.Over(); len(ended) != 0 {
		t.Errorf("grants over after a mere restart: %v", ended)
	}

	later := New(Config{File: file, BootID: "boot-2", Kubelet: w, Pods: w, Ours: same.config.Ours, Logger: same.config.Logger})
	if err := later.Load(); err != nil {
		t.Fatal(err)
	}
	expect(t, later, map[device.ID]string{})
	if ended := later.Over(); len(ended) != 1 || ended[0].ID != "g" || ended[0].Driver != "d" {
		t.Errorf("grants over after a reboot: %v", ended)
	}
	// The kubelet starts the container again with the devices it had.
	later.Ensure(Grant{Grant: device.Grant{ID: "g", Devices: []device.ID{"0"}}, Driver: "d", At: time.Now()})
	if ended := later.Over(); len(ended) != 0 {
		t.Errorf("grants over although prepared anew: %v", ended)
	}
}

func TestSaveFailureIsToldOnceAndTriedAgain(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "state")
	var log bytes.Buffer
	w := &world{}
	w.give("a", "u1", "0")
	ledger := w.open(t, filepath.Join(folder, "ledger.json"), &log)
	if err := ledger.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	ledger.save()
	ledger.save()
	if n := strings.Count(log.String(), "could not save"); n != 1 {
		t.Errorf("logged %d times, want once:\n%s", n, &log)
	}
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	// What a crash in the middle of writing leaves behind does no harm.
	if err := os.WriteFile(ledger.config.File+".new", []byte(`{"sche`), 0o600); err != nil {
		t.Fatal(err)
	}
	ledger.save()
	expect(t, w.open(t, ledger.config.File, &log), map[device.ID]string{"0": "a u1"})
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("folder has %v, %v; want the ledger alone", left, err)
	}
}

func TestGrantsEndWithTheirPod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{}
		ledger := w.open(t, filepath.Join(t.TempDir(), "ledger.json"), &log)
		run(t, ledger)
		synctest.Wait()
		grant := func(id string, devices ...device.ID) {
			ledger.Granted(Grant{Grant: device.Grant{ID: id, Devices: devices}, Driver: "d", At: time.Now()})
		}
		over := func() []string {
			var ids []string
			for _, g := range ledger.Over() {
				ids = append(ids, g.ID)
			}
			return ids
		}
		grant("init", "0", "1")
		grant("app", "0")
		grant("unlisted", "2")
		w.give("a", "u1", "0")
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string(nil), over()); diff != "" {
			t.Errorf("while the Pod lives: %s", diff)
		}

		// The device goes to another Pod, under the same grant id.
		w.set(func(w *world) { w.containers = nil; w.pods[pod("a")] = PodState{} })
		if inTheWay := ledger.Claim(t.Context(), []device.ID{"0"}); len(inTheWay) != 0 {
			t.Fatalf("in the way: %v", inTheWay)
		}
		grant("app", "0")
		w.give("b", "u2", "0")
		time.Sleep(time.Hour)
		synctest.Wait()
		if diff := cmp.Diff([]string{"init"}, over()); diff != "" {
			t.Errorf("after the first Pod has ended: %s", diff)
		}
		ledger.Forget("init")

		// What was never listed is over with the next Pod on its devices.
		w.give("c", "u3", "2")
		time.Sleep(time.Minute)
		w.set(func(w *world) { w.containers = nil; w.pods[pod("c")] = PodState{} })
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"unlisted"}, over()); diff != "" {
			t.Errorf("after the Pod that was next has ended: %s", diff)
		}
	})
}
