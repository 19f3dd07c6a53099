package ledger

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

// world is a kubelet and an API server that say what the test wants.
type world struct {
	mu         sync.Mutex
	containers []Container
	kubeletErr error
	pods       map[PodName]PodState
	apiErr     error
	lists      int
	// run is that of the kubelet; empty when it can not be told.
	run string
}

func (w *world) List(context.Context) ([]Container, string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists++
	return w.containers, w.run, w.kubeletErr
}

func (w *world) Pod(_ context.Context, namespace, name string) (string, bool, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := w.pods[PodName{namespace, name}]
	return state.UID, state.Alive, w.apiErr
}

func (w *world) set(change func(w *world)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change(w)
}

// asked counts how often the kubelet was asked since the last call.
func (w *world) asked() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := w.lists
	w.lists = 0
	return n
}

// give is Pod name, alive, listed with the devices.
func (w *world) give(name, uid string, ids ...device.ID) {
	w.set(func(w *world) {
		w.containers = append(w.containers, lists(name, ids...))
		if w.pods == nil {
			w.pods = make(map[PodName]PodState)
		}
		w.pods[pod(name)] = PodState{UID: uid, Alive: true}
	})
}

func (w *world) open(t *testing.T, file string, log *bytes.Buffer) *Ledger {
	t.Helper()
	ledger := New(Config{
		File: file, BootID: "boot-1", Kubelet: w, Pods: w,
		Ours:   func(resource string) bool { return resource == gpu },
		Logger: slog.New(slog.NewTextHandler(log, nil)),
	})
	if err := ledger.Load(); err != nil {
		t.Fatal(err)
	}
	return ledger
}

// run starts the ledger and returns what stops it and waits for its end.
func run(t *testing.T, ledger *Ledger) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error)
	go func() { done <- ledger.Run(ctx) }()
	var once sync.Once
	stop = func() {
		once.Do(func() {
			cancel()
			if err := <-done; err != nil {
				t.Errorf("Run: %v", err)
			}
		})
	}
	t.Cleanup(stop)
	return stop
}

func holders(ledger *Ledger) map[device.ID]string {
	found := make(map[device.ID]string)
	for _, h := range ledger.Holds() {
		found[h.Device] = h.Holder.Pod + " " + h.Holder.UID
		if h.Orphaned {
			found[h.Device] += " orphaned"
		}
	}
	return found
}

func expect(t *testing.T, ledger *Ledger, want map[device.ID]string) {
	t.Helper()
	if diff := cmp.Diff(want, holders(ledger)); diff != "" {
		t.Errorf("holders (-want +got):\n%s", diff)
	}
}

func TestCheckpointWipedAndAgentRestarted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		file := filepath.Join(t.TempDir(), "ledger.json")
		var log bytes.Buffer
		w := &world{}
		w.give("a", "u1", "0")
		ledger := w.open(t, file, &log)
		stop := run(t, ledger)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"0": "a u1"})

		// The kubelet comes back with no memory, listing the Pod bare.
		w.set(func(w *world) { w.containers = []Container{lists("a")} })
		ledger.Nudge()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"0": "a u1 orphaned"})
		if !strings.Contains(log.String(), "has forgotten who holds") {
			t.Errorf("not in the log:\n%s", &log)
		}
		stop()

		// A new agent knows it from the start, before it has asked anybody.
		ledger = w.open(t, file, &log)
		expect(t, ledger, map[device.ID]string{"0": "a u1 orphaned"})
		run(t, ledger)
		time.Sleep(time.Minute)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"0": "a u1 orphaned"})

		w.set(func(w *world) { w.pods[pod("a")] = PodState{UID: "u1"} })
		time.Sleep(orphanPause)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{})
	})
}

func TestKubeletAwayKeepsEverything(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{}
		w.give("a", "u1", "0")
		ledger := w.open(t, filepath.Join(t.TempDir(), "ledger.json"), &log)
		run(t, ledger)
		synctest.Wait()
		w.set(func(w *world) { w.kubeletErr = errors.New("connection refused"); w.pods = nil })
		time.Sleep(time.Hour)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{"0": "a u1"})
		if n := strings.Count(log.String(), "does not say who holds what"); n != 1 {
			t.Errorf("logged %d times, want once", n)
		}
		w.set(func(w *world) { w.kubeletErr = nil; w.containers = nil })
		time.Sleep(10 * time.Second)
		synctest.Wait()
		expect(t, ledger, map[device.ID]string{})
		if n := strings.Count(log.String(), "says again"); n != 1 {
			t.Errorf("the end of it was logged %d times, want once", n)
		}
	})
}

func TestLooksAreRare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		w := &world{}
		w.give("a", "u1", "0")
		ledger := w.open(t, filepath.Join(t.TempDir(), "ledger.json"), &log)
		run(t, ledger)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if n := w.asked(); n > 61 {
			t.Errorf("idle: asked %d times in ten minutes", n)
		}
		for range 100 {
			ledger.Nudge()
			time.Sleep(100 * time.Millisecond)
		}
		if n := w.asked(); n > 11 || n < 9 {
			t.Errorf("nudged all the time: asked %d times in ten seconds", n)
		}
	})
}

func TestClaim(t *testing.T) {
	tests := map[string]struct {
		// happens is what changes before the claim, after a while with Pod a
		// holding device 0.
		happens func(w *world)
		// later happens 500 ms after the claim was made.
		later func(w *world)
		noAPI bool
		free  bool
	}{
		"the holder lives": {free: false},
		"the holder has ended": {
			happens: func(w *world) { w.containers = nil; w.pods[pod("a")] = PodState{UID: "u1"} },
			free:    true,
		},
		"the news of its end comes late": {
			happens: func(w *world) { w.containers = nil },
			later:   func(w *world) { w.pods[pod("a")] = PodState{UID: "u1"} },
			free:    true,
		},
		"the kubelet forgot it": {
			happens: func(w *world) { w.containers = []Container{lists("a")} },
		},
		"the kubelet forgot it, and the API server is away": {
			happens: func(w *world) { w.containers = []Container{lists("a")}; w.apiErr = errors.New("away") },
		},
		"the API server is away": {
			happens: func(w *world) { w.containers = nil; w.apiErr = errors.New("away") },
		},
		"the list can not be had, the holder has ended": {
			happens: func(w *world) { w.kubeletErr = errors.New("busy"); delete(w.pods, pod("a")) },
			free:    true,
		},
		"the list can not be had, the holder lives": {
			happens: func(w *world) { w.kubeletErr = errors.New("busy") },
		},
		"no API server, and the kubelet does not know the Pod": {
			noAPI:   true,
			happens: func(w *world) { w.containers = nil },
			free:    true,
		},
		"no API server, and the kubelet knows the Pod but not its device": {
			noAPI:   true,
			happens: func(w *world) { w.containers = []Container{lists("a")} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				w := &world{}
				w.give("a", "u1", "0")
				ledger := w.open(t, filepath.Join(t.TempDir(), "ledger.json"), &log)
				if test.noAPI {
					ledger.config.Pods = nil
				}
				if err := ledger.Refresh(t.Context()); err != nil {
					t.Fatal(err)
				}
				if test.happens != nil {
					w.set(test.happens)
				}
				if test.later != nil {
					time.AfterFunc(500*time.Millisecond, func() { w.set(test.later) })
				}
				begin := time.Now()
				inTheWay := ledger.Claim(t.Context(), []device.ID{"0", "1"})
				if free := len(inTheWay) == 0; free != test.free {
					t.Errorf("free: %v, want %v; in the way: %v", free, test.free, inTheWay)
				}
				if took := time.Since(begin); took > claimPatience+claimPause {
					t.Errorf("took %v", took)
				}
				if got := ledger.Claim(t.Context(), []device.ID{"1"}); len(got) != 0 {
					t.Errorf("a device that nobody has is held: %v", got)
				}
			})
		})
	}
}
