//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const shared = gpu + ".shared"

// configure writes the agents' configuration.
func configure(t *testing.T, text string) {
	t.Helper()
	configs := suite.client.CoreV1().ConfigMaps("kilter-system")
	object, err := configs.Get(context.Background(), "kilter-config", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	object.Data["config.yaml"] = text
	if _, err := configs.Update(context.Background(), object, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
}

// waitOffered waits until the small node offers so many of each.
func waitOffered(t *testing.T, whole, replicas int64) {
	t.Helper()
	eventually(t, 2*time.Minute, func() string {
		node, err := suite.client.CoreV1().Nodes().Get(context.Background(), small, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		w, r := node.Status.Allocatable[gpu], node.Status.Allocatable[shared]
		if w.Value() != whole || r.Value() != replicas {
			return fmt.Sprintf("%s offers %d whole and %d shared, not %d and %d", small, w.Value(), r.Value(), whole, replicas)
		}
		return ""
	})
}

func sharer(name string) *corev1.Pod {
	p := pod(name, small, container("main", 0, "-until-told"))
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{shared: *quantity(1)}
	return p
}

// One of two GPUs is shared by three, by NVIDIA's own configuration, while the
// other stays whole; all of it without a restart of anything.
func TestTimeSlicing(t *testing.T) {
	t.Cleanup(func() {
		configure(t, "version: v1\n")
		waitOffered(t, smallCount, 0)
	})
	configure(t, `version: v1
sharing:
  timeSlicing:
    renameByDefault: true
    resources:
    - {name: nvidia.com/gpu, devices: [0], replicas: 3}
`)
	waitOffered(t, 1, 3)

	var given []string
	for i := range 3 {
		name := fmt.Sprintf("sharer-%d", i)
		create(t, sharer(name))
		waitPhase(t, name, corev1.PodRunning)
		given = append(given, ids(see(t, name, "main"))...)
	}
	first := string(devices(t, small)[0].ID)
	if want := []string{first, first, first}; !slices.Equal(given, want) {
		t.Errorf("three Pods were given %v, not %v", given, want)
	}
	if holders := devices(t, small)[0].Holders; len(holders) != 3 {
		t.Errorf("the shared device is shown with the holders %v", holders)
	}
	create(t, sharer("fourth-sharer"))
	waitPending(t, "fourth-sharer", "Insufficient "+shared)
	if whole := hold(t, "whole", small, 1); slices.Contains(whole, first) {
		t.Errorf("a Pod has the shared device %s for itself", first)
	}

	// A mistake is refused with its line, and what is in use stays.
	configure(t, "version: v1\nsharing:\n  timeSlicing:\n    resources:\n    - {name: nvidia.com/gpu, replicas: 0}\n")
	eventually(t, 2*time.Minute, func() string {
		log := kilter(t, "kubectl", "-n", "kilter-system", "logs", agentPod(t, small).Name)
		if !strings.Contains(log, "config.yaml:5") {
			return "the agent's log does not name the line"
		}
		return ""
	})
	waitOffered(t, 1, 3)
}
