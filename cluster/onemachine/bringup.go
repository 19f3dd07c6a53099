package onemachine

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kilter-dev/kilter/cluster/image"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/plan"
	"github.com/kilter-dev/kilter/cluster/process"
	"github.com/kilter-dev/kilter/deploy"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/machines"
)

// images are made around the programs in the folder of that name.
func images(c plan.Cluster) []image.Recipe {
	return []image.Recipe{
		{Reference: plan.PauseImage, Program: c.Program("pause")},
		{Reference: deploy.Image, Program: c.Program("kilter")},
		{
			Reference: "kilter.dev/vector-add:latest", Program: c.Program("vector-add"),
			// As NVIDIA's own images have it.
			Env: []string{"LD_LIBRARY_PATH=/usr/local/nvidia/lib:/usr/local/nvidia/lib64"},
		},
	}
}

// bringUp waits for the processes, installs Kilter and waits until its
// devices are there to be asked for. What is done already costs a look.
func bringUp(ctx context.Context, c plan.Cluster, progress *progress) error {
	config, err := clientcmd.BuildConfigFromFlags("", c.Files.Kubeconfig())
	if err != nil {
		return err
	}
	config.QPS, config.Burst = 100, 200
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"images for the nodes", func() error { return loadImages(ctx, c) }},
		{"control plane", func() error { return waitReady(ctx, c.Files, "kube-apiserver") }},
		{"Kilter, from its own manifests", func() error { return install(ctx, c) }},
		{"nodes", func() error { return eachNode(ctx, c, client, isReady) }},
		{"devices", func() error { return eachNode(ctx, c, client, hasDevices) }},
	} {
		if err := progress.step(step.what, step.do); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	return nil
}

// loadImages makes the images and gives them to every node.
func loadImages(ctx context.Context, c plan.Cluster) error {
	var archives [][]byte
	for _, recipe := range images(c) {
		built, err := recipe.Build()
		if err != nil {
			return err
		}
		var archive bytes.Buffer
		if err := image.Write(&archive, recipe.Reference, built); err != nil {
			return err
		}
		archives = append(archives, archive.Bytes())
	}
	for _, node := range c.Spec.Nodes {
		if err := waitReady(ctx, c.Files, "containerd-"+node.Name); err != nil {
			return err
		}
		for _, archive := range archives {
			if _, err := image.Load(ctx, c.ContainerdSocket(node.Name), bytes.NewReader(archive)); err != nil {
				return fmt.Errorf("node %s: %w", node.Name, err)
			}
		}
	}
	return nil
}

// waitReady waits until the supervisor says that the process is ready.
func waitReady(ctx context.Context, files layout.Files, name string) error {
	return poll(ctx, func() (string, error) {
		if supervisorPID(files.Lock()) == 0 {
			return "", fmt.Errorf("the supervisor has ended")
		}
		statuses, _ := process.ReadStatus(files.Status())
		for _, status := range statuses {
			if status.Name == name && status.State == process.Ready {
				return "", nil
			}
		}
		return name + " is not ready", nil
	})
}

// poll asks again until nothing is missing. An error ends it.
func poll(ctx context.Context, missing func() (string, error)) error {
	for {
		what, err := missing()
		if err != nil || what == "" {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waited too long: %s", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// install applies Kilter's manifests as a user would.
func install(ctx context.Context, c plan.Cluster) error {
	cmd := exec.CommandContext(ctx, c.Program("kilter-cluster"), "kubectl", "apply", "--server-side", "--force-conflicts", "-f", "-")
	cmd.Env = append(os.Environ(), "KUBECONFIG="+c.Files.Kubeconfig())
	cmd.Stdin = bytes.NewReader(deploy.Manifest)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("kubectl apply: %w: %s", err, strings.TrimSpace(string(out)))
	}
	return nil
}

// eachNode waits until nothing is missing on any node.
func eachNode(ctx context.Context, c plan.Cluster, client kubernetes.Interface, missing func(plan.Node, *corev1.Node) (string, error)) error {
	for _, node := range c.Spec.Nodes {
		if err := poll(ctx, func() (string, error) {
			object, err := client.CoreV1().Nodes().Get(ctx, node.Name, metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return "node " + node.Name + " has not registered", nil
			}
			if err != nil {
				return "node " + node.Name + ": " + err.Error(), nil
			}
			return missing(node, object)
		}); err != nil {
			return err
		}
	}
	return nil
}

func isReady(_ plan.Node, object *corev1.Node) (string, error) {
	for _, condition := range object.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			if condition.Status == corev1.ConditionTrue {
				return "", nil
			}
			return "node " + object.Name + " is not ready: " + condition.Message, nil
		}
	}
	return "node " + object.Name + " has not said that it is ready", nil
}

// hasDevices compares what a node advertises with the machine it simulates.
// Of the machine's own hardware only the kind is known: one device will do.
func hasDevices(node plan.Node, object *corev1.Node) (string, error) {
	want := map[string]int64{"nvidia.com/gpu": 1}
	if node.Machine != plan.OwnHardware {
		machine, err := machines.Load(node.Machine)
		if err != nil {
			return "", err
		}
		want = map[string]int64{}
		for _, device := range machine.On(node.Name) {
			name, err := kube.ResourceName(device)
			if err != nil {
				return "", err
			}
			want[name]++
		}
	}
	for resource, count := range want {
		quantity := object.Status.Capacity[corev1.ResourceName(resource)]
		if have := quantity.Value(); have < count {
			return fmt.Sprintf("node %s has %d of %d %s", node.Name, have, count, resource), nil
		}
	}
	return "", nil
}
