package benchtrace

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/kilter-dev/kilter/place/trace"
)

// departureReport is the outcome of runs with departures.
type departureReport struct {
	Seeds  []int64           `json:"seeds"`
	Tables []*departureTable `json:"tables"`
}

// departureTable is the outcome on one trace at one load.
type departureTable struct {
	Trace string         `json:"trace"`
	Load  float64        `json:"load"`
	Rows  []departureRow `json:"rows"`
}

// departureRow is the outcome of one policy: GPU time in percent of all, and
// waiting in seconds.
type departureRow struct {
	Policy  string `json:"policy"`
	Offered stat   `json:"gpuTimeOffered"`
	Served  stat   `json:"gpuTimeServed"`
	Wait    stat   `json:"waitSeconds"`
	Wait99  stat   `json:"wait99thPercentileSeconds"`
	Waiting stat   `json:"waitingAtTheEnd"`
}

// fill makes the rows of the outcomes, by policy and seed.
func (t *departureTable) fill(names []string, services [][]*trace.Service) {
	for p, name := range names {
		of := func(value func(*trace.Service) float64) stat { return statOf(collect(services[p], value)) }
		t.Rows = append(t.Rows, departureRow{
			Policy:  name,
			Offered: of(func(s *trace.Service) float64 { return s.Offered }),
			Served:  of(func(s *trace.Service) float64 { return s.Served }),
			Wait:    of(func(s *trace.Service) float64 { return statOf(s.Waits).Mean }),
			Wait99:  of(func(s *trace.Service) float64 { return s.Waits[len(s.Waits)*99/100] }),
			Waiting: of(func(s *trace.Service) float64 { return float64(s.Waiting) }),
		})
	}
}

// print writes one table.
func (r *departureReport) print(out io.Writer) error {
	if len(r.Tables) == 0 {
		_, err := fmt.Fprintln(out, "No trace in the folder says when its Pods came and left.")
		return err
	}
	fmt.Fprintf(out, "Pods come and go; %s; mean and deviation\n", seedsText(r.Seeds))
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "\t\t\tGPU time, % of all\t\twait, seconds\t\twaiting")
	fmt.Fprintln(w, "trace\tload\tpolicy\toffered\tserved\tmean\t99th percentile\tat the end")
	for _, t := range r.Tables {
		for i := range t.Rows {
			row := &t.Rows[i]
			fmt.Fprintf(w, "%s\t%.2f\t%s\t%.2f\t%v\t%.0f ±%.0f\t%.0f ±%.0f\t%.0f ±%.0f\n", t.Trace, t.Load, row.Policy,
				row.Offered.Mean, row.Served, row.Wait.Mean, row.Wait.SD, row.Wait99.Mean, row.Wait99.SD,
				row.Waiting.Mean, row.Waiting.SD)
		}
	}
	return w.Flush()
}
