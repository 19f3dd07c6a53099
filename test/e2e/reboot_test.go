//go:build e2e

package e2e

import (
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Stopped as a whole, with its Pods, and brought back from its data folder:
// what was running is gone, what was said is not, and every device is free.
func TestStoppedAndBroughtBack(t *testing.T) {
	hold(t, "before", small, 2)
	always := pod("deployed", small, container("main", 0, "-until-told"))
	always.Spec.RestartPolicy = corev1.RestartPolicyAlways
	create(t, always)
	waitPhase(t, "deployed", corev1.PodRunning)

	kilter(t, "down", "--keep")
	if lookAtMachine(suite.bin)["interface kilter0"] {
		t.Error("the bridge is left")
	}
	kilter(t, "up")
	waitAllocatable(t, big, bigCount, 30*time.Second)
	eventually(t, starting, func() string {
		status := get(t, "deployed").Status
		if status.Phase != corev1.PodRunning || len(status.ContainerStatuses) == 0 || !status.ContainerStatuses[0].Ready || status.ContainerStatuses[0].RestartCount == 0 {
			return fmt.Sprintf("the Pod that always runs is %s", status.Phase)
		}
		return ""
	})
	remove(t, "before")
	hold(t, "after", small, 2)
}
