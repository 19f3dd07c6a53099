package deviceplugin

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

const (
	// kubeletSocket is the name of the kubelet's socket in its folder.
	kubeletSocket = "kubelet.sock"
	// socketPrefix is how the names of our sockets begin.
	socketPrefix = "kilter-"

	// registerPatience bounds a registration. The kubelet gives itself ten
	// seconds to connect to us meanwhile.
	registerPatience = 12 * time.Second
	// stopPatience is how long calls under way may take to finish.
	stopPatience = 2 * time.Second
	// retirePause is how long a socket is served on after another has taken
	// over, for a kubelet that is just about to make a call.
	retirePause = time.Second
)

// endpoint is a plugin being served on one socket.
type endpoint struct {
	name     string
	path     string
	identity identity
	server   *grpc.Server
	service  *service
	calls    *counter
	served   sync.WaitGroup
}

// listen serves the plugin on a fresh socket in the folder.
func listen(folder string, p *plugin) (*endpoint, error) {
	name := socketName(p.resource)
	path := filepath.Join(folder, name)
	listener, err := net.Listen("unix", path)
	if err != nil {
		return nil, fmt.Errorf("listen for the kubelet: %w", err)
	}
	if err := os.Chmod(path, 0o600); err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("restrict the socket to its owner: %w", err)
	}
	identity, err := identify(path)
	if err != nil {
		_ = listener.Close()
		return nil, fmt.Errorf("look at the socket just made: %w", err)
	}
	e := &endpoint{
		name:     name,
		path:     path,
		identity: identity,
		service:  &service{plugin: p, closing: make(chan struct{}), streams: newCounter()},
		calls:    newCounter(),
	}
	e.server = grpc.NewServer(grpc.UnaryInterceptor(e.count))
	pluginapi.RegisterDevicePluginServer(e.server, e.service)
	e.served.Go(func() {
		// Serve returns when the server is stopped; what else could end it
		// shows as a stream that is not there.
		_ = e.server.Serve(listener)
	})
	return e, nil
}

// count keeps the number of calls under way.
func (e *endpoint) count(ctx context.Context, request any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	e.calls.add(1)
	defer e.calls.add(-1)
	return handle(ctx, request)
}

// stop lets calls under way finish for a moment, ends the streams and removes
// the socket. The order matters: when its stream ends, the kubelet drops the
// connection, and with it the calls on it.
func (e *endpoint) stop() {
	e.calls.wait(stopPatience)
	close(e.service.closing)
	impatient := time.AfterFunc(stopPatience, e.server.Stop)
	e.server.GracefulStop()
	impatient.Stop()
	e.served.Wait()
}

// retire stops the endpoint after a moment, or when ctx ends.
func (e *endpoint) retire(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-time.After(retirePause):
	}
	e.stop()
}

// intact says whether the socket is still where the kubelet looks for it.
func (e *endpoint) intact() bool {
	found, err := identify(e.path)
	return err == nil && found == e.identity
}

// register tells the kubelet behind the socket of the endpoint.
func register(ctx context.Context, folder string, e *endpoint) error {
	ctx, cancel := context.WithTimeout(ctx, registerPatience)
	defer cancel()
	conn, err := grpc.NewClient("unix://"+filepath.Join(folder, kubeletSocket), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	defer func() { _ = conn.Close() }()
	_, err = pluginapi.NewRegistrationClient(conn).Register(ctx, &pluginapi.RegisterRequest{
		Version:      pluginapi.Version,
		Endpoint:     e.name,
		ResourceName: e.service.resource,
		Options:      options(),
	})
	if err != nil {
		return fmt.Errorf("register with the kubelet: %w", err)
	}
	return nil
}

// longestStem keeps the path of a socket in the usual folder below the 107
// bytes that the kernel takes.
const longestStem = 48

// socketName is kilter-<vendor>-<kind>-<something fresh>.sock.
func socketName(resource string) string {
	stem := strings.ReplaceAll(resource, "/", "-")
	if len(stem) > longestStem {
		stem = stem[:longestStem]
	}
	return socketPrefix + stem + "-" + strings.ToLower(rand.Text()[:8]) + ".sock"
}
