//go:build e2e

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kilter-dev/kilter/test/sight"
)

const namespace = "default"

// starting is how long a Pod may take to run on a busy machine.
const starting = time.Minute

// container runs the probe with so many GPUs; none means no request at all.
func container(name string, gpus int, args ...string) corev1.Container {
	c := corev1.Container{Name: name, Image: probeImage, ImagePullPolicy: corev1.PullNever, Args: args}
	if gpus > 0 {
		c.Resources.Limits = corev1.ResourceList{gpu: *resource.NewQuantity(int64(gpus), resource.DecimalSI)}
	}
	return c
}

// pod is a Pod on a node ("" for any) of these containers.
func pod(name, node string, containers ...corev1.Container) *corev1.Pod {
	none := int64(0)
	p := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: namespace},
		Spec: corev1.PodSpec{
			RestartPolicy:                 corev1.RestartPolicyNever,
			TerminationGracePeriodSeconds: &none,
			Containers:                    containers,
		},
	}
	if node != "" {
		p.Spec.NodeSelector = map[string]string{corev1.LabelHostname: node}
	}
	return p
}

// create makes the Pod, and removes it when the test ends.
func create(t testing.TB, p *corev1.Pod) *corev1.Pod {
	t.Helper()
	made, err := suite.client.CoreV1().Pods(namespace).Create(context.Background(), p, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("create Pod %s: %v", p.Name, err)
	}
	t.Cleanup(func() { remove(t, p.Name) })
	return made
}

// remove deletes the Pod and waits until it is gone.
func remove(t testing.TB, name string) {
	t.Helper()
	pods := suite.client.CoreV1().Pods(namespace)
	if err := pods.Delete(context.Background(), name, metav1.DeleteOptions{}); err != nil && !apierrors.IsNotFound(err) {
		t.Fatalf("delete Pod %s: %v", name, err)
	}
	eventually(t, starting, func() string {
		if _, err := pods.Get(context.Background(), name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Sprintf("Pod %s is still there (%v)", name, err)
		}
		return ""
	})
}

func get(t testing.TB, name string) *corev1.Pod {
	t.Helper()
	p, err := suite.client.CoreV1().Pods(namespace).Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func waitPhase(t testing.TB, name string, want corev1.PodPhase) *corev1.Pod {
	t.Helper()
	var p *corev1.Pod
	eventually(t, starting, func() string {
		p = get(t, name)
		if p.Status.Phase != want {
			return fmt.Sprintf("Pod %s is %s, not %s: %s %s", name, p.Status.Phase, want, p.Status.Reason, p.Status.Message)
		}
		return ""
	})
	return p
}

// waitPending waits until the scheduler has said why the Pod waits.
func waitPending(t testing.TB, name, reason string) {
	t.Helper()
	eventually(t, starting, func() string {
		for _, condition := range get(t, name).Status.Conditions {
			if condition.Type == corev1.PodScheduled && strings.Contains(condition.Message, reason) {
				return ""
			}
		}
		return fmt.Sprintf("Pod %s does not wait with %q: %v", name, reason, get(t, name).Status.Conditions)
	})
}

// see reads what the container has seen so far.
func see(t testing.TB, podName, containerName string) sight.Sight {
	t.Helper()
	var seen sight.Sight
	eventually(t, starting, func() string {
		out, err := suite.client.CoreV1().Pods(namespace).GetLogs(podName, &corev1.PodLogOptions{Container: containerName}).DoRaw(context.Background())
		if err != nil {
			return err.Error()
		}
		line, _, _ := strings.Cut(string(out), "\n")
		if err := json.Unmarshal([]byte(line), &seen); err != nil {
			return fmt.Sprintf("%s says %q", podName, out)
		}
		return ""
	})
	return seen
}

// hold starts a Pod with so many GPUs on the node that stays, and returns the
// ids that it was given.
func hold(t testing.TB, name, node string, gpus int) []string {
	t.Helper()
	create(t, pod(name, node, container("main", gpus, "-until-told")))
	waitPhase(t, name, corev1.PodRunning)
	return ids(see(t, name, "main"))
}

// ids are the devices that the environment names.
func ids(s sight.Sight) []string {
	if s.Visible == "" {
		return nil
	}
	return strings.Split(s.Visible, ",")
}

// events of a Pod, as "reason: message".
func events(t testing.TB, name string) []string {
	t.Helper()
	list, err := suite.client.CoreV1().Events(namespace).List(context.Background(), metav1.ListOptions{FieldSelector: "involvedObject.name=" + name})
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, event := range list.Items {
		lines = append(lines, event.Reason+": "+event.Message)
	}
	return lines
}

func waitEvent(t testing.TB, name, reason, text string) {
	t.Helper()
	eventually(t, 20*time.Second, func() string {
		for _, line := range events(t, name) {
			if strings.HasPrefix(line, reason+": ") && strings.Contains(line, text) {
				return ""
			}
		}
		return fmt.Sprintf("Pod %s has no event %s with %q: %q", name, reason, text, events(t, name))
	})
}

func quantity(count int64) *resource.Quantity { return resource.NewQuantity(count, resource.DecimalSI) }
