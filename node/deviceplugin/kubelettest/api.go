package kubelettest

import (
	"context"
	"sync"

	"github.com/kilter-dev/kilter/kube"
)

// API is what the API server knows of Pods, and the events that it was given.
type API struct {
	mu     sync.Mutex
	pods   map[[2]string]apiPod
	events []kube.PodEvent
	err    error
}

type apiPod struct {
	uid   string
	alive bool
}

// NewAPI returns an API server without Pods.
func NewAPI() *API { return &API{pods: make(map[[2]string]apiPod)} }

// Create adds a living Pod, or replaces the one of that name.
func (a *API) Create(pod Pod) { a.set(pod, apiPod{pod.UID, true}) }

// Finish lets a Pod succeed.
func (a *API) Finish(pod Pod) { a.set(pod, apiPod{pod.UID, false}) }

// Delete removes a Pod.
func (a *API) Delete(pod Pod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.pods, [2]string{pod.Namespace, pod.Name})
}

func (a *API) set(pod Pod, state apiPod) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.pods[[2]string{pod.Namespace, pod.Name}] = state
}

// Break makes every call fail, until it is nil.
func (a *API) Break(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = err
}

// Pod answers as the API server would.
func (a *API) Pod(_ context.Context, namespace, name string) (uid string, alive bool, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	pod := a.pods[[2]string{namespace, name}]
	return pod.uid, pod.alive, a.err
}

// CreateEvent keeps the event.
func (a *API) CreateEvent(_ context.Context, event kube.PodEvent) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.err == nil {
		a.events = append(a.events, event)
	}
	return a.err
}

// Events returns the events so far.
func (a *API) Events() []kube.PodEvent {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]kube.PodEvent(nil), a.events...)
}
