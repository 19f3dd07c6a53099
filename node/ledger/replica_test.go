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

func TestOf(t *testing.T) {
	for id, want := range map[device.ID]device.ID{
		"GPU-1": "GPU-1", "GPU-1::0": "GPU-1", "GPU-1::12": "GPU-1", "GPU-1::x": "GPU-1::x", "0000:01:00.0": "0000:01:00.0",
	} {
		if got := (Hold{Device: id}).Of(); got != want {
			t.Errorf("%s is of %s, want %s", id, got, want)
		}
	}
}

// Two Pods hold two replicas of one device, each with a grant of its own, also
// over a restart of the agent.
func TestReplicasAreHeldEachByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{}
		file := filepath.Join(t.TempDir(), "ledger.json")
		ledger := w.open(t, file, &log)
		stop := run(t, ledger)
		synctest.Wait()
		for _, id := range []device.ID{"g::0", "g::1"} {
			ledger.Granted(Grant{
				Grant:    device.Grant{ID: "grant of " + string(id), Devices: []device.ID{"g"}},
				Replicas: []device.ID{id}, Resource: gpu, Driver: "d", At: time.Now(),
			})
		}
		want := []Hold{{Device: "g::0", Resource: gpu, Since: time.Now()}, {Device: "g::1", Resource: gpu, Since: time.Now()}}
		if diff := cmp.Diff(want, ledger.Pending(), cmp.AllowUnexported(Hold{})); diff != "" {
			t.Errorf("pending: %s", diff)
		}
		w.give("a", "u1", "g::0")
		time.Sleep(time.Second)
		synctest.Wait()
		stop()

		// The second is listed after a restart only.
		ledger = w.open(t, file, &log)
		w.give("b", "u2", "g::1")
		run(t, ledger)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"g::0": "a u1", "g::1": "b u2"})
		if pending := ledger.Pending(); pending != nil {
			t.Errorf("still pending: %v", pending)
		}
		if inTheWay := ledger.Claim(t.Context(), []device.ID{"g::2"}); len(inTheWay) != 0 {
			t.Errorf("another replica is in the way: %v", inTheWay)
		}

		w.set(func(w *world) { w.containers = w.containers[1:]; w.pods[pod("a")] = PodState{} })
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"g::1": "b u2"})
		over := ledger.Over()
		if len(over) != 1 || over[0].ID != "grant of g::0" {
			t.Errorf("over are %+v", over)
		}
	})
}

// What was never listed stops being pending.
func TestPendingEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{}
		file := filepath.Join(t.TempDir(), "ledger.json")
		ledger := w.open(t, file, &log)
		stop := run(t, ledger)
		ledger.Granted(Grant{Grant: device.Grant{ID: "x", Devices: []device.ID{"0"}}, Resource: gpu, Driver: "d", At: time.Now()})
		time.Sleep(freshFor - time.Second)
		if len(ledger.Pending()) != 1 {
			t.Error("it is not pending")
		}
		time.Sleep(2 * time.Second)
		if len(ledger.Pending()) != 0 {
			t.Error("it is pending for ever")
		}
		stop()
		// The file of whole devices has the form that it always had.
		data, err := os.ReadFile(file)
		if err != nil || strings.Contains(string(data), "replicas") || strings.Contains(string(data), "resource") {
			t.Errorf("%v\n%s", err, data)
		}
	})
}
