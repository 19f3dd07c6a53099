//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestIdleSickDeviceIsNotOffered(t *testing.T) {
	id := string(devices(t, big)[5].ID)
	t.Cleanup(func() { kilter(t, "simulate", "heal", id) })
	kilter(t, "simulate", "fail", id, "--reason", "XID 79: fallen off the bus")
	waitAllocatable(t, big, bigCount-1, 2*time.Second)
	if capacity, _ := counts(t, big); capacity != bigCount {
		t.Errorf("capacity is %d", capacity)
	}
	out := kilter(t, "devices", "--node", big)
	if !strings.Contains(out, "Unhealthy") || !strings.Contains(out, "XID 79: fallen off the bus") {
		t.Errorf("kilter devices does not tell:\n%s", out)
	}
	kilter(t, "simulate", "heal", id)
	waitAllocatable(t, big, bigCount, 2*time.Second)
}

func TestSickDeviceInUseIsLeftToItsPod(t *testing.T) {
	given := hold(t, "patient", small, 1)
	t.Cleanup(func() { kilter(t, "simulate", "heal", given[0]) })
	kilter(t, "simulate", "fail", given[0], "--reason", "XID 48: double bit ECC error")
	waitEvent(t, "patient", "DeviceUnhealthy", "XID 48: double bit ECC error")
	eventually(t, 10*time.Second, func() string {
		for _, status := range get(t, "patient").Status.ContainerStatuses {
			for _, allocated := range status.AllocatedResourcesStatus {
				for _, resource := range allocated.Resources {
					if string(resource.ResourceID) == given[0] && resource.Health == corev1.ResourceHealthStatusUnhealthy {
						return ""
					}
				}
			}
		}
		return "the Pod's status does not say that the device is unhealthy"
	})
	// Nobody else gets it, and the Pod goes on. The node counts its healthy
	// device and the scheduler counts the Pod, so the next one waits.
	waitAllocatable(t, small, smallCount-1, 5*time.Second)
	create(t, pod("next", small, container("main", 1, "-until-told")))
	waitPending(t, "next", "Insufficient nvidia.com/gpu")
	if p := get(t, "patient"); p.Status.Phase != corev1.PodRunning || p.Status.ContainerStatuses[0].RestartCount != 0 {
		t.Errorf("the Pod is %s after %d restarts", p.Status.Phase, p.Status.ContainerStatuses[0].RestartCount)
	}
	kilter(t, "simulate", "heal", given[0])
	waitEvent(t, "patient", "DeviceRecovered", given[0])
	waitAllocatable(t, small, smallCount, 5*time.Second)
	waitPhase(t, "next", corev1.PodRunning)
	if other := ids(see(t, "next", "main")); slices.Contains(other, given[0]) {
		t.Errorf("the next Pod was given %s, which another holds", given[0])
	}
}

// survives runs a fault while a Pod holds one of the small node's two devices.
// Afterwards the Pod must be untouched, one more Pod must get the other
// device, and a third must wait until one of them ends.
func survives(t *testing.T, fault func(t *testing.T)) {
	given := hold(t, "holder", small, 1)
	started := get(t, "holder").Status.ContainerStatuses[0].State.Running.StartedAt
	fault(t)

	create(t, pod("second", small, container("main", 1, "-until-told")))
	waitPhase(t, "second", corev1.PodRunning)
	if other := ids(see(t, "second", "main")); len(other) != 1 || other[0] == given[0] {
		t.Fatalf("a second Pod was given %v while the first holds %v", other, given)
	}
	create(t, pod("third", small, container("main", 1, "-until-told")))
	waitPending(t, "third", "Insufficient nvidia.com/gpu")
	p := get(t, "holder")
	if p.Status.Phase != corev1.PodRunning || !p.Status.ContainerStatuses[0].State.Running.StartedAt.Equal(&started) {
		t.Fatalf("the first Pod was disturbed: %s, %+v", p.Status.Phase, p.Status.ContainerStatuses[0])
	}
	// The container itself still has its device.
	kilter(t, "kubectl", "exec", "holder", "--", "/probe")

	remove(t, "holder")
	waitPhase(t, "third", corev1.PodRunning)
	if third := ids(see(t, "third", "main")); !slices.Equal(third, given) {
		t.Errorf("the third Pod was given %v and not the device %v that came free", third, given)
	}
	waitAllocatable(t, small, smallCount, 30*time.Second)
}

func TestAgentKilled(t *testing.T) {
	survives(t, func(t *testing.T) { killAgent(t, small) })
}

func TestKubeletRestarted(t *testing.T) {
	survives(t, func(t *testing.T) {
		killProcess(t, "kubelet-"+small)
		waitAllocatable(t, small, smallCount, 30*time.Second)
	})
}

func TestAPIServerRestarted(t *testing.T) {
	survives(t, func(t *testing.T) { killProcess(t, "kube-apiserver") })
}

func TestContainerRuntimeRestarted(t *testing.T) {
	survives(t, func(t *testing.T) { killProcess(t, "containerd-"+small) })
}

func wipePluginFolder(t *testing.T) {
	t.Helper()
	folder := filepath.Join(suite.data, "nodes", small, "kubelet/device-plugins")
	entries, err := os.ReadDir(folder)
	if err != nil || len(entries) == 0 {
		t.Fatalf("the plugin folder: %v, %d files", err, len(entries))
	}
	for _, entry := range entries {
		if err := os.RemoveAll(filepath.Join(folder, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
}

func TestPluginFolderWiped(t *testing.T) {
	survives(t, wipePluginFolder)
}

// With its folder the kubelet loses its memory of who holds what, and after a
// restart would give a device twice.
func TestPluginFolderWipedAndKubeletRestarted(t *testing.T) {
	survives(t, func(t *testing.T) {
		wipePluginFolder(t)
		killProcess(t, "kubelet-"+small)
		waitAllocatable(t, small, smallCount, 30*time.Second)
		eventually(t, 30*time.Second, func() string {
			// A kubelet that has just started does not know the agent's Pod yet.
			if out, err := suite.command("devices", "--node", small).CombinedOutput(); err != nil || !strings.Contains(string(out), "which the kubelet has lost track of") {
				return fmt.Sprintf("kilter devices does not tell (%v):\n%s", err, out)
			}
			return ""
		})
	})
}

// Killing the supervisor ends everything but the containers themselves.
func TestSupervisorKilled(t *testing.T) {
	survives(t, func(t *testing.T) {
		data, err := os.ReadFile(filepath.Join(suite.data, "supervisor.lock"))
		if err != nil {
			t.Fatal(err)
		}
		var supervisor int
		fmt.Sscan(string(data), &supervisor)
		if err := syscall.Kill(supervisor, syscall.SIGKILL); err != nil {
			t.Fatalf("kill the supervisor: %v", err)
		}
		eventually(t, 10*time.Second, func() string {
			if out := kilter(t, "status"); !strings.Contains(out, "is down") {
				return "the cluster is not down: " + out
			}
			return ""
		})
		kilter(t, "up")
	})
}

func TestSecondAgentRefuses(t *testing.T) {
	out := kilterFails(t, "kubectl", "-n", "kilter-system", "exec", agentPod(t, small).Name, "--", "/kilter", "agent", "--node="+small, "--simulate="+smallMachine)
	if !strings.Contains(out, "another agent") {
		t.Errorf("the second agent says %q", out)
	}
	waitAllocatable(t, small, smallCount, time.Second)
}

// An upgrade of the agent replaces its Pod and disturbs nobody.
func TestAgentPodReplaced(t *testing.T) {
	survives(t, func(t *testing.T) {
		old := agentPod(t, small)
		if err := suite.client.CoreV1().Pods(old.Namespace).Delete(context.Background(), old.Name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		eventually(t, time.Minute, func() string {
			pods, err := suite.client.CoreV1().Pods(old.Namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + small})
			if err != nil {
				return err.Error()
			}
			for _, p := range pods.Items {
				if p.UID != old.UID && len(p.Status.ContainerStatuses) > 0 && p.Status.ContainerStatuses[0].Ready {
					return ""
				}
			}
			return "no new agent is ready"
		})
		waitAllocatable(t, small, smallCount, 30*time.Second)
	})
}
