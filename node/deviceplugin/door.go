package deviceplugin

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
)

// reapPause is how often the taking back of a grant is tried again.
const reapPause = 30 * time.Second

// Config is what a door is made of.
type Config struct {
	// Folder is where the kubelet and its plugins have their sockets.
	Folder    string
	Inventory *inventory.Inventory
	Ledger    *ledger.Ledger
	Prefer    Prefer
	// Terms say what each device is offered as. When nil, each is offered
	// whole under its own name.
	Terms  *terms.Terms
	Logger *slog.Logger
}

// Door offers the devices of the inventory to the kubelet.
type Door struct {
	config Config
	giver  *giver
	folder *folder

	mu      sync.Mutex
	keepers map[string]*keeper
}

// New returns a door that is closed until Run.
func New(config Config) *Door {
	return &Door{
		config: config,
		giver: &giver{
			inventory: config.Inventory,
			ledger:    config.Ledger,
			terms:     config.Terms,
			preferred: config.Prefer,
			logger:    config.Logger,
		},
		folder:  newFolder(config.Folder, config.Logger),
		keepers: make(map[string]*keeper),
	}
}

// Run keeps a plugin registered for every resource of the inventory until ctx
// ends. It returns an error when the kubelet's folder can not be seen from
// this process any more.
func (d *Door) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	d.folder.removeStaleSockets()
	var running sync.WaitGroup
	var lost error
	running.Go(func() {
		lost = d.folder.watch(ctx)
		cancel()
	})
	d.follow(ctx, &running)
	running.Wait()
	return lost
}

// follow brings what the kubelet is told in line with the inventory, the ledger
// and the terms, whenever one of them changes.
func (d *Door) follow(ctx context.Context, running *sync.WaitGroup) {
	for {
		devicesChanged, holdsChanged := d.config.Inventory.Changed(), d.config.Ledger.Changed()
		d.look(ctx)
		termsChanged := d.config.Terms.Changed()
		d.publish(ctx, running)
		d.giver.reap(ctx)
		select {
		case <-ctx.Done():
			return
		case <-devicesChanged:
		case <-holdsChanged:
		case <-termsChanged:
		case <-time.After(reapPause):
		}
	}
}

// look brings the terms in line with the inventory. How a device is offered
// depends on who holds it, so the kubelet is asked before one that is new gets
// its terms. When it does not answer, what the ledger's file said has to do.
func (d *Door) look(ctx context.Context) {
	now := d.config.Inventory.Snapshot()
	if view := d.config.Terms.View(); view != nil && slices.ContainsFunc(now.Devices, view.Lacks) {
		if err := d.config.Ledger.Refresh(ctx); err != nil {
			d.config.Logger.Debug("could not look at who holds what", "error", err)
		}
	}
	d.config.Terms.Look(now)
}

// publish tells each plugin its devices, and starts one for a resource that is
// new. A resource whose last device has vanished keeps its plugin: the kubelet
// then knows that there are none, and not just that somebody is silent.
func (d *Door) publish(ctx context.Context, running *sync.WaitGroup) {
	byResource := make(map[string][]Offer)
	for _, offer := range d.Offers() {
		if offer.Resource != "" {
			byResource[offer.Resource] = append(byResource[offer.Resource], offer)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, resource := range slices.Sorted(maps.Keys(byResource)) {
		if d.keepers[resource] != nil {
			continue
		}
		keeper := &keeper{
			plugin:     newPlugin(resource, d.giver, d.config.Logger),
			folder:     d.folder,
			registered: d.config.Ledger.Nudge,
			problem:    "it is being registered",
		}
		d.keepers[resource] = keeper
		keeper.plugin.publish(byResource[resource])
		running.Go(func() { keeper.run(ctx) })
	}
	for resource, keeper := range d.keepers {
		keeper.plugin.publish(byResource[resource])
	}
}

// Offers says how each device stands with the kubelet.
func (d *Door) Offers() []Offer { return d.giver.all() }

// Serves says whether the resource is one of this door's.
func (d *Door) Serves(resource string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.keepers[resource] != nil
}

// Waiting has a sentence for each resource that is not registered with the
// kubelet.
func (d *Door) Waiting() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	var waiting []string
	for _, resource := range slices.Sorted(maps.Keys(d.keepers)) {
		if problem := d.keepers[resource].state(); problem != "" {
			waiting = append(waiting, fmt.Sprintf("%s: %s", resource, problem))
		}
	}
	return waiting
}
