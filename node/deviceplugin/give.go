package deviceplugin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
)

// giver gives devices to containers and takes back what nobody has any more.
// One serves all resources, because one ledger does.
type giver struct {
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	terms     *terms.Terms // nil when there is no configuration
	preferred Prefer
	logger    *slog.Logger

	// mu keeps the taking back of a grant apart from giving the same again.
	mu sync.Mutex
}

// refusalError says which devices can not be given, and why each.
type refusalError struct {
	resource string
	problems []string
}

func (e *refusalError) Error() string {
	return e.resource + ": " + strings.Join(e.problems, "; ")
}

// asStatus keeps the sentence and gives it the code that fits.
func asStatus(err error) error {
	var refusal *refusalError
	if errors.As(err, &refusal) {
		return status.Error(codes.FailedPrecondition, err.Error())
	}
	return status.Error(codes.Internal, err.Error())
}

// give prepares the wanted devices for each container. Everything is checked
// before anything is done.
func (g *giver) give(ctx context.Context, resource string, wanted [][]string) ([]device.Edits, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.check(ctx, resource, wanted); err != nil {
		return nil, err
	}
	var prepared []ledger.Grant
	var given []device.Edits
	for _, texts := range wanted {
		edits, grants, err := g.prepare(ctx, resource, deviceIDs(texts))
		prepared = append(prepared, grants...)
		if err != nil {
			g.undo(ctx, prepared)
			return nil, err
		}
		given = append(given, edits)
	}
	g.ledger.Granted(prepared...)
	return given, nil
}

// check returns an error that names every device that can not be given.
func (g *giver) check(ctx context.Context, resource string, wanted [][]string) error {
	offers := g.offers(resource)
	seen := make(map[device.ID]bool)
	var ids []device.ID
	var problems []string
	for _, texts := range wanted {
		if len(texts) == 0 {
			problems = append(problems, "a container asks for no device")
		}
		if len(texts) > 1 && offers[device.ID(texts[0])].OneEach {
			problems = append(problems, fmt.Sprintf("a container asks for %d replicas of shared devices, and by the configuration (failRequestsGreaterThanOne) one is the most: more give no more of a device", len(texts)))
		}
		for _, id := range deviceIDs(texts) {
			offer, known := offers[id]
			switch {
			case seen[id]:
				problems = append(problems, fmt.Sprintf("%q is asked for twice", id))
			case !known:
				problems = append(problems, fmt.Sprintf("%q is no device of this node", id))
			case !offer.Offered:
				problems = append(problems, fmt.Sprintf("%q can not be given: %s", id, offer.Note))
			}
			seen[id] = true
			ids = append(ids, id)
		}
	}
	if len(problems) == 0 {
		for _, hold := range g.ledger.Claim(ctx, ids) {
			problems = append(problems, fmt.Sprintf("%q is held by %s", hold.Device, hold.Holder))
		}
		problems = append(problems, g.withdrawn(resource, ids)...)
	}
	if len(problems) > 0 {
		return &refusalError{resource, problems}
	}
	return nil
}

// withdrawn names the devices that are not offered in this way any more, now
// that it is known who holds what: one that was waiting to be free has become
// so, and is offered as the configuration says.
func (g *giver) withdrawn(resource string, ids []device.ID) []string {
	var problems []string
	offers := g.offers(resource)
	for _, id := range ids {
		if _, still := offers[id]; !still {
			problems = append(problems, fmt.Sprintf("%q is not offered any more", id))
		}
	}
	return problems
}

// all returns how the devices stand now.
func (g *giver) all() []Offer {
	now := Standing{Devices: g.inventory.Snapshot().Devices, Terms: g.terms.View()}
	if now.Terms != nil {
		// Before the holds: what moves from one to the other is seen twice
		// then, and not missed.
		now.Pending = g.ledger.Pending()
	}
	now.Holds = g.ledger.Holds()
	return Offers(now)
}

// offers returns the offers of the resource by the ids that the kubelet knows.
func (g *giver) offers(resource string) map[device.ID]Offer {
	offers := make(map[device.ID]Offer)
	for _, offer := range g.all() {
		if offer.Resource != resource {
			continue
		}
		for _, id := range offer.IDs {
			offers[id] = offer
		}
	}
	return offers
}

// prepare has the devices made ready, each by its driver. The grants are those
// that were prepared, also when there is an error.
func (g *giver) prepare(ctx context.Context, resource string, ids []device.ID) (device.Edits, []ledger.Grant, error) {
	shares, err := g.byDriver(resource, ids)
	if err != nil {
		return device.Edits{}, nil, err
	}
	var edits device.Edits
	var grants []ledger.Grant
	for _, share := range shares {
		devices := slices.Sorted(slices.Values(unique(share.devices)))
		grant := ledger.Grant{
			Grant:    device.Grant{ID: grantID(resource, share.ids), Devices: devices},
			Resource: resource,
			Driver:   share.driver.Name(),
			At:       time.Now(),
		}
		if replicas := slices.Sorted(slices.Values(share.ids)); !slices.Equal(replicas, devices) {
			grant.Replicas = replicas
		}
		more, err := share.driver.Prepare(ctx, grant.Grant)
		if err != nil {
			return device.Edits{}, grants, fmt.Errorf("%s: prepare %v: %w", resource, devices, err)
		}
		grants = append(grants, grant)
		if err := join(&edits, more); err != nil {
			return device.Edits{}, grants, &refusalError{resource, []string{err.Error()}}
		}
	}
	return edits, grants, nil
}

// share is the part of a request that one driver answers for.
type share struct {
	driver hardware.Driver
	// ids are those that the kubelet knows, and devices what they are of: one
	// device for several replicas.
	ids, devices []device.ID
}

// byDriver sorts the devices by the driver that has them. Nearly always that
// is a single one.
func (g *giver) byDriver(resource string, ids []device.ID) ([]share, error) {
	var shares []share
	for _, id := range ids {
		of, _, _ := config.SplitID(string(id))
		driver, found := g.inventory.Driver(of)
		if !found {
			return nil, &refusalError{resource, []string{fmt.Sprintf("%q is no device of this node", id)}}
		}
		at := slices.IndexFunc(shares, func(s share) bool { return s.driver.Name() == driver.Name() })
		if at < 0 {
			at = len(shares)
			shares = append(shares, share{driver: driver})
		}
		shares[at].ids = append(shares[at].ids, id)
		shares[at].devices = append(shares[at].devices, of)
	}
	return shares, nil
}

// renew prepares the devices of a container that is about to start. Its Pod
// has them already, so their health is not asked about.
func (g *giver) renew(ctx context.Context, resource string, ids []device.ID) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	_, grants, err := g.prepare(ctx, resource, ids)
	for _, grant := range grants {
		g.ledger.Ensure(grant)
	}
	return err
}
