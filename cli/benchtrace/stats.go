package benchtrace

import (
	"fmt"
	"math"
)

// stat is a mean and the deviation of one value.
type stat struct {
	Mean float64 `json:"mean"`
	SD   float64 `json:"sd"`
}

// statOf is the mean and the sample deviation.
func statOf(values []float64) stat {
	var s stat
	for _, v := range values {
		s.Mean += v / float64(len(values))
	}
	if len(values) < 2 {
		return s
	}
	for _, v := range values {
		s.SD += (v - s.Mean) * (v - s.Mean) / float64(len(values)-1)
	}
	s.SD = math.Sqrt(s.SD)
	return s
}

func (s stat) String() string { return fmt.Sprintf("%.2f ±%.2f", s.Mean, s.SD) }

// signed is for differences.
func (s stat) signed() string { return fmt.Sprintf("%+.2f ±%.2f", s.Mean, s.SD) }

// differences are a minus b, pair by pair.
func differences(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}
