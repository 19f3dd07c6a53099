package deviceplugin

import (
	"context"
	"time"

	"github.com/kilter-dev/kilter/node/ledger"
)

// undoPatience bounds the undoing of what was done for a call that failed.
const undoPatience = 10 * time.Second

// undo takes back what was prepared for a call that failed later on. It does
// so also when the caller has gone away.
func (g *giver) undo(ctx context.Context, prepared []ledger.Grant) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoPatience)
	defer cancel()
	for _, grant := range prepared {
		driver, found := g.inventory.DriverNamed(grant.Driver)
		if !found {
			continue
		}
		if err := driver.Unprepare(ctx, grant.ID); err != nil {
			g.logger.Error("could not take back what was prepared for a container", "devices", grant.Devices, "error", err)
		}
	}
}

// reap takes back the grants that nobody has any more. What fails is tried
// again at the next call.
func (g *giver) reap(ctx context.Context) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for _, grant := range g.ledger.Over() {
		driver, known := g.inventory.DriverNamed(grant.Driver)
		if !known {
			g.logger.Warn("a grant is over whose driver is not in use any more", "driver", grant.Driver, "devices", grant.Devices)
			g.ledger.Forget(grant.ID)
			continue
		}
		if err := driver.Unprepare(ctx, grant.ID); err != nil {
			g.logger.Error("could not take back a grant; it is tried again", "driver", grant.Driver, "devices", grant.Devices, "error", err)
			continue
		}
		g.ledger.Forget(grant.ID)
	}
}
