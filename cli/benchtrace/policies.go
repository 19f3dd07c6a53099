package benchtrace

import (
	"fmt"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/place/trace"
)

// policy is a policy by name.
type policy struct {
	name  string
	make  trace.Make
	use   use
	paper bool // it is in the paper
}

// use is where a policy is run unless the user says otherwise.
type use int

const (
	onDemand use = iota
	inTable
	inBoth // in the table, and with departures
)

// baseline is what the others are compared with.
const baseline = "FGD"

// policies are in the order of the table.
var policies = []policy{
	{"Random", trace.Random, inTable, true},
	{"DotProd", trace.DotProd, inTable, true},
	{"GpuClustering", trace.GpuClustering, inTable, true},
	{"GpuPacking", trace.GpuPacking, inTable, true},
	{"BestFit", trace.BestFit, inBoth, true},
	{baseline, trace.FGD, inBoth, true},
	{"Kilter", trace.Kilter, inBoth, false},
	{"KilterBatch", trace.KilterBatch, onDemand, false},
	{"KilterMoves", trace.KilterMoves, onDemand, false},
}

func policyNames() []string {
	var names []string
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

func policyByName(name string) policy {
	return policies[slices.IndexFunc(policies, func(p policy) bool { return p.name == name })]
}

// choosePolicies checks the names, and puts them into the table's order.
func choosePolicies(names []string, departures bool) ([]string, error) {
	for _, name := range names {
		if !slices.Contains(policyNames(), name) {
			return nil, fmt.Errorf("unknown policy %q: known are %s", name, strings.Join(policyNames(), ", "))
		}
		if departures && (name == "KilterBatch" || name == "KilterMoves") {
			return nil, fmt.Errorf("policy %s does not run with departures", name)
		}
	}
	var chosen []string
	for _, p := range policies {
		if slices.Contains(names, p.name) || len(names) == 0 && (p.use == inBoth || p.use == inTable && !departures) {
			chosen = append(chosen, p.name)
		}
	}
	return chosen, nil
}
