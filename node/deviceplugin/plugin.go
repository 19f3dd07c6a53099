package deviceplugin

import (
	"context"
	"log/slog"
	"sync"

	"google.golang.org/protobuf/proto"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// plugin answers for one resource. It outlives the sockets on which it serves.
type plugin struct {
	resource string
	giver    *giver
	logger   *slog.Logger

	mu      sync.Mutex
	list    *pluginapi.ListAndWatchResponse
	changed chan struct{}
}

func newPlugin(resource string, giver *giver, logger *slog.Logger) *plugin {
	return &plugin{
		resource: resource,
		giver:    giver,
		logger:   logger.With("resource", resource),
		list:     &pluginapi.ListAndWatchResponse{},
		changed:  make(chan struct{}),
	}
}

// publish sets what the kubelet is told. The same list again is not sent: the
// kubelet writes a file for each.
func (p *plugin) publish(offers []Offer) {
	list := &pluginapi.ListAndWatchResponse{Devices: pluginDevices(offers)}
	p.mu.Lock()
	defer p.mu.Unlock()
	if proto.Equal(list, p.list) {
		return
	}
	p.list = list
	close(p.changed)
	p.changed = make(chan struct{})
}

func (p *plugin) current() (*pluginapi.ListAndWatchResponse, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.list, p.changed
}

// options tells the kubelet which of the optional calls are worth making.
func options() *pluginapi.DevicePluginOptions {
	return &pluginapi.DevicePluginOptions{PreStartRequired: true, GetPreferredAllocationAvailable: true}
}

// service is a plugin as it is served on one socket.
type service struct {
	pluginapi.UnimplementedDevicePluginServer
	*plugin

	// closing ends the streams when another socket has taken over.
	closing chan struct{}
	// streams counts the kubelet's open streams.
	streams *counter
}

// GetDevicePluginOptions is asked by the kubelet while we register.
func (s *service) GetDevicePluginOptions(context.Context, *pluginapi.Empty) (*pluginapi.DevicePluginOptions, error) {
	return options(), nil
}

// ListAndWatch sends the list of devices now and after each change.
func (s *service) ListAndWatch(_ *pluginapi.Empty, stream pluginapi.DevicePlugin_ListAndWatchServer) error {
	opened := false
	defer func() {
		if opened {
			s.streams.add(-1)
		}
	}()
	for {
		list, changed := s.current()
		if err := stream.Send(list); err != nil {
			return err
		}
		if !opened {
			opened = true
			s.streams.add(1)
		}
		select {
		case <-stream.Context().Done():
			return nil
		case <-s.closing:
			return nil
		case <-changed:
		}
	}
}

// GetPreferredAllocation says which of the available devices go well together.
func (s *service) GetPreferredAllocation(ctx context.Context, request *pluginapi.PreferredAllocationRequest) (*pluginapi.PreferredAllocationResponse, error) {
	response := &pluginapi.PreferredAllocationResponse{}
	for _, container := range request.GetContainerRequests() {
		ids, err := s.giver.prefer(ctx, s.resource,
			deviceIDs(container.GetAvailableDeviceIDs()), deviceIDs(container.GetMustIncludeDeviceIDs()), int(container.GetAllocationSize()))
		if err != nil {
			s.logger.Warn("no preference", "error", err)
			return nil, asStatus(err)
		}
		preferred := &pluginapi.ContainerPreferredAllocationResponse{}
		for _, id := range ids {
			preferred.DeviceIDs = append(preferred.DeviceIDs, string(id))
		}
		response.ContainerResponses = append(response.ContainerResponses, preferred)
	}
	return response, nil
}

// Allocate gives devices to containers: all that was asked for, or an error
// and nothing.
func (s *service) Allocate(ctx context.Context, request *pluginapi.AllocateRequest) (*pluginapi.AllocateResponse, error) {
	wanted := make([][]string, 0, len(request.GetContainerRequests()))
	for _, container := range request.GetContainerRequests() {
		wanted = append(wanted, container.GetDevicesIds())
	}
	given, err := s.giver.give(ctx, s.resource, wanted)
	if err != nil {
		s.logger.Warn("refused to give devices", "error", err)
		return nil, asStatus(err)
	}
	response := &pluginapi.AllocateResponse{}
	for _, edits := range given {
		response.ContainerResponses = append(response.ContainerResponses, containerResponse(edits))
	}
	return response, nil
}

// PreStartContainer makes the devices of a container ready once more, since
// the machine may have started anew since they were given.
func (s *service) PreStartContainer(ctx context.Context, request *pluginapi.PreStartContainerRequest) (*pluginapi.PreStartContainerResponse, error) {
	if err := s.giver.renew(ctx, s.resource, deviceIDs(request.GetDevicesIds())); err != nil {
		s.logger.Warn("a container can not start", "error", err)
		return nil, asStatus(err)
	}
	return &pluginapi.PreStartContainerResponse{}, nil
}
