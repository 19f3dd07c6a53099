// Package kubelettest is a stand-in for the kubelet, for tests: it takes in
// device plugins, gives their devices to Pods and says who has what, on real
// sockets and by the rules of Kubernetes 1.37. Its API is a stand-in for what
// the agent asks of the API server.
package kubelettest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"google.golang.org/grpc"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Kubelet is the kubelet of one node.
type Kubelet struct {
	pluginapi.UnimplementedRegistrationServer
	podresourcesapi.UnimplementedPodResourcesListerServer

	// PluginFolder is the folder for device plugins.
	PluginFolder string
	// PodResourcesSocket is where the kubelet says who has what.
	PodResourcesSocket string

	tb testing.TB

	mu      sync.Mutex
	servers []*grpc.Server
	refusal error
	// plugins are by resource and then by the path of their socket.
	plugins map[string]map[string]*plugin
	// primary is the plugin that is asked.
	primary map[string]*plugin
	devices map[string]map[string]*pluginapi.Device

	pods  []Pod
	given map[holder][]string

	registrations int
	lists         int
	// stalled makes lists fail while the kubelet runs.
	stalled error
	changed chan struct{}
}

// Pod is a Pod as the kubelet knows it.
type Pod struct {
	Namespace, Name, UID string
	// Containers are the names of its app containers.
	Containers []string
}

type holder struct {
	uid, container, resource string
}

// New returns a kubelet that is not running, with its folders under root.
func New(tb testing.TB, root string) *Kubelet {
	tb.Helper()
	k := &Kubelet{
		PluginFolder:       filepath.Join(root, "device-plugins"),
		PodResourcesSocket: filepath.Join(root, "pod-resources", "kubelet.sock"),
		tb:                 tb,
		given:              make(map[holder][]string),
		changed:            make(chan struct{}),
	}
	tb.Cleanup(k.Kill)
	return k
}

// Start starts the kubelet: it makes its folders, removes all sockets from the
// plugin folder and opens its own anew. It knows the Pods and what they were
// given from before.
func (k *Kubelet) Start() {
	k.tb.Helper()
	for _, folder := range []string{k.PluginFolder, filepath.Dir(k.PodResourcesSocket)} {
		if err := os.MkdirAll(folder, 0o750); err != nil {
			k.tb.Fatal(err)
		}
		sockets, err := filepath.Glob(filepath.Join(folder, "*.sock"))
		if err != nil {
			k.tb.Fatal(err)
		}
		for _, path := range sockets {
			if err := os.Remove(path); err != nil {
				k.tb.Fatal(err)
			}
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plugins = make(map[string]map[string]*plugin)
	k.primary = make(map[string]*plugin)
	k.devices = make(map[string]map[string]*pluginapi.Device)
	k.serve(filepath.Join(k.PluginFolder, "kubelet.sock"), func(s *grpc.Server) { pluginapi.RegisterRegistrationServer(s, k) })
	k.serve(k.PodResourcesSocket, func(s *grpc.Server) { podresourcesapi.RegisterPodResourcesListerServer(s, k) })
	k.announce()
}

func (k *Kubelet) serve(path string, register func(*grpc.Server)) {
	listener, err := net.Listen("unix", path)
	if err != nil {
		k.tb.Fatal(err)
	}
	// A killed process leaves its sockets behind.
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	server := grpc.NewServer()
	register(server)
	k.servers = append(k.servers, server)
	go func() { _ = server.Serve(listener) }()
}

// Kill ends the kubelet as kill -9 does: its sockets stay, its connections
// break.
func (k *Kubelet) Kill() {
	k.mu.Lock()
	servers, plugins := k.servers, k.plugins
	k.servers, k.plugins, k.primary, k.devices = nil, nil, nil, nil
	k.announce()
	k.mu.Unlock()
	for _, server := range servers {
		server.Stop()
	}
	for _, byPath := range plugins {
		for _, p := range byPath {
			p.disconnect()
		}
	}
}

// Restart kills the kubelet and starts it again.
func (k *Kubelet) Restart() {
	k.tb.Helper()
	k.Kill()
	k.Start()
}

// Forget restarts the kubelet without its checkpoint: the Pods run on, what
// they were given is not known any more. A kubelet that runs does not forget.
func (k *Kubelet) Forget() {
	k.tb.Helper()
	k.Kill()
	k.mu.Lock()
	clear(k.given)
	k.mu.Unlock()
	k.Start()
}

// Refuse makes the kubelet refuse registrations, until it is nil.
func (k *Kubelet) Refuse(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.refusal = err
}

// Stall makes the kubelet fail to say who has what, until it is nil.
func (k *Kubelet) Stall(err error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.stalled = err
}

// announce wakes whoever waits for a change. The caller holds mu.
func (k *Kubelet) announce() {
	close(k.changed)
	k.changed = make(chan struct{})
}

// Register takes in a plugin as the kubelet does: it connects to the plugin's
// socket while the plugin waits.
func (k *Kubelet) Register(ctx context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	k.mu.Lock()
	k.registrations++
	refusal := k.refusal
	k.announce()
	k.mu.Unlock()
	if refusal != nil {
		return nil, refusal
	}
	if request.GetVersion() != pluginapi.Version {
		return nil, fmt.Errorf("requested API version %q is not supported", request.GetVersion())
	}
	p, err := connect(ctx, request.GetResourceName(), filepath.Join(k.PluginFolder, request.GetEndpoint()))
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plugins == nil {
		p.disconnect()
		return nil, fmt.Errorf("the kubelet is going down")
	}
	if k.plugins[p.resource] == nil {
		k.plugins[p.resource] = make(map[string]*plugin)
	}
	if k.plugins[p.resource][p.path] != nil {
		p.disconnect()
		return nil, fmt.Errorf("device plugin already connected: %s", p.path)
	}
	k.plugins[p.resource][p.path] = p
	k.primary[p.resource] = p
	go k.follow(p)
	return &pluginapi.Empty{}, nil
}

// follow takes in a plugin's lists until its stream ends.
func (k *Kubelet) follow(p *plugin) {
	p.watch(func(devices []*pluginapi.Device) {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.devices == nil || k.plugins[p.resource][p.path] != p {
			return
		}
		k.devices[p.resource] = make(map[string]*pluginapi.Device)
		for _, d := range devices {
			k.devices[p.resource][d.GetID()] = d
		}
		p.lists++
		k.announce()
	})
	p.disconnect()
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.plugins[p.resource][p.path] != p {
		return
	}
	delete(k.plugins[p.resource], p.path)
	delete(k.primary, p.resource)
	for _, other := range k.plugins[p.resource] {
		k.primary[p.resource] = other
	}
	if k.primary[p.resource] == nil {
		for _, d := range k.devices[p.resource] {
			d.Health = pluginapi.Unhealthy
		}
	}
	k.announce()
}

// List says who has what.
func (k *Kubelet) List(context.Context, *podresourcesapi.ListPodResourcesRequest) (*podresourcesapi.ListPodResourcesResponse, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.lists++
	k.announce()
	if k.stalled != nil {
		return nil, k.stalled
	}
	response := &podresourcesapi.ListPodResourcesResponse{}
	for _, pod := range k.pods {
		listed := &podresourcesapi.PodResources{Namespace: pod.Namespace, Name: pod.Name}
		for _, name := range pod.Containers {
			container := &podresourcesapi.ContainerResources{Name: name}
			for h, ids := range k.given {
				if h.uid == pod.UID && h.container == name {
					container.Devices = append(container.Devices, &podresourcesapi.ContainerDevices{ResourceName: h.resource, DeviceIds: ids})
				}
			}
			listed.Containers = append(listed.Containers, container)
		}
		response.PodResources = append(response.PodResources, listed)
	}
	return response, nil
}
