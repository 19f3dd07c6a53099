package kube

import (
	"context"
	"fmt"
	"net/url"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// What the command line asks for; the agent has no rights to it.

// Pods lists the Pods of a namespace that have the labels.
func (c *Client) Pods(ctx context.Context, namespace, selector string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	err := c.rest.Get().Namespace(namespace).Resource("pods").
		VersionedParams(&metav1.ListOptions{LabelSelector: selector}, c.parameters).Do(ctx).Into(list)
	if err != nil {
		return nil, fmt.Errorf("list the Pods %s in %s: %w", selector, namespace, err)
	}
	return list.Items, nil
}

// ExecURL is where a command in a container is run.
func (c *Client) ExecURL(pod corev1.Pod, container string, command []string) *url.URL {
	return c.rest.Post().Namespace(pod.Namespace).Resource("pods").Name(pod.Name).SubResource("exec").
		VersionedParams(&corev1.PodExecOptions{Container: container, Command: command, Stdout: true, Stderr: true}, c.parameters).URL()
}

// PatchNodeStatus applies a JSON patch to the status of a node.
func (c *Client) PatchNodeStatus(ctx context.Context, node string, patch []byte) error {
	err := c.rest.Patch(types.JSONPatchType).Resource("nodes").Name(node).SubResource("status").Body(patch).Do(ctx).Error()
	if err != nil {
		return fmt.Errorf("write the status of node %s: %w", node, err)
	}
	return nil
}
