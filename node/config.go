package node

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/local"
)

// Where things stand on a node unless the configuration says otherwise.
const (
	DefaultDevicePluginFolder = "/var/lib/kubelet/device-plugins"
	DefaultPodResourcesSocket = "/var/lib/kubelet/pod-resources/kubelet.sock"
	DefaultStateFolder        = "/var/lib/kilter"
	DefaultLocalSocket        = local.DefaultSocket
)

// Config is everything an agent is made of. Node, Drivers, Prefer and Logger
// must be there; an empty path means its default.
type Config struct {
	// Node is the node's name in the cluster.
	Node string

	// Drivers find the devices.
	Drivers []hardware.Driver

	// Prefer chooses count of the available devices, those in must included,
	// so that they work well together.
	Prefer func(devices []device.Device, available, must []device.ID, count int) ([]device.ID, error)

	// Offering says what devices are offered as: under which name, and whole
	// or shared. When nil, each is offered whole under its own name.
	Offering *config.Config

	// Reread reads Offering anew, with warnings for people. It is called every
	// few seconds; nil when Offering can not change.
	Reread func() (c config.Config, warnings []string, err error)
	// rereadPause is the time between two looks; tests have less of it.
	rereadPause time.Duration

	// Kubernetes is the API server. It may be nil: events are then only
	// logged, and a Pod is taken to have ended when the kubelet has not
	// listed it for a while.
	Kubernetes Kubernetes

	// DevicePluginFolder is where the kubelet and its plugins have their
	// sockets.
	DevicePluginFolder string

	// PodResourcesSocket is where the kubelet says who was given what.
	PodResourcesSocket string

	// StateFolder keeps the lock and what must outlive a restart.
	StateFolder string

	// LocalSocket is the door for people on the node.
	LocalSocket string

	Logger *slog.Logger
}

// Kubernetes is what the agent asks of the API server; *kube.Client is one.
type Kubernetes interface {
	// Pod returns the uid of the Pod that has this name now, empty when there
	// is none, and whether it still runs or may run containers.
	Pod(ctx context.Context, namespace, name string) (uid string, alive bool, err error)
	// CreateEvent writes an event; one that is there already is no error.
	CreateEvent(ctx context.Context, event kube.PodEvent) error
}

// withDefaults fills in what was left empty.
func (c Config) withDefaults() Config {
	c.rereadPause = cmp.Or(c.rereadPause, rereadPause)
	for _, path := range []struct {
		value    *string
		fallback string
	}{
		{&c.DevicePluginFolder, DefaultDevicePluginFolder},
		{&c.PodResourcesSocket, DefaultPodResourcesSocket},
		{&c.StateFolder, DefaultStateFolder},
		{&c.LocalSocket, DefaultLocalSocket},
	} {
		if *path.value == "" {
			*path.value = path.fallback
		}
	}
	return c
}

// check refuses a configuration with which nothing would work.
func (c Config) check() error {
	switch {
	case c.Logger == nil:
		return errors.New("there is no logger")
	case c.Node == "":
		return errors.New("the name of the node is missing")
	case c.Prefer == nil:
		return errors.New("there is nothing that chooses devices")
	}
	if c.Reread != nil && c.Offering == nil {
		return errors.New("there is no configuration that could be read again")
	}
	names := make(map[string]bool)
	for _, driver := range c.Drivers {
		if names[driver.Name()] {
			return fmt.Errorf("the driver %q is there twice", driver.Name())
		}
		names[driver.Name()] = true
	}
	return nil
}
