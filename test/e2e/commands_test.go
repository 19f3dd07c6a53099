//go:build e2e

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"
)

func TestUpTwiceIsHarmless(t *testing.T) {
	before := processID(t, "kube-apiserver")
	kilter(t, "up")
	kilter(t, "up", "--node", small+"="+smallMachine, "--node", big+"="+bigMachine)
	if processID(t, "kube-apiserver") != before {
		t.Error("the API server was started again")
	}
	if out := kilterFails(t, "up", "--node", "other=t4x2"); !strings.Contains(out, "is here already") {
		t.Errorf("another cluster on top: %s", out)
	}
}

func TestUpRefusesNonsense(t *testing.T) {
	for words, complaint := range map[string]string{
		"--node x":                           "a node is NAME=MACHINE",
		"--node x=y":                         "no machine is called",
		"--node X=t4x2":                      "a node is NAME=MACHINE",
		"--node a=t4x2 --node a=t4x2":        "two nodes of that name",
		"--subnet 10.1.2.0/24 --node a=t4x2": "16 bits",
		"--subnet fd00::/16 --node a=t4x2":   "IPv4",
		"--node a=host --node b=host":        "only one node",
		"--frobnicate":                       "unknown flag",
	} {
		if out := kilterFails(t, append([]string{"up"}, strings.Fields(words)...)...); !strings.Contains(out, complaint) {
			t.Errorf("up %s: %s", words, out)
		}
	}
}

func TestLogsExecAndPortForward(t *testing.T) {
	create(t, pod("talker", small, container("main", 1, "-until-told", "-listen", "8080")))
	waitPhase(t, "talker", corev1.PodRunning)
	see(t, "talker", "main")
	if out := kilter(t, "kubectl", "logs", "talker"); !strings.Contains(out, "/dev/nvidia") {
		t.Errorf("kubectl logs: %s", out)
	}
	if out := kilter(t, "kubectl", "exec", "talker", "--", "/probe"); !strings.Contains(out, "/dev/nvidia") {
		t.Errorf("kubectl exec: %s", out)
	}
	forward := suite.command("kubectl", "port-forward", "talker", ":8080")
	out, err := forward.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := forward.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = forward.Process.Kill(); _ = forward.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var port int
	if _, err := fmt.Sscanf(line, "Forwarding from 127.0.0.1:%d ->", &port); err != nil {
		t.Fatalf("%q: %v", line, err)
	}
	conn, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if answer, _ := io.ReadAll(conn); string(answer) != "hello\n" {
		t.Errorf("the Pod answers %q", answer)
	}
}

func TestOutputForMachines(t *testing.T) {
	var status map[string]any
	if err := json.Unmarshal([]byte(kilter(t, "status", "-o", "json")), &status); err != nil || status["supervised"] != true {
		t.Errorf("status: %v %v", err, status)
	}
	var reports []map[string]any
	if err := yaml.Unmarshal([]byte(kilter(t, "devices", "-o", "yaml")), &reports); err != nil || len(reports) != 2 {
		t.Errorf("devices: %v, %d nodes", err, len(reports))
	}
	if out := kilterFails(t, "devices", "-o", "xml"); !strings.Contains(out, "json and yaml") {
		t.Errorf("devices -o xml: %s", out)
	}
	if out := kilterFails(t, "devices", "--node", "nowhere"); !strings.Contains(out, "nowhere") {
		t.Errorf("devices of no node: %s", out)
	}
	if out := kilter(t, "logs", "kube-scheduler", "--tail", "3"); strings.Count(out, "\n") != 3 {
		t.Errorf("three lines of log: %q", out)
	}
	if out := kilterFails(t, "logs", "nobody"); !strings.Contains(out, "kube-apiserver") {
		t.Errorf("logs of nobody: %s", out)
	}
	for _, word := range []string{"kubelet-big", "kube-apiserver"} {
		if out := kilter(t, "__complete", "logs", ""); !strings.Contains(out, word) {
			t.Errorf("completion of logs lacks %s: %s", word, out)
		}
	}
}

func TestResourceByHand(t *testing.T) {
	const dongle = "example.com/dongle"
	count := func() string {
		node, err := suite.client.CoreV1().Nodes().Get(context.Background(), small, metav1.GetOptions{})
		if err != nil {
			return err.Error()
		}
		c, a := node.Status.Capacity[dongle], node.Status.Allocatable[dongle]
		return c.String() + " " + a.String()
	}
	kilter(t, "resource", "set", small, dongle+"=3")
	eventually(t, 20*time.Second, func() string {
		if have := count(); have != "3 3" {
			return "the node has " + have
		}
		return ""
	})
	p := pod("dongles", "", container("main", 0))
	p.Spec.Containers[0].Resources.Limits = corev1.ResourceList{dongle: *quantity(2)}
	create(t, p)
	if p := waitPhase(t, "dongles", corev1.PodSucceeded); p.Spec.NodeName != small {
		t.Errorf("runs on %s", p.Spec.NodeName)
	}
	kilter(t, "resource", "unset", small, dongle)
	eventually(t, 20*time.Second, func() string {
		if have := count(); have != "0 0" {
			return "the node has " + have
		}
		return ""
	})
	if out := kilterFails(t, "resource", "unset", small, dongle); !strings.Contains(out, "has no resource") {
		t.Error(out)
	}
	for words, complaint := range map[string]string{
		small + " " + dongle + "=-1": "at least 0",
		small + " " + dongle:         "NAME=COUNT",
		small + " dongle=1":          "vendor/kind",
		"nowhere " + dongle + "=1":   "not found",
	} {
		if out := kilterFails(t, append([]string{"resource", "set"}, strings.Fields(words)...)...); !strings.Contains(out, complaint) {
			t.Errorf("resource set %s: %s", words, out)
		}
	}
}

// The raw call of docs/extended-resources.md, through `kubectl proxy`.
func TestResourceByRawCall(t *testing.T) {
	proxy := suite.command("kubectl", "proxy", "--port=0")
	out, err := proxy.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := proxy.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = proxy.Process.Kill(); _ = proxy.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimSpace(line[strings.LastIndex(line, " ")+1:])
	patch := func(op, path, value string) int {
		body := fmt.Sprintf(`[{"op": %q, "path": %q, "value": %q}]`, op, path, value)
		request, _ := http.NewRequest(http.MethodPatch, "http://"+address+"/api/v1/nodes/"+small+"/status", strings.NewReader(body))
		request.Header.Set("Content-Type", "application/json-patch+json")
		response, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	if status := patch("add", "/status/capacity/example.com~1raw", "4"); status != http.StatusOK {
		t.Errorf("the escaped path gives %d", status)
	}
	if status := patch("add", "/status/capacity/example.com/raw", "4"); status == http.StatusOK {
		t.Error("the path with a bare slash is accepted, and the document says that it is not")
	}
	kilter(t, "resource", "unset", small, "example.com/raw")
}

// Nobody without a certificate gets in, and the key to the cluster is its
// owner's alone.
func TestClusterIsClosed(t *testing.T) {
	info, err := os.Stat(filepath.Join(suite.data, "kubeconfig"))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig: %v %v", info.Mode(), err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", filepath.Join(suite.data, "kubeconfig"))
	if err != nil {
		t.Fatal(err)
	}
	anonymous, err := kubernetes.NewForConfig(rest.AnonymousClientConfig(config))
	if err != nil {
		t.Fatal(err)
	}
	for what, ask := range map[string]func() error{
		"nodes": func() error {
			_, err := anonymous.CoreV1().Nodes().List(context.Background(), metav1.ListOptions{})
			return err
		},
		"version": func() error { _, err := anonymous.ServerVersion(); return err },
	} {
		if err := ask(); err == nil {
			t.Errorf("a stranger may ask for %s", what)
		}
	}
	// The agent may do what its manifest says, and no more.
	for words, want := range map[string]string{
		"get nodes": "yes", "get pods": "yes", "create events": "yes",
		"list secrets": "no", "get secrets": "no", "delete pods": "no", "update nodes": "no", "create pods": "no",
	} {
		out, _ := suite.command(append([]string{"kubectl", "auth", "can-i", "--as=system:serviceaccount:kilter-system:kilter-agent", "-A"}, strings.Fields(words)...)...).Output()
		if strings.TrimSpace(string(out)) != want {
			t.Errorf("may the agent %s? %s, want %s", words, out, want)
		}
	}
}

func TestVectorAddExample(t *testing.T) {
	file := "../../examples/vector-add.yaml"
	kilter(t, "kubectl", "apply", "-f", file)
	t.Cleanup(func() { remove(t, "vector-add") })
	waitPhase(t, "vector-add", corev1.PodSucceeded)
	out := kilter(t, "kubectl", "logs", "vector-add")
	for _, want := range []string{"device:   /dev/nvidia", "visible:  GPU-", "/usr/local/nvidia, read-only", "result:   1 device"} {
		if !strings.Contains(out, want) {
			t.Errorf("the example does not say %q:\n%s", want, out)
		}
	}
}
