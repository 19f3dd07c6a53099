package deviceplugin

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"
)

// TestChurn sends many Pods through few devices. Pods are admitted one after
// the other, as by the kubelet, and end all at once in their own time; the API
// server hears of an end a little later than the kubelet knows it. Now and
// then the kubelet is restarted. No device ever has two holders, and no Pod is
// refused.
func TestChurn(t *testing.T) {
	const pods, devices = 120, 8
	r := newRig(t, newFakeDriver("nvidia", gpus(devices)...))
	r.Start()
	r.ready(gpu, devices)
	// Somebody looks all the time, so that the ledger sees every stage.
	watching, stopWatching := context.WithCancel(t.Context())
	defer stopWatching()
	var watched sync.WaitGroup
	watched.Go(func() {
		for watching.Err() == nil {
			_ = r.ledger.Refresh(watching) // fails while the kubelet restarts
		}
	})
	random := rand.New(rand.NewPCG(1, 2))
	var mu sync.Mutex
	holders := make(map[string]string)
	var ending sync.WaitGroup
	for i := range pods {
		name := fmt.Sprintf("pod-%d", i%20) // names come again
		uid := fmt.Sprintf("u%d", i)
		if i%40 == 39 {
			r.Restart()
			r.ready(gpu, devices)
		}
		r.Eventually("a device is free", func() bool { return len(r.Available(gpu)) > 0 })
		pod := r.podNamed(name, uid)
		ids, _, err := r.Admit(t.Context(), pod, gpu, 1)
		if err != nil {
			t.Fatalf("Pod %d: %v", i, err)
		}
		mu.Lock()
		if other := holders[ids[0]]; other != "" {
			t.Errorf("%s was given to %s and is held by %s", ids[0], uid, other)
		}
		holders[ids[0]] = uid
		mu.Unlock()
		life, lag := time.Duration(random.IntN(100))*time.Millisecond, time.Duration(random.IntN(30))*time.Millisecond
		ending.Add(1)
		time.AfterFunc(life, func() {
			mu.Lock()
			delete(holders, ids[0])
			mu.Unlock()
			r.End(uid)
			time.AfterFunc(lag, func() {
				r.api.Finish(pod)
				ending.Done()
			})
		})
	}
	ending.Wait()
	stopWatching()
	watched.Wait()
	if err := r.ledger.Refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	if holds := r.ledger.Holds(); len(holds) != 0 {
		t.Errorf("held at the end: %v", holds)
	}
	if n := r.Healthy(gpu); n != devices {
		t.Errorf("%d healthy devices at the end, want %d", n, devices)
	}
}
