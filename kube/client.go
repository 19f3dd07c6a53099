package kube

import (
	"context"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/rest"
)

// ErrRefused is in the error of a call that the API server understood and
// refused: making it again would change nothing.
var ErrRefused = errors.New("the API server refused")

// callTimeout bounds one call. The agent rather asks again later than hangs.
const callTimeout = 5 * time.Second

// Client makes Kilter's calls to the API server. It knows the core objects
// only: a client for all of Kubernetes would cost every agent ten megabytes.
// The agent needs the rights to get its Node, get Pods and create Events.
type Client struct {
	rest       rest.Interface
	parameters runtime.ParameterCodec
}

// NewClient returns a client for the API server that config describes. It
// makes no call.
func NewClient(config *rest.Config) (*Client, error) {
	scheme := runtime.NewScheme()
	if err := corev1.AddToScheme(scheme); err != nil {
		return nil, fmt.Errorf("set up the Kubernetes client: %w", err)
	}
	config = rest.CopyConfig(config)
	config.APIPath = "/api"
	config.GroupVersion = &corev1.SchemeGroupVersion
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	config.Timeout = callTimeout
	// A Pod may be waiting for an answer. What the agent asks is bounded by
	// what changes on one node; this is only for when that goes wrong.
	config.QPS, config.Burst = 50, 100
	if config.UserAgent == "" {
		config.UserAgent = component
	}
	client, err := rest.RESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("set up the Kubernetes client: %w", err)
	}
	return &Client{rest: client, parameters: runtime.NewParameterCodec(scheme)}, nil
}

// Node returns the node of the given name.
func (c *Client) Node(ctx context.Context, name string) (*corev1.Node, error) {
	node := &corev1.Node{}
	if err := c.rest.Get().Resource("nodes").Name(name).Do(ctx).Into(node); err != nil {
		return nil, fmt.Errorf("get node %s: %w", name, err)
	}
	return node, nil
}

// Pod returns the uid of the Pod that has this name now, and whether it lives:
// a Pod that has succeeded or failed runs no container any more. The uid is
// empty when there is no such Pod.
func (c *Client) Pod(ctx context.Context, namespace, name string) (uid string, alive bool, err error) {
	pod := &corev1.Pod{}
	err = c.rest.Get().Namespace(namespace).Resource("pods").Name(name).Do(ctx).Into(pod)
	switch {
	case apierrors.IsNotFound(err):
		return "", false, nil
	case err != nil:
		return "", false, fmt.Errorf("get Pod %s/%s: %w", namespace, name, err)
	}
	ended := pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	return string(pod.UID), !ended, nil
}

// CreateEvent writes the event. One that is there already is no error.
func (c *Client) CreateEvent(ctx context.Context, event PodEvent) error {
	object := event.object()
	err := c.rest.Post().Namespace(event.Namespace).Resource("events").Body(object).Do(ctx).Error()
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsNotFound(err), apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err):
		return fmt.Errorf("write event %s on Pod %s/%s: %w: %w", event.Reason, event.Namespace, event.Pod, ErrRefused, err)
	default:
		return fmt.Errorf("write event %s on Pod %s/%s: %w", event.Reason, event.Namespace, event.Pod, err)
	}
}
