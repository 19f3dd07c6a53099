//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kilter-dev/kilter/test/sight"
)

// turn is the time that one container had one device, on the clock that all
// containers share.
type turn struct {
	device     string
	pod        string
	begin, end int64
}

// TestChurn sends many short Pods from several clients through the devices of
// one node, and asks each container when it had which device.
func TestChurn(t *testing.T) {
	const clients, perClient, atOnce = 4, 50, 4
	var mu sync.Mutex
	var turns []turn
	var work sync.WaitGroup
	for client := range clients {
		slots := make(chan struct{}, atOnce)
		for i := range perClient {
			work.Go(func() {
				slots <- struct{}{}
				defer func() { <-slots }()
				name := fmt.Sprintf("churn-%d-%d", client, i)
				gpus := 1 + (client+i)%3/2 // every third takes two
				seen, err := runOnce(name, gpus, time.Duration(50+i*7%200)*time.Millisecond)
				if err != nil {
					t.Error(err)
					return
				}
				given := ids(seen)
				if len(given) != gpus {
					t.Errorf("%s was given %v, not %d devices", name, given, gpus)
				}
				mu.Lock()
				defer mu.Unlock()
				for _, id := range given {
					turns = append(turns, turn{id, name, seen.BeginNanos, seen.EndNanos})
				}
			})
		}
	}
	work.Wait()
	slices.SortFunc(turns, func(a, b turn) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.begin, b.begin))
	})
	used := map[string]bool{}
	for i, now := range turns {
		used[now.device] = true
		if i > 0 && turns[i-1].device == now.device && turns[i-1].end > now.begin {
			t.Errorf("%s had two holders at once: %s and %s", now.device, turns[i-1].pod, now.pod)
		}
	}
	if len(used) != bigCount {
		t.Errorf("%d of %d devices were used", len(used), bigCount)
	}
	t.Logf("%d Pods, %d turns on %d devices", clients*perClient, len(turns), len(used))
	eventually(t, 30*time.Second, func() string {
		for _, d := range devices(t, big) {
			if len(d.Holders) > 0 {
				return fmt.Sprintf("device %d is still held by %v", d.Index, d.Holders)
			}
		}
		return ""
	})
}

// runOnce runs a Pod to its end, reads what it saw and removes it.
func runOnce(name string, gpus int, stay time.Duration) (sight.Sight, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	pods := suite.client.CoreV1().Pods(namespace)
	p := pod(name, big, container("main", gpus, "-for", stay.String()))
	if _, err := pods.Create(ctx, p, metav1.CreateOptions{}); err != nil {
		return sight.Sight{}, err
	}
	defer func() { _ = pods.Delete(context.Background(), name, metav1.DeleteOptions{}) }()
	watch, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		return sight.Sight{}, err
	}
	defer watch.Stop()
	for event := range watch.ResultChan() {
		current, ok := event.Object.(*corev1.Pod)
		if !ok || current.Status.Phase != corev1.PodSucceeded && current.Status.Phase != corev1.PodFailed {
			continue
		}
		if current.Status.Phase == corev1.PodFailed {
			return sight.Sight{}, fmt.Errorf("%s failed: %s %s", name, current.Status.Reason, current.Status.Message)
		}
		out, err := pods.GetLogs(name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			return sight.Sight{}, fmt.Errorf("%s: %w", name, err)
		}
		var seen sight.Sight
		return seen, json.Unmarshal([]byte(strings.TrimSpace(string(out))), &seen)
	}
	return sight.Sight{}, fmt.Errorf("%s did not end in time", name)
}
