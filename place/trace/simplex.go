package trace

import (
	"math"
	"slices"
)

const (
	// tolerance is how much better a pattern must be to be used, in
	// thousandths of a GPU.
	tolerance = 1e-3
	// maxPivots ends a solution that does not converge; the bound is valid at
	// any time, only less tight.
	maxPivots = 20_000
	// goodEnough is how close to the optimum the bound may stay, relatively.
	goodEnough = 2e-4
)

// solve maximises the value over all patterns by the revised simplex method
// with column generation, and returns the bound of its last prices, in
// thousandths of a GPU. Rounding errors can not make it too low.
func (r *relaxation) solve() float64 {
	s := newSimplex(r.limit)
	best := math.Inf(1)
	for pivot := range maxPivots {
		prices := s.prices()
		if pivot%200 == 0 {
			best = min(best, r.bound(prices))
			if best-s.value() <= goodEnough*best {
				return best
			}
		}
		if row := slices.Index(prices, slices.Min(prices)); prices[row] < -tolerance {
			s.enterSlack(row)
			continue
		}
		var entering pattern
		gain := tolerance
		for k := range r.kinds {
			p, value := r.bestPattern(k, prices)
			if value -= prices[len(r.asks)+2*k]; value > gain {
				entering, gain = p, value
			}
		}
		if gain == tolerance {
			break
		}
		column, value := r.column(entering)
		if !s.enter(column, value) {
			break
		}
	}
	return min(best, r.bound(s.prices()))
}

// simplex maximises a sum under rows of the form a·x ≤ limit, column by
// column. It starts with nothing used, which is feasible.
type simplex struct {
	inverse [][]float64 // of the basis
	values  []float64   // of each row's basic column
	amount  []float64   // how much of it is used
}

func newSimplex(limit []float64) *simplex {
	s := &simplex{values: make([]float64, len(limit)), amount: slices.Clone(limit)}
	for i := range limit {
		row := make([]float64, len(limit))
		row[i] = 1
		s.inverse = append(s.inverse, row)
		// Ties between rows are broken by a trifle, or it could turn in circles.
		s.amount[i] += 1e-6 * float64(i+1)
	}
	return s
}

func (s *simplex) value() float64 {
	var sum float64
	for i, v := range s.values {
		sum += v * s.amount[i]
	}
	return sum
}

// prices are the dual prices of the rows.
func (s *simplex) prices() []float64 {
	prices := make([]float64, len(s.values))
	for i, v := range s.values {
		if v != 0 {
			for j, x := range s.inverse[i] {
				prices[j] += v * x
			}
		}
	}
	return prices
}

// enterSlack brings the unused part of a row back into the basis.
func (s *simplex) enterSlack(row int) {
	column := make([]float64, len(s.values))
	column[row] = 1
	s.enter(column, 0)
}

// enter brings a column into the basis, in place of the one that runs out
// first. It reports false when none does.
func (s *simplex) enter(column []float64, value float64) bool {
	n := len(s.values)
	direction := make([]float64, n)
	for i, row := range s.inverse {
		var sum float64
		for j, x := range column {
			if x != 0 {
				sum += row[j] * x
			}
		}
		direction[i] = sum
	}
	leaving, ratio := -1, math.Inf(1)
	for i, d := range direction {
		if d > 1e-9 && s.amount[i]/d < ratio {
			leaving, ratio = i, s.amount[i]/d
		}
	}
	if leaving < 0 {
		return false
	}
	pivot := s.inverse[leaving]
	for j := range pivot {
		pivot[j] /= direction[leaving]
	}
	s.amount[leaving] = ratio
	s.values[leaving] = value
	for i, d := range direction {
		if i == leaving || d == 0 {
			continue
		}
		row := s.inverse[i]
		for j, x := range pivot {
			row[j] -= d * x
		}
		s.amount[i] = max(0, s.amount[i]-d*ratio)
	}
	return true
}
