package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	utilexec "k8s.io/client-go/util/exec"

	"github.com/kilter-dev/kilter/deploy"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/local"
)

// agents reaches the agents of a cluster. They listen on no network: a command
// is run in their Pods, so who may ask is decided by the right to `exec` there.
type agents struct {
	config *rest.Config
	client *kube.Client
}

// at most so many agents are asked at once.
const askedAtOnce = 16

// pods are the agents' running Pods, on one node or, when it is empty, on all.
func (a agents) pods(ctx context.Context, node string) ([]corev1.Pod, error) {
	pods, err := a.client.Pods(ctx, deploy.Namespace, deploy.AgentSelector)
	if err != nil {
		return nil, fmt.Errorf("look for Kilter's agents: %w", err)
	}
	var running []corev1.Pod
	for _, pod := range pods {
		if pod.Status.Phase == corev1.PodRunning && pod.DeletionTimestamp == nil && (node == "" || pod.Spec.NodeName == node) {
			running = append(running, pod)
		}
	}
	if len(running) == 0 {
		if node != "" {
			return nil, fmt.Errorf("no agent of Kilter runs on node %q", node)
		}
		return nil, fmt.Errorf("no agent of Kilter runs in this cluster: install it with deploy/kilter.yaml")
	}
	return running, nil
}

// reports asks every agent for its devices. Nodes that do not answer are
// returned beside those that do.
func (a agents) reports(ctx context.Context, node string) ([]local.Report, []error, error) {
	pods, err := a.pods(ctx, node)
	if err != nil {
		return nil, nil, err
	}
	reports := make([]local.Report, len(pods))
	failures := make([]error, len(pods))
	var group errgroup.Group
	group.SetLimit(askedAtOnce)
	for i, pod := range pods {
		group.Go(func() error {
			out, err := a.run(ctx, pod, "devices", "--local", "-o", "json")
			if err == nil {
				err = json.Unmarshal(out, &reports[i])
			}
			if err != nil {
				failures[i] = fmt.Errorf("node %s: %w", pod.Spec.NodeName, err)
			}
			return nil
		})
	}
	_ = group.Wait()
	var answered []local.Report
	var silent []error
	for i := range pods {
		if failures[i] != nil {
			silent = append(silent, failures[i])
			continue
		}
		answered = append(answered, reports[i])
	}
	return answered, silent, nil
}

// run runs kilter in an agent's Pod and returns what it prints.
func (a agents) run(ctx context.Context, pod corev1.Pod, args ...string) ([]byte, error) {
	url := a.client.ExecURL(pod, "agent", append([]string{"/kilter"}, args...))
	executor, err := remotecommand.NewWebSocketExecutor(a.config, "GET", url.String())
	if err != nil {
		return nil, err
	}
	var stdout, stderr bytes.Buffer
	err = executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	var exit utilexec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return nil, fmt.Errorf("%s", strings.TrimPrefix(strings.TrimSpace(stderr.String()), "error: "))
	}
	if err != nil {
		return nil, fmt.Errorf("ask the agent in Pod %s: %w", pod.Name, err)
	}
	return stdout.Bytes(), nil
}
