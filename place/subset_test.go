package place

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
)

func randomWorth(random *rand.Rand, n int, limit int64) [][]int64 {
	worth := make([][]int64, n)
	for i := range worth {
		worth[i] = make([]int64, n)
		for j := range i {
			worth[i][j] = random.Int64N(limit)
			worth[j][i] = worth[i][j]
		}
	}
	return worth
}

func equalWorth(n int) [][]int64 {
	return randomWorth(rand.New(rand.NewPCG(0, 0)), n, 1)
}

func visits(worth [][]int64, count int) int {
	s := newSubsetSearch(worth, make([]bool, len(worth)), count)
	s.run()
	return s.visits
}

// TestSubsetCost counts what the search looks at instead of measuring time: a
// visit costs some nanoseconds for each device.
func TestSubsetCost(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	worth := randomWorth(random, 16, 1000)
	for count := range 17 {
		if got := visits(worth, count); got > 40_000 {
			t.Errorf("%d of 16 unlike devices: %d visits", count, got)
		}
		if got := visits(equalWorth(16), count); got > count {
			t.Errorf("%d of 16 like devices: %d visits, one a device is enough", count, got)
		}
	}
	for _, n := range []int{17, 32, 64, 128} {
		worth := randomWorth(random, n, 1000)
		for _, count := range []int{1, 2, n / 4, n / 2, n - 3} {
			if got := visits(worth, count); got > 300_000 {
				t.Errorf("%d of %d unlike devices: %d visits", count, n, got)
			}
		}
		if got := visits(equalWorth(n), n/2); got > n/2 {
			t.Errorf("%d of %d like devices: %d visits", n/2, n, got)
		}
	}
}

// TestSubsetBoundIsExact runs the bounded search where every subset can still
// be looked at, and expects the same answer.
func TestSubsetBoundIsExact(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	for round := range 500 {
		n := 4 + random.IntN(9)
		worth := randomWorth(random, n, []int64{2, 4, 1000}[random.IntN(3)])
		forced := make([]bool, n)
		forced[random.IntN(n)] = random.IntN(2) == 0
		count := 2 + random.IntN(n-2)
		plain := newSubsetSearch(worth, forced, count)
		plain.run()
		bounded := newSubsetSearch(worth, forced, count)
		bounded.beginBounded()
		bounded.extend(0, bounded.need, bounded.start)
		if fmt.Sprint(plain.best) != fmt.Sprint(bounded.best) || plain.bestScore != bounded.bestScore {
			t.Fatalf("round %d: bounded %v, %v; plain %v, %v", round,
				bounded.best, bounded.bestScore, plain.best, plain.bestScore)
		}
	}
}

// TestSubsetFindsPlantedClique shows that a large node is not answered by
// luck: the one clique among 64 devices is found.
func TestSubsetFindsPlantedClique(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 10))
	worth := randomWorth(random, 64, 300)
	clique := random.Perm(64)[:8]
	for _, i := range clique {
		for _, j := range clique {
			if i != j {
				worth[i][j] = 300
			}
		}
	}
	got := bestSubset(worth, make([]bool, 64), 8, 0)
	for _, i := range got {
		if !slices.Contains(clique, i) {
			t.Fatalf("got %v, want the clique %v", got, clique)
		}
	}
}

func BenchmarkPrefer(b *testing.B) {
	random := rand.New(rand.NewPCG(11, 12))
	for _, n := range []int{8, 16, 64} {
		devices := machine(make([]int, n)...)
		for i := range n {
			devices[i].NUMANode = i % 2
			for j := range i {
				connect(devices, random.Int64N(100_000), i, j)
			}
		}
		alike := machine(make([]int, n)...)
		for i := range n {
			for j := range i {
				connect(alike, 450_000, i, j)
			}
		}
		for count := 1; count <= n; count += max(1, n/16) {
			b.Run(fmt.Sprintf("unlike/%d-of-%d", count, n), func(b *testing.B) {
				for b.Loop() {
					if _, err := Prefer(devices, idsOf(devices), nil, count); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		b.Run(fmt.Sprintf("alike/%d-of-%d", n/2, n), func(b *testing.B) {
			for b.Loop() {
				if _, err := Prefer(alike, idsOf(alike), nil, n/2); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
