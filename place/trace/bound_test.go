package trace

import (
	"math"
	"testing"
)

// TestBound has cases that can be worked out by hand.
func TestBound(t *testing.T) {
	machine := func(cpu int64, gpus int, model string) Machine {
		return Machine{CPUMilli: cpu, MemoryMiB: 1, GPUs: gpus, Model: model}
	}
	for _, test := range []struct {
		name     string
		machines []Machine
		counts   map[ask]float64
		want     float64
	}{
		{"all fits", []Machine{machine(10_000, 2, "A")}, map[ask]float64{{cpu: 1000, milli: 500, gpus: 1}: 4}, 2000},
		{"as much as there is", []Machine{machine(10_000, 2, "A")}, map[ask]float64{{cpu: 1000, milli: 500, gpus: 1}: 3}, 1500},
		{"shares of 600 do not pair", []Machine{machine(10_000, 2, "A")}, map[ask]float64{{cpu: 1000, milli: 600, gpus: 1}: 9}, 1200},
		{"600 pairs with 400", []Machine{machine(10_000, 2, "A")},
			map[ask]float64{{cpu: 1000, milli: 600, gpus: 1}: 2, {cpu: 1000, milli: 400, gpus: 1}: 1}, 1600},
		{"CPU runs out", []Machine{machine(10_000, 4, "A")}, map[ask]float64{{cpu: 5000, milli: 1000, gpus: 1}: 4}, 2000},
		{"the model is missing", []Machine{machine(10_000, 4, "A"), machine(10_000, 1, "B")},
			map[ask]float64{{cpu: 1000, milli: 1000, gpus: 1, models: "B"}: 4}, 1000},
		{"too large for a machine", []Machine{machine(10_000, 4, "A"), machine(10_000, 4, "A")},
			map[ask]float64{{cpu: 1000, milli: 1000, gpus: 8}: 1}, 0},
		{"several GPUs", []Machine{machine(10_000, 4, "A")}, map[ask]float64{{cpu: 1000, milli: 1000, gpus: 2}: 1}, 2000},
	} {
		if got := newRelaxation(test.machines, test.counts).solve(); math.Abs(got-test.want) > 1 {
			t.Errorf("%s: got %.1f, want %.1f", test.name, got, test.want)
		}
	}
}
