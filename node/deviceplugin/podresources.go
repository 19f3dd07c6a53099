package deviceplugin

import (
	"context"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	podresourcesapi "k8s.io/kubelet/pkg/apis/podresources/v1"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/node/ledger"
)

const (
	// listPatience bounds one question to the kubelet. A Pod may be waiting
	// for the answer.
	listPatience = 2 * time.Second
	// longestAnswer is far above what the largest node gives.
	longestAnswer = 32 << 20
)

// PodResources asks the kubelet which container was given which devices. The
// connection is made when it is needed, and made again when it was lost.
type PodResources struct {
	socket string

	mu   sync.Mutex
	conn *grpc.ClientConn
}

// NewPodResources returns a client for the kubelet's PodResources socket. It
// makes no call.
func NewPodResources(socket string) *PodResources {
	return &PodResources{socket: socket}
}

// List returns all containers of the node's Pods. The kubelet makes its socket
// anew when it starts, so the socket's identity names the run.
func (p *PodResources) List(ctx context.Context) (containers []ledger.Container, run string, err error) {
	ctx, cancel := context.WithTimeout(ctx, listPatience)
	defer cancel()
	conn, err := p.connection()
	if err != nil {
		return nil, "", err
	}
	before, err := identify(p.socket)
	if err != nil {
		return nil, "", fmt.Errorf("look for the kubelet at %s: %w", p.socket, err)
	}
	response, err := podresourcesapi.NewPodResourcesListerClient(conn).List(ctx, &podresourcesapi.ListPodResourcesRequest{})
	if err != nil {
		return nil, "", fmt.Errorf("list Pod resources at %s: %w", p.socket, err)
	}
	if after, err := identify(p.socket); err != nil || after != before {
		return nil, "", fmt.Errorf("list Pod resources at %s: the kubelet restarted meanwhile", p.socket)
	}
	for _, pod := range response.GetPodResources() {
		for _, c := range pod.GetContainers() {
			containers = append(containers, listedContainer(pod, c))
		}
	}
	return containers, fmt.Sprint(before), nil
}

func listedContainer(pod *podresourcesapi.PodResources, c *podresourcesapi.ContainerResources) ledger.Container {
	container := ledger.Container{Namespace: pod.GetNamespace(), Pod: pod.GetName(), Container: c.GetName()}
	for _, devices := range c.GetDevices() {
		if container.Devices == nil {
			container.Devices = make(map[string][]device.ID)
		}
		// The kubelet has an entry for each NUMA node.
		name := devices.GetResourceName()
		container.Devices[name] = append(container.Devices[name], deviceIDs(devices.GetDeviceIds())...)
	}
	return container
}

func (p *PodResources) connection() (*grpc.ClientConn, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		return p.conn, nil
	}
	conn, err := grpc.NewClient("unix://"+p.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(longestAnswer)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff: backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 2, MaxDelay: time.Second},
		}),
	)
	if err != nil {
		return nil, fmt.Errorf("connect to the kubelet at %s: %w", p.socket, err)
	}
	p.conn = conn
	return conn, nil
}

// Close lets go of the connection.
func (p *PodResources) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn == nil {
		return nil
	}
	err := p.conn.Close()
	p.conn = nil
	return err
}
