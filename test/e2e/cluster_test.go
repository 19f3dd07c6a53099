//go:build e2e

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kilter-dev/kilter/node/local"
)

// cluster is a running cluster and the way to it.
type cluster struct {
	bin, data string
	client    *kubernetes.Clientset
}

// command is a call of kilter for this cluster.
func (c *cluster) command(args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(c.bin, "kilter"), args...)
	cmd.Env = append(os.Environ(), "KILTER_DATA="+c.data, "KUBECONFIG=")
	return cmd
}

// prepare connects and gives the nodes the image that the tests run.
func (c *cluster) prepare() error {
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(c.data, "kubeconfig"))
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 200, 400
	if c.client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	probe := filepath.Join(c.data, "probe")
	build := exec.Command("go", "build", "-o", probe, "../probe")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build the probe: %w\n%s", err, out)
	}
	if out, err := c.command("image", "build", probeImage, "--program", probe).CombinedOutput(); err != nil {
		return fmt.Errorf("give the nodes the probe: %w\n%s", err, out)
	}
	return nil
}

// kilter runs kilter and returns what it prints; it must succeed.
func kilter(t testing.TB, args ...string) string {
	t.Helper()
	cmd := suite.command(args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("kilter %s: %v\n%s%s", strings.Join(args, " "), err, out, stderr.String())
	}
	return string(out)
}

// kilterFails runs kilter, which must fail, and returns its complaint.
func kilterFails(t testing.TB, args ...string) string {
	t.Helper()
	out, err := suite.command(args...).CombinedOutput()
	if err == nil {
		t.Fatalf("kilter %s succeeded:\n%s", strings.Join(args, " "), out)
	}
	return string(out)
}

// devices are the node's, as kilter shows them.
func devices(t testing.TB, node string) []local.Device {
	t.Helper()
	var reports []local.Report
	if err := json.Unmarshal([]byte(kilter(t, "devices", "--node", node, "-o", "json")), &reports); err != nil {
		t.Fatal(err)
	}
	return reports[0].Devices
}

// eventually asks again until there is no complaint.
func eventually(t testing.TB, within time.Duration, complaint func() string) {
	t.Helper()
	deadline := time.Now().Add(within)
	for {
		what := complaint()
		if what == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("after %s: %s", within, what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// counts are a node's capacity and allocatable GPUs.
func counts(t testing.TB, node string) (capacity, allocatable int64) {
	t.Helper()
	object, err := suite.client.CoreV1().Nodes().Get(context.Background(), node, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	c, a := object.Status.Capacity[gpu], object.Status.Allocatable[gpu]
	return c.Value(), a.Value()
}

func waitAllocatable(t testing.TB, node string, want int64, within time.Duration) {
	t.Helper()
	eventually(t, within, func() string {
		if _, have := counts(t, node); have != want {
			return fmt.Sprintf("node %s has %d allocatable GPUs, not %d", node, have, want)
		}
		return ""
	})
}

// processID is that of one of the cluster's processes, once it is ready.
func processID(t testing.TB, name string) int {
	t.Helper()
	var pid int
	eventually(t, time.Minute, func() string {
		var status struct {
			Processes []struct {
				Name, State string
				PID         int
			}
		}
		if err := json.Unmarshal([]byte(kilter(t, "status", "-o", "json")), &status); err != nil {
			return err.Error()
		}
		for _, process := range status.Processes {
			if process.Name == name && process.State == "Ready" {
				pid = process.PID
				return ""
			}
		}
		return name + " is not ready"
	})
	return pid
}

// killProcess kills one of the cluster's processes and waits until another
// has taken its place.
func killProcess(t testing.TB, name string) {
	t.Helper()
	old := processID(t, name)
	if err := syscall.Kill(old, syscall.SIGKILL); err != nil {
		t.Fatalf("kill %s: %v", name, err)
	}
	eventually(t, time.Minute, func() string {
		if processID(t, name) == old {
			return name + " has not been started again"
		}
		return ""
	})
}

// agentID is the process of the agent on a node, as the machine numbers it.
func agentID(t testing.TB, node string) int {
	t.Helper()
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err == nil && strings.HasPrefix(string(data), "/kilter\x00agent\x00--node="+node+"\x00") {
			var pid int
			fmt.Sscanf(file, "/proc/%d/", &pid)
			return pid
		}
	}
	t.Fatalf("no agent runs on %s", node)
	return 0
}

// killAgent kills the agent of a node and waits until it is ready again.
func killAgent(t testing.TB, node string) {
	t.Helper()
	pod := agentPod(t, node)
	restarts := pod.Status.ContainerStatuses[0].RestartCount
	if err := syscall.Kill(agentID(t, node), syscall.SIGKILL); err != nil {
		t.Fatalf("kill the agent: %v", err)
	}
	eventually(t, 2*time.Minute, func() string {
		if status := agentPod(t, node).Status.ContainerStatuses[0]; status.RestartCount == restarts || !status.Ready {
			return "the agent on " + node + " has not come back"
		}
		return ""
	})
}

func agentPod(t testing.TB, node string) corev1.Pod {
	t.Helper()
	pods, err := suite.client.CoreV1().Pods("kilter-system").List(context.Background(), metav1.ListOptions{FieldSelector: "spec.nodeName=" + node})
	if err != nil || len(pods.Items) != 1 {
		t.Fatalf("the agent's Pod on %s: %v, %d Pods", node, err, len(pods.Items))
	}
	return pods.Items[0]
}
