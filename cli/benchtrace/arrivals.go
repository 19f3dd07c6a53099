package benchtrace

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
)

// arrivalReport is the paper's table.
type arrivalReport struct {
	Seeds  []int64         `json:"seeds"`
	Traces []*arrivalTable `json:"traces"`
}

// arrivalTable is the outcome on one trace.
type arrivalTable struct {
	Trace    string       `json:"trace"`
	Machines int          `json:"machines"`
	GPUs     int          `json:"gpus"`
	Pods     int          `json:"pods"`
	Rows     []arrivalRow `json:"rows"`
	Bound    *bound       `json:"bound"`
}

// arrivalRow is the outcome of one policy, in percent of all GPU.
type arrivalRow struct {
	Policy string `json:"policy"`
	// When 100 % has been asked for.
	Unallocated          stat     `json:"unallocatedAt100"`
	PublishedUnallocated *float64 `json:"publishedUnallocatedAt100,omitempty"`
	UnallocatedToFGD     *stat    `json:"unallocatedAt100ToFGD,omitempty"`
	// When 130 % has been asked for.
	Allocated          stat     `json:"allocatedAt130"`
	PublishedAllocated *float64 `json:"publishedAllocatedAt130,omitempty"`
	AllocatedToFGD     *stat    `json:"allocatedAt130ToFGD,omitempty"`

	MovesPer1000        float64 `json:"movesPer1000Pods,omitempty"`
	DecisionMillis      float64 `json:"decisionMilliseconds"`
	LongestDecisionWait float64 `json:"longestDecisionMilliseconds"`
}

// bound is what no policy could exceed, in the run of the first seed.
type bound struct {
	Unallocated float64 `json:"unallocatedAt100AtLeast"`
	Allocated   float64 `json:"allocatedAt130AtMost"`
}

func newArrivalTable(t *named) *arrivalTable {
	table := &arrivalTable{Trace: t.name, Machines: len(t.Machines), Pods: len(t.Pods)}
	for _, m := range t.Machines {
		table.GPUs += m.GPUs
	}
	return table
}

// fill makes the rows of the outcomes, by policy and seed.
func (t *arrivalTable) fill(names []string, outcomes [][]outcome, figures published) {
	unallocated := func(p int) []float64 {
		return collect(outcomes[p], func(o outcome) float64 { return o.unallocated })
	}
	allocated := func(p int) []float64 {
		return collect(outcomes[p], func(o outcome) float64 { return o.allocated })
	}
	compared := slices.Index(names, baseline)
	for p, name := range names {
		row := arrivalRow{Policy: name, Unallocated: statOf(unallocated(p)), Allocated: statOf(allocated(p))}
		if v, ok := figures[publishedKey{t.Trace, name, 100}]; ok {
			v = 100 - v
			row.PublishedUnallocated = &v
		}
		if v, ok := figures[publishedKey{t.Trace, name, 130}]; ok {
			row.PublishedAllocated = &v
		}
		if compared >= 0 && p != compared {
			u := statOf(differences(unallocated(p), unallocated(compared)))
			a := statOf(differences(allocated(p), allocated(compared)))
			row.UnallocatedToFGD, row.AllocatedToFGD = &u, &a
		}
		row.addUp(outcomes[p])
		t.Rows = append(t.Rows, row)
	}
}

// addUp sums what is not a percentage.
func (r *arrivalRow) addUp(outcomes []outcome) {
	var moves, pods int
	var all timing
	for _, o := range outcomes {
		moves, pods = moves+o.moves, pods+o.pods
		all.Decisions += o.Decisions
		all.Total += o.Total
		all.Longest = max(all.Longest, o.Longest)
	}
	r.MovesPer1000 = 1000 * float64(moves) / float64(pods)
	r.DecisionMillis = float64(all.Total.Microseconds()) / 1000 / float64(all.Decisions)
	r.LongestDecisionWait = float64(all.Longest.Microseconds()) / 1000
}

func collect[T any](items []T, value func(T) float64) []float64 {
	values := make([]float64, len(items))
	for i := range items {
		values[i] = value(items[i])
	}
	return values
}

// print writes a table for each trace.
func (r *arrivalReport) print(out io.Writer) error {
	for _, t := range r.Traces {
		fmt.Fprintf(out, "%s: %d Pods, %d machines, %d GPUs; %s; mean and deviation\n",
			t.Trace, t.Pods, t.Machines, t.GPUs, seedsText(r.Seeds))
		w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\tunallocated % at 100\t\t\tallocated % at 130\t\t\tms a decision\t")
		fmt.Fprintln(w, "policy\there\tpublished\tto FGD\there\tpublished\tto FGD\tmean\tlongest")
		for i := range t.Rows {
			row := &t.Rows[i]
			name := row.Policy
			if row.MovesPer1000 > 0 {
				name += fmt.Sprintf(" (%.1f moves per 1000 Pods)", row.MovesPer1000)
			}
			fmt.Fprintf(w, "%s\t%v\t%s\t%s\t%v\t%s\t%s\t%.2f\t%.0f\n", name,
				row.Unallocated, figure(row.PublishedUnallocated), difference(row.UnallocatedToFGD),
				row.Allocated, figure(row.PublishedAllocated), difference(row.AllocatedToFGD),
				row.DecisionMillis, row.LongestDecisionWait)
		}
		fmt.Fprintf(w, "no policy can\tbelow %.2f\t\t\tabove %.2f\t\t\t\t\n", t.Bound.Unallocated, t.Bound.Allocated)
		if err := w.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return r.printSummary(out)
}

// printSummary says how the other policies than the paper's did in all.
func (r *arrivalReport) printSummary(out io.Writer) error {
	for _, p := range policies {
		if p.paper {
			continue
		}
		var ran, better int
		for _, t := range r.Traces {
			for i := range t.Rows {
				row := &t.Rows[i]
				if row.Policy == p.name && row.AllocatedToFGD != nil {
					ran++
					if row.UnallocatedToFGD.Mean < 0 && row.AllocatedToFGD.Mean > 0 {
						better++
					}
				}
			}
		}
		if ran > 0 {
			if _, err := fmt.Fprintf(out, "%s is ahead of %s, at 100 and at 130, on %d of %d traces.\n", p.name, baseline, better, ran); err != nil {
				return err
			}
		}
	}
	return nil
}

func figure(v *float64) string {
	if v == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f", *v)
}

func difference(s *stat) string {
	if s == nil {
		return ""
	}
	return s.signed()
}

func seedsText(seeds []int64) string {
	last := seeds[len(seeds)-1]
	switch {
	case len(seeds) == 1:
		return fmt.Sprintf("seed %d", last)
	case last-seeds[0] == int64(len(seeds)-1):
		return fmt.Sprintf("seeds %d to %d", seeds[0], last)
	}
	return "seeds " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(seeds)), ", "), "[]")
}
