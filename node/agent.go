// Package node is the agent: it finds the node's devices, offers them to the
// kubelet, keeps the book of who holds what, tells Pods when a device of
// theirs falls sick, and answers people on the node.
package node

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/deviceplugin"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/local"
	"github.com/kilter-dev/kilter/node/terms"
)

// bootIDFile changes its content when the machine starts.
const bootIDFile = "/proc/sys/kernel/random/boot_id"

// Agent is the agent of one node.
type Agent struct {
	config Config
}

// New returns an agent. It does nothing until Run.
func New(config Config) *Agent {
	return &Agent{config: config.withDefaults()}
}

// Run does the agent's work until ctx ends, and then returns nil. It returns
// an error when it can not go on; starting it again is then the way forward.
func (a *Agent) Run(ctx context.Context) error {
	if err := a.config.check(); err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	offering, err := a.terms()
	if err != nil {
		return fmt.Errorf("start the agent: %w", err)
	}
	if err := os.MkdirAll(a.config.StateFolder, 0o700); err != nil {
		return fmt.Errorf("make the agent's folder: %w", err)
	}
	held, err := lock(a.config.StateFolder)
	if err != nil {
		return err
	}
	defer func() { _ = held.Close() }()
	bootID, err := os.ReadFile(bootIDFile)
	if err != nil {
		return fmt.Errorf("tell this run of the machine from the last: %w", err)
	}

	podResources := deviceplugin.NewPodResources(a.config.PodResourcesSocket)
	defer func() { _ = podResources.Close() }()
	devices := inventory.New(a.config.Drivers, a.config.Logger)
	var door *deviceplugin.Door
	var known func(device.ID) bool
	if offering != nil {
		// Names come and go with the configuration; devices do not.
		known = devices.Has
	}
	book := ledger.New(ledger.Config{
		File:    filepath.Join(a.config.StateFolder, "ledger.json"),
		BootID:  strings.TrimSpace(string(bootID)),
		Kubelet: podResources,
		Pods:    a.config.Kubernetes,
		Ours:    func(resource string) bool { return door.Serves(resource) },
		Known:   known,
		Logger:  a.config.Logger,
	})
	if err := book.Load(); err != nil {
		return err
	}
	door = deviceplugin.New(deviceplugin.Config{
		Folder:    a.config.DevicePluginFolder,
		Inventory: devices,
		Ledger:    book,
		Prefer:    a.config.Prefer,
		Terms:     offering,
		Logger:    a.config.Logger,
	})
	desk := &desk{node: a.config.Node, inventory: devices, ledger: book, door: door}
	teller := &teller{node: a.config.Node, inventory: devices, ledger: book, logger: a.config.Logger}

	group, ctx := errgroup.WithContext(ctx)
	if a.config.Kubernetes != nil {
		recorder := kube.NewRecorder(a.config.Kubernetes, a.config.Logger)
		teller.record = recorder.Record
		group.Go(func() error { return recorder.Run(ctx) })
	}
	if a.config.Reread != nil {
		again := &rereader{
			read: a.config.Reread, pause: a.config.rereadPause, terms: offering, inventory: devices, ledger: book,
			logger: a.config.Logger, started: *a.config.Offering, used: *a.config.Offering,
		}
		group.Go(func() error { return again.run(ctx) })
	}
	for _, run := range []func(context.Context) error{
		devices.Run,
		book.Run,
		door.Run,
		teller.run,
		local.NewServer(a.config.LocalSocket, desk, desk, a.config.Logger).Run,
	} {
		group.Go(func() error { return run(ctx) })
	}
	return group.Wait()
}

// terms are those of the configuration; nil when there is none.
func (a *Agent) terms() (*terms.Terms, error) {
	if a.config.Offering == nil {
		return nil, nil
	}
	return terms.New(*a.config.Offering, a.config.Logger)
}
