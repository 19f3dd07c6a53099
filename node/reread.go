package node

import (
	"context"
	"log/slog"
	"reflect"
	"strings"
	"time"

	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/terms"
)

// rereadPause is how often the configuration is looked at. Looking serves a
// file that is written, one that is exchanged, and the links by which the
// kubelet brings a new version of a ConfigMap, all in the same way.
const rereadPause = 3 * time.Second

// rereader takes a configuration that has changed into use while the agent
// runs.
type rereader struct {
	read      func() (c config.Config, warnings []string, err error)
	pause     time.Duration
	terms     *terms.Terms
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	logger    *slog.Logger

	// started is what the agent was started with, and used what is in use.
	started, used config.Config
	// last is what the last look found.
	last found
	// refused is what was wrong with what is not used, to log it once.
	refused string
}

// found is what one look found.
type found struct {
	config  config.Config
	problem string
}

// run looks until ctx ends.
func (r *rereader) run(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(r.pause):
		}
		r.look(ctx)
	}
}

// look takes what has changed into use, or logs why not. What is refused is
// tried again: it may fit once a device has appeared. A change counts when two
// looks find the same: a file that somebody is writing may be cut anywhere, and
// an empty one is a configuration, too.
func (r *rereader) look(ctx context.Context) {
	c, warnings, err := r.read()
	now := found{config: c}
	if err != nil {
		now.problem = err.Error()
	}
	settled := reflect.DeepEqual(now, r.last)
	r.last = now
	if !settled {
		return
	}
	same := err == nil && reflect.DeepEqual(c, r.used)
	if err == nil && !same {
		err = r.use(ctx, c)
	}
	if err != nil {
		if err.Error() != r.refused {
			r.refused = err.Error()
			for line := range strings.Lines(r.refused) {
				r.logger.Error("the changed configuration is refused; the one in use stays", "error", strings.TrimSpace(line))
			}
		}
		return
	}
	if r.refused != "" && same {
		r.logger.Info("the configuration is again the one in use")
	}
	r.refused = ""
	if same {
		return
	}
	r.used = c
	r.logger.Info("a changed configuration is in use; devices that are held stay as they are until they are free")
	for _, warning := range append(warnings, needStart(r.started, c)...) {
		r.logger.Warn(warning)
	}
}

// use hands a configuration to the terms, with fresh news of who holds what.
func (r *rereader) use(ctx context.Context, c config.Config) error {
	if err := r.ledger.Refresh(ctx); err != nil {
		r.logger.Debug("could not look at who holds what", "error", err)
	}
	return r.terms.Use(c, r.inventory.Snapshot())
}

// needStart says which changes have to wait until the agent is started again,
// because its drivers were made with what was said before.
func needStart(started, now config.Config) []string {
	var lines []string
	for _, setting := range []struct {
		name string
		of   func(config.Config) string
	}{
		{"flags.migStrategy", func(c config.Config) string { return string(c.MIGStrategy) }},
		{"flags.nvidiaDriverRoot", func(c config.Config) string { return c.DriverRoot }},
		{"flags.nvidiaDevRoot", func(c config.Config) string { return c.DevRoot }},
		{"flags.plugin.kubeletSocket", func(c config.Config) string { return c.KubeletSocket }},
	} {
		if setting.of(started) != setting.of(now) {
			lines = append(lines, setting.name+" has changed, which counts when the agent is started again")
		}
	}
	return lines
}
