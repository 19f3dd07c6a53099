package kubelettest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Admit adds a Pod and gives its first container count devices, as the kubelet
// does: it takes what it thinks is free, asks the plugin for its preference and
// then for the devices. A Pod whose admission fails is not kept.
func (k *Kubelet) Admit(ctx context.Context, pod Pod, resource string, count int) ([]string, *pluginapi.ContainerAllocateResponse, error) {
	k.AddPod(pod)
	ids, response, err := k.admit(ctx, pod, resource, count)
	if err != nil {
		k.End(pod.UID)
	}
	return ids, response, err
}

func (k *Kubelet) admit(ctx context.Context, pod Pod, resource string, count int) ([]string, *pluginapi.ContainerAllocateResponse, error) {
	available := k.Available(resource)
	if len(available) < count {
		return nil, nil, fmt.Errorf("requested number of devices unavailable for %s. Requested: %d, Available: %d", resource, count, len(available))
	}
	p, err := k.plugin(resource)
	if err != nil {
		return nil, nil, err
	}
	preferred, err := p.client.GetPreferredAllocation(ctx, &pluginapi.PreferredAllocationRequest{
		ContainerRequests: []*pluginapi.ContainerPreferredAllocationRequest{{AvailableDeviceIDs: available, AllocationSize: int32(count)}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("device plugin GetPreferredAllocation rpc failed with err: %w", err)
	}
	chosen := available
	if responses := preferred.GetContainerResponses(); len(responses) > 0 {
		chosen = append(slices.Clone(responses[0].GetDeviceIDs()), available...)
	}
	return k.give(ctx, p, pod, pod.Containers[0], unique(chosen)[:count])
}

// Give asks the plugin for these very devices, whatever is free.
func (k *Kubelet) Give(ctx context.Context, pod Pod, container, resource string, ids ...string) ([]string, *pluginapi.ContainerAllocateResponse, error) {
	p, err := k.plugin(resource)
	if err != nil {
		return nil, nil, err
	}
	return k.give(ctx, p, pod, container, ids)
}

func (k *Kubelet) give(ctx context.Context, p *plugin, pod Pod, container string, ids []string) ([]string, *pluginapi.ContainerAllocateResponse, error) {
	response, err := p.client.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: ids}},
	})
	if err != nil {
		return nil, nil, fmt.Errorf("allocate failed due to %w, which is unexpected", err)
	}
	if len(response.GetContainerResponses()) != 1 {
		return nil, nil, fmt.Errorf("%d container responses, want 1", len(response.GetContainerResponses()))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.given[holder{pod.UID, container, p.resource}] = ids
	k.announce()
	return ids, response.GetContainerResponses()[0], nil
}

// StartContainer does what the kubelet does before each start of a container.
func (k *Kubelet) StartContainer(ctx context.Context, pod Pod, container, resource string) error {
	p, err := k.plugin(resource)
	if err != nil {
		return err
	}
	k.mu.Lock()
	ids := k.given[holder{pod.UID, container, resource}]
	k.mu.Unlock()
	if len(ids) == 0 {
		return fmt.Errorf("no devices found allocated in local cache for pod %s, container %s, resource %s", pod.UID, container, resource)
	}
	_, err = p.client.PreStartContainer(ctx, &pluginapi.PreStartContainerRequest{DevicesIds: ids})
	return err
}

// AddPod adds a Pod without giving it anything.
func (k *Kubelet) AddPod(pod Pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !slices.ContainsFunc(k.pods, func(other Pod) bool { return other.UID == pod.UID }) {
		k.pods = append(k.pods, pod)
	}
	k.announce()
}

// End ends a Pod: it is not listed any more, and what it had is free.
func (k *Kubelet) End(uid string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pods = slices.DeleteFunc(k.pods, func(pod Pod) bool { return pod.UID == uid })
	maps.DeleteFunc(k.given, func(h holder, _ []string) bool { return h.uid == uid })
	k.announce()
}

// Client returns the plugin for a resource, to make calls that no kubelet
// would.
func (k *Kubelet) Client(resource string) pluginapi.DevicePluginClient {
	k.tb.Helper()
	p, err := k.plugin(resource)
	if err != nil {
		k.tb.Fatal(err)
	}
	return p.client
}

func (k *Kubelet) plugin(resource string) (*plugin, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p := k.primary[resource]
	if p == nil {
		return nil, fmt.Errorf("cannot allocate unregistered device %s", resource)
	}
	return p, nil
}

// Available returns the devices that the kubelet takes for free and healthy.
func (k *Kubelet) Available(resource string) []string {
	k.mu.Lock()
	defer k.mu.Unlock()
	var available []string
	for id, d := range k.devices[resource] {
		used := false
		for h, ids := range k.given {
			used = used || h.resource == resource && slices.Contains(ids, id)
		}
		if !used && d.GetHealth() == pluginapi.Healthy {
			available = append(available, id)
		}
	}
	slices.Sort(available)
	return available
}

// Healthy returns how many healthy devices the node has of the resource, and
// Capacity how many in all.
func (k *Kubelet) Healthy(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	healthy := 0
	for _, d := range k.devices[resource] {
		if d.GetHealth() == pluginapi.Healthy {
			healthy++
		}
	}
	return healthy
}

// Capacity returns how many devices the node has of the resource.
func (k *Kubelet) Capacity(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.devices[resource])
}

// Device returns a device as it was reported last, nil if it was not.
func (k *Kubelet) Device(resource, id string) *pluginapi.Device {
	k.mu.Lock()
	defer k.mu.Unlock()
	if d := k.devices[resource][id]; d != nil {
		return proto.CloneOf(d)
	}
	return nil
}

// Plugins returns how many plugins are connected for the resource.
func (k *Kubelet) Plugins(resource string) int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.plugins[resource])
}

// Registrations counts the calls to register since the beginning.
func (k *Kubelet) Registrations() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.registrations
}

// Lists counts how often it was asked who has what.
func (k *Kubelet) Lists() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.lists
}

// Eventually waits until the condition holds, looking whenever something has
// changed at the kubelet and every few milliseconds otherwise.
func (k *Kubelet) Eventually(what string, condition func() bool) {
	k.tb.Helper()
	deadline := time.After(20 * time.Second)
	for {
		k.mu.Lock()
		changed := k.changed
		k.mu.Unlock()
		if condition() {
			return
		}
		select {
		case <-deadline:
			k.tb.Fatalf("timed out waiting until %s", what)
		case <-changed:
		case <-time.After(5 * time.Millisecond):
		}
	}
}

func unique(ids []string) []string {
	seen := make(map[string]bool)
	return slices.DeleteFunc(ids, func(id string) bool {
		before := seen[id]
		seen[id] = true
		return before
	})
}
