//go:build e2e

package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

var measure = flag.Bool("measure", false, "measure the numbers of docs/performance.md (make bench)")

// TestNumbers prints what `make bench` is asked for. What can stand beside
// something is measured beside it, in turns, because machines are noisy.
func TestNumbers(t *testing.T) {
	if !*measure {
		t.Log("run with -measure, as make bench does")
		return
	}
	rows := [][3]string{
		{"kilter up, two nodes, to devices advertised", "≤ 25 s", fmt.Sprintf("%.1f s", upTook.Seconds())},
	}
	rows = append(rows, allocateTimes(t))
	rows = append(rows, podStart(t)...)
	rows = append(rows, footprint(t)...)
	fmt.Printf("\n%-52s %-12s %s\n", "", "target", "measured")
	for _, row := range rows {
		fmt.Printf("%-52s %-12s %s\n", row[0], row[1], row[2])
	}
	fmt.Println()
}

// podStart compares Pods with and without a device, one after the other in
// turns.
func podStart(t *testing.T) [][3]string {
	const rounds = 30
	took := map[int][]time.Duration{}
	for round := range rounds {
		for turn := range 2 {
			gpus := (round + turn) % 2 // neither is always the first
			took[gpus] = append(took[gpus], timeToRunning(t, fmt.Sprintf("start-%d-%d", round, gpus), gpus))
		}
	}
	with, without := median(took[1]), median(took[0])
	return [][3]string{
		{"Pod without a device, create to Running, median of 30", "", fmt.Sprintf("%.0f ms", ms(without))},
		{"Pod with a device", "", fmt.Sprintf("%.0f ms", ms(with))},
		{"  ratio", "≤ 1.10", fmt.Sprintf("%.2f", ms(with)/ms(without))},
	}
}

// timeToRunning is from before the create call until the API server says that
// the Pod runs.
func timeToRunning(t *testing.T, name string, gpus int) time.Duration {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), starting)
	defer cancel()
	pods := suite.client.CoreV1().Pods(namespace)
	watch, err := pods.Watch(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Stop()
	began := time.Now()
	create(t, pod(name, big, container("main", gpus, "-until-told")))
	for event := range watch.ResultChan() {
		if p, ok := event.Object.(*corev1.Pod); ok && p.Status.Phase == corev1.PodRunning {
			took := time.Since(began)
			remove(t, name)
			return took
		}
	}
	t.Fatalf("%s did not run in time", name)
	return 0
}

// allocateTimes calls the running agent as the kubelet does.
func allocateTimes(t *testing.T) [3]string {
	sockets, _ := filepath.Glob(filepath.Join(suite.data, "nodes", big, "kubelet/device-plugins/kilter-*.sock"))
	if len(sockets) == 0 {
		t.Fatal("the agent has no socket")
	}
	conn, err := grpc.NewClient("unix://"+sockets[0], grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	agent := pluginapi.NewDevicePluginClient(conn)
	all := devices(t, big)
	var took []time.Duration
	for i := range 1000 {
		id := string(all[i%len(all)].ID)
		began := time.Now()
		if _, err := agent.Allocate(context.Background(), &pluginapi.AllocateRequest{
			ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{id}}},
		}); err != nil {
			t.Fatal(err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return [3]string{"Allocate, 1000 calls, p50 / p99", "p99 ≤ 5 ms", fmt.Sprintf("%.2f / %.2f ms", ms(took[500]), ms(took[990]))}
}

// footprint looks at the agent of the big node while nothing happens.
func footprint(t *testing.T) [][3]string {
	pid := agentID(t, big)
	const window = 30 * time.Second
	before := cpuTime(t, pid)
	time.Sleep(window)
	share := float64(cpuTime(t, pid)-before) / float64(window) * 100
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatal(err)
	}
	var kib int
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			fmt.Sscan(rest, &kib)
		}
	}
	return [][3]string{
		{"agent, idle: resident memory", "≤ 40 MiB", fmt.Sprintf("%.1f MiB", float64(kib)/1024)},
		{"agent, idle: share of a core over 30 s", "≤ 0.5 %", fmt.Sprintf("%.2f %%", share)},
	}
}

// cpuTime is what the process has used so far, to a hundredth of a second.
func cpuTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}

func median(all []time.Duration) time.Duration {
	sorted := slices.Sorted(slices.Values(all))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
