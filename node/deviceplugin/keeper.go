package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"google.golang.org/grpc/status"
)

const (
	// streamPatience is how long the kubelet may take to open its stream
	// after a registration.
	streamPatience = 3 * time.Second

	shortestRetry = 100 * time.Millisecond
	longestRetry  = 10 * time.Second
)

// errNoKubelet is the state of a node whose kubelet has not started yet.
var errNoKubelet = errors.New("the kubelet is not there yet")

// keeper keeps one plugin registered.
type keeper struct {
	plugin *plugin
	folder *folder
	// registered is called after each registration.
	registered func()

	endpoint *endpoint
	kubelet  identity
	retiring sync.WaitGroup

	mu sync.Mutex
	// problem is what is in the way at the moment, for people; empty when the
	// plugin is registered.
	problem string
}

// run keeps the plugin registered until ctx ends.
func (k *keeper) run(ctx context.Context) {
	defer func() {
		if k.endpoint != nil {
			k.endpoint.stop()
		}
		k.retiring.Wait()
	}()
	retry := shortestRetry
	for ctx.Err() == nil {
		changed, streamChanged := k.folder.change(), k.streamChange()
		wait, err := k.look(ctx)
		k.tell(err, wait > 0)
		var again <-chan time.Time
		switch {
		case errors.Is(err, errNoKubelet):
			retry = shortestRetry
		case err != nil:
			if k.pause(ctx, retry) {
				retry = min(2*retry, longestRetry)
			} else {
				retry = shortestRetry
			}
			continue
		case wait > 0:
			again = time.After(wait)
		default:
			retry = shortestRetry
		}
		select {
		case <-ctx.Done():
		case <-changed:
		case <-streamChanged:
		case <-again:
		}
	}
}

// pause waits after a failure, and says whether it waited to the end. It does
// not when another kubelet has come: that one is not kept waiting for what
// happened before it.
func (k *keeper) pause(ctx context.Context, long time.Duration) bool {
	before, _ := identify(k.kubeletSocket())
	over := time.After(long)
	for {
		changed := k.folder.change()
		if now, err := identify(k.kubeletSocket()); err == nil && now != before {
			return false
		}
		select {
		case <-ctx.Done():
			return true
		case <-over:
			return true
		case <-changed:
		}
	}
}

// look sees to it that the plugin is registered. It returns how long to wait
// for the kubelet's stream, zero when it is open.
func (k *keeper) look(ctx context.Context) (wait time.Duration, err error) {
	kubelet, err := identify(k.kubeletSocket())
	if err != nil {
		return 0, errNoKubelet
	}
	if k.endpoint != nil && kubelet == k.kubelet && k.endpoint.intact() {
		open, since := k.endpoint.service.streams.open()
		if open {
			return 0, nil
		}
		if waited := time.Since(since); waited < streamPatience {
			return streamPatience - waited, nil
		}
	}
	if err := k.serve(ctx); err != nil {
		return 0, err
	}
	k.kubelet = kubelet
	return streamPatience, nil
}

// serve opens a fresh socket, registers it, and only then lets go of the one
// before.
func (k *keeper) serve(ctx context.Context) error {
	fresh, err := listen(k.folder.path, k.plugin)
	if err != nil {
		return err
	}
	if err := register(ctx, k.folder.path, fresh); err != nil {
		fresh.stop()
		return err
	}
	if old := k.endpoint; old != nil {
		k.retiring.Go(func() { old.retire(ctx) })
	}
	k.endpoint = fresh
	k.registered()
	return nil
}

func (k *keeper) kubeletSocket() string { return filepath.Join(k.folder.path, kubeletSocket) }

// streamChange is nil, which blocks, while nothing is served.
func (k *keeper) streamChange() <-chan struct{} {
	if k.endpoint == nil {
		return nil
	}
	return k.endpoint.service.streams.change()
}

// tell keeps the state for whoever asks, and logs it when it changes.
func (k *keeper) tell(err error, waiting bool) {
	problem := ""
	switch {
	case err != nil:
		problem = plainly(err)
	case waiting:
		problem = "the kubelet has not asked for the devices yet"
	}
	k.mu.Lock()
	before := k.problem
	k.problem = problem
	k.mu.Unlock()
	switch {
	case problem == before:
	case problem == "":
		k.plugin.logger.Info("registered with the kubelet")
	case err != nil:
		k.plugin.logger.Warn("not registered with the kubelet", "reason", problem)
	}
}

// state is what is in the way of the plugin, empty when it is registered.
func (k *keeper) state() string {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.problem
}

// plainly is the error as a person would say it: the words of the kubelet
// without those of the transport.
func plainly(err error) string {
	var reply interface{ GRPCStatus() *status.Status }
	if errors.As(err, &reply) {
		s := reply.GRPCStatus()
		return fmt.Sprintf("the kubelet refused or did not answer: %s (%s)", s.Message(), s.Code())
	}
	return err.Error()
}
