// Package benchtrace is the command that replays a recorded cluster and shows
// how well placement policies fill it.
package benchtrace

import (
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// options are what the user asked for.
type options struct {
	folder     string
	policies   []string
	seeds      []int64
	departures bool
	loads      []float64
	jobs       int
	now        func() time.Time
}

// Command returns "trace", to stand below "kilter bench".
func Command() *cobra.Command {
	o := options{now: time.Now}
	var policies []string
	var seeds, output string
	cmd := &cobra.Command{
		Use:   "trace --trace DIR",
		Short: "Replay a recorded GPU cluster and compare placement policies",
		Long: `Replay a recorded GPU cluster and compare placement policies.

The folder holds ` + nodeFile + ` and one or more ` + podFiles + `, of
the trace cluster-trace-gpu-v2023 that Alibaba published:
` + source + `

The protocol is that of "Beware of Fragmentation" (FGD, USENIX ATC 2023): Pods
arrive in a random order until 130 % of all GPU has been asked for, and nobody
leaves. With --departures, Pods come and go, and wait when they find no place.

Policies: ` + strings.Join(policyNames(), ", ") + `.`,
		Example: `  kilter bench trace --trace ./csv
  kilter bench trace --trace ./csv --policy FGD,Kilter --seeds 52-57
  kilter bench trace --trace ./csv --departures`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if o.seeds, err = parseSeeds(seeds); err != nil {
				return err
			}
			if output != "" && output != "json" {
				return fmt.Errorf("unknown output %q: json is known", output)
			}
			if o.policies, err = choosePolicies(policies, o.departures); err != nil {
				return err
			}
			return o.run(cmd.Context(), cmd.OutOrStdout(), cmd.ErrOrStderr(), output)
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&o.folder, "trace", "", "folder with the trace")
	flags.StringSliceVar(&policies, "policy", nil, "policies to run (default: the paper's and Kilter's)")
	flags.StringVar(&seeds, "seeds", "42-51", "seeds, such as 42-51 or 42,45; the paper has 42-51")
	flags.BoolVar(&o.departures, "departures", false, "let Pods leave, and others wait")
	flags.Float64SliceVar(&o.loads, "loads", []float64{0.9, 1.0, 1.1}, "offered load, in parts of all GPU; with --departures")
	flags.IntVar(&o.jobs, "jobs", runtime.GOMAXPROCS(0), "how many runs at a time")
	flags.StringVarP(&output, "output", "o", "", "json instead of tables")
	if err := cmd.MarkFlagRequired("trace"); err != nil {
		panic(err)
	}
	return cmd
}

// parseSeeds reads "42-51", "42,45" and mixtures of it.
func parseSeeds(text string) ([]int64, error) {
	var seeds []int64
	for part := range strings.SplitSeq(text, ",") {
		first, last, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			last = first
		}
		from, err := strconv.ParseInt(first, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %q is no number", text, first)
		}
		to, err := strconv.ParseInt(last, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("seeds %q: %q is no number", text, last)
		}
		if to < from || to-from >= 1000 {
			return nil, fmt.Errorf("seeds %q: %d to %d is no range of at most 1000", text, from, to)
		}
		for seed := from; seed <= to; seed++ {
			if slices.Contains(seeds, seed) {
				return nil, fmt.Errorf("seeds %q: %d is there twice", text, seed)
			}
			seeds = append(seeds, seed)
		}
	}
	return seeds, nil
}
