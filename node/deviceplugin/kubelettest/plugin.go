package kubelettest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin is a device plugin as the kubelet sees it.
type plugin struct {
	resource string
	path     string
	conn     *grpc.ClientConn
	client   pluginapi.DevicePluginClient
	options  *pluginapi.DevicePluginOptions
	// lists counts what came over the stream.
	lists int

	cancel context.CancelFunc
	ctx    context.Context
}

func connect(ctx context.Context, resource, path string) (*plugin, error) {
	conn, err := grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	client := pluginapi.NewDevicePluginClient(conn)
	options, err := client.GetDevicePluginOptions(ctx, &pluginapi.Empty{})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("failed to dial device plugin: %w", err), conn.Close())
	}
	p := &plugin{resource: resource, path: path, conn: conn, client: client, options: options}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p, nil
}

// watch calls report with each list until the stream ends.
func (p *plugin) watch(report func([]*pluginapi.Device)) {
	stream, err := p.client.ListAndWatch(p.ctx, &pluginapi.Empty{})
	if err != nil {
		return
	}
	for {
		list, err := stream.Recv()
		if err != nil {
			return
		}
		report(list.GetDevices())
	}
}

func (p *plugin) disconnect() {
	p.cancel()
	_ = p.conn.Close()
}
