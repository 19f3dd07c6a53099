package benchtrace

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/kilter-dev/kilter/place/trace"
)

// run does what the user asked for.
func (o *options) run(ctx context.Context, out, progress io.Writer, output string) error {
	traces, err := load(o.folder)
	if err != nil {
		return err
	}
	figures, err := loadPublished(o.folder)
	if err != nil {
		return err
	}
	var result interface{ print(io.Writer) error }
	if o.departures {
		result, err = o.departureReport(ctx, traces, progress)
	} else {
		result, err = o.arrivalReport(ctx, traces, figures, progress)
	}
	if err != nil {
		return err
	}
	if output == "json" {
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(result)
	}
	return result.print(out)
}

// outcome is one run of a policy on a trace.
type outcome struct {
	unallocated float64 // in percent, when 100 % has arrived
	allocated   float64 // in percent, when 130 % has arrived
	moves, pods int
	timing
}

// arrivalReport runs every policy with every seed on every trace.
func (o *options) arrivalReport(ctx context.Context, traces []named, figures published, progress io.Writer) (*arrivalReport, error) {
	report := &arrivalReport{Seeds: o.seeds}
	w := o.newWork(ctx, progress)
	for i := range traces {
		t := &traces[i]
		table := newArrivalTable(t)
		report.Traces = append(report.Traces, table)
		outcomes := make([][]outcome, len(o.policies))
		for p, name := range o.policies {
			outcomes[p] = make([]outcome, len(o.seeds))
			for s, seed := range o.seeds {
				w.add(func(ctx context.Context) error {
					got, err := o.arrivals(ctx, &t.Trace, name, seed)
					if err != nil {
						return fmt.Errorf("%s on %s, seed %d: %w", name, t.name, seed, err)
					}
					outcomes[p][s] = got
					return nil
				})
			}
		}
		w.add(func(context.Context) error {
			table.Bound = &bound{100 - t.Bound(o.seeds[0], 100), t.Bound(o.seeds[0], 130)}
			return nil
		})
		w.after(func() { table.fill(o.policies, outcomes, figures) })
	}
	return report, w.wait()
}

func (o *options) arrivals(ctx context.Context, t *trace.Trace, name string, seed int64) (outcome, error) {
	var got outcome
	result, err := t.Run(ctx, timed(policyByName(name).make, o.now, &got.timing), seed)
	if err != nil {
		return got, err
	}
	got.unallocated, got.allocated = 100-result.At(100), result.At(130)
	got.moves, got.pods = result.Moves, result.Pods
	return got, nil
}

// departureReport runs the policies at every load on the traces with times.
func (o *options) departureReport(ctx context.Context, traces []named, progress io.Writer) (*departureReport, error) {
	report := &departureReport{Seeds: o.seeds}
	w := o.newWork(ctx, progress)
	for i := range traces {
		t := &traces[i]
		for _, load := range o.loads {
			table := &departureTable{Trace: t.name, Load: load}
			services := make([][]*trace.Service, len(o.policies))
			for p, name := range o.policies {
				services[p] = make([]*trace.Service, len(o.seeds))
				for s, seed := range o.seeds {
					w.add(func(ctx context.Context) error {
						got, err := t.Churn(ctx, policyByName(name).make, seed, load)
						if err != nil && !errors.Is(err, trace.ErrNoTimes) {
							return fmt.Errorf("%s on %s at %v, seed %d: %w", name, t.name, load, seed, err)
						}
						services[p][s] = got
						return nil
					})
				}
			}
			w.after(func() {
				if services[0][0] != nil {
					table.fill(o.policies, services)
					report.Tables = append(report.Tables, table)
				}
			})
		}
	}
	return report, w.wait()
}

// work runs jobs, a few at a time, and says how far it is.
type work struct {
	group *errgroup.Group
	ctx   context.Context
	now   func() time.Time
	out   io.Writer
	jobs  []func(context.Context) error
	then  []func()

	mutex       sync.Mutex
	done        int
	begin, said time.Time
}

// every is how often the progress is shown.
const every = 10 * time.Second

func (o *options) newWork(ctx context.Context, out io.Writer) *work {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(max(1, o.jobs))
	return &work{group: group, ctx: ctx, now: o.now, out: out}
}

// add adds a job; after adds what is done in the end, in order.
func (w *work) add(job func(context.Context) error) { w.jobs = append(w.jobs, job) }
func (w *work) after(do func())                     { w.then = append(w.then, do) }

func (w *work) wait() error {
	w.begin = w.now()
	w.said = w.begin
	for _, job := range w.jobs {
		w.group.Go(func() error {
			if w.ctx.Err() != nil {
				return w.ctx.Err()
			}
			if err := job(w.ctx); err != nil {
				return err
			}
			w.step()
			return nil
		})
	}
	if err := w.group.Wait(); err != nil {
		return err
	}
	for _, do := range w.then {
		do()
	}
	return nil
}

func (w *work) step() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.done++
	now := w.now()
	if now.Sub(w.said) < every || w.done == len(w.jobs) {
		return
	}
	w.said = now
	spent := now.Sub(w.begin)
	left := time.Duration(float64(spent) / float64(w.done) * float64(len(w.jobs)-w.done))
	fmt.Fprintf(w.out, "%d of %d runs done in %v, about %v left\n",
		w.done, len(w.jobs), spent.Round(time.Second), left.Round(time.Second))
}
