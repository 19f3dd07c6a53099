package place

// maxSubsets is how many subsets are all looked at. 16 devices have at most
// 12,870 subsets of one size.
const maxSubsets = 20_000

// bestSubset chooses count of the devices 0 to len(worth)-1, the forced ones
// among them, and returns them in ascending order. The best subset has the
// highest sum of worth over its pairs, then leaves the highest sum over the
// pairs of the others, then has the lowest numbers.
//
// The second aim is linear. The pairs of the others are all pairs less those
// with a chosen end, and these are worth the chosen devices' rows less the
// chosen pairs. Among equals by the first aim, the lowest rows are best.
//
// With least above 0, every pair must be worth that much. There may be no such
// subset; the answer is empty then.
func bestSubset(worth [][]int64, forced []bool, count int, least int64) []int {
	s := newSubsetSearch(worth, forced, count)
	s.least = least
	s.run()
	if s.need > 0 && least > 0 && s.guessed {
		return nil
	}
	var members []int
	for i, member := range s.best {
		if member {
			members = append(members, i)
		}
	}
	return members
}

func (s *subsetSearch) run() {
	if s.need == 0 {
		return
	}
	if choose(len(s.free), s.need) > maxSubsets {
		s.beginBounded()
	}
	s.extend(0, s.need, s.start)
}

// subsetSearch walks the subsets in lexicographic order, so that of equals
// the one found first is the one wanted.
type subsetSearch struct {
	worth [][]int64
	rows  []int64 // the sum of each device's row
	free  []int   // the devices that are not forced
	twins []int   // by place in free: the interchangeable device before it, or -1
	need  int     // how many of the free ones to take
	least int64   // what a pair must be worth

	taken []bool      // by device; the forced ones to begin with
	start subsetScore // of the forced ones
	gains [][]int64   // by the number still needed, by place in free: worth with those taken

	best      []bool // by device
	bestScore subsetScore
	guessed   bool // best is not from the walk, so an equal may come before it
	visits    int  // how many times extend weighed a device: the cost of the walk

	*subsetBound // nil when every subset is looked at
}

// subsetScore is the worth of the chosen pairs and the sum of the chosen rows.
type subsetScore struct{ pairs, rows int64 }

func (a subsetScore) betterThan(b subsetScore) bool {
	return a.pairs > b.pairs || a.pairs == b.pairs && a.rows < b.rows
}

func newSubsetSearch(worth [][]int64, forced []bool, count int) *subsetSearch {
	n := len(worth)
	s := &subsetSearch{
		worth: worth,
		rows:  make([]int64, n),
		taken: make([]bool, n),
		best:  make([]bool, n),
		// Any subset is better than this one.
		bestScore: subsetScore{pairs: -1},
		guessed:   true,
		need:      count,
	}
	for i := range n {
		for _, w := range worth[i] {
			s.rows[i] += w
		}
		if !forced[i] {
			s.free = append(s.free, i)
			continue
		}
		s.start = s.with(s.start, i, s.worthWithTaken(i))
		s.taken[i], s.best[i] = true, true
		s.need--
	}
	s.gains = make([][]int64, s.need+1)
	for i := range s.gains {
		s.gains[i] = make([]int64, len(s.free))
	}
	for p, i := range s.free {
		s.gains[s.need][p] = s.worthWithTaken(i)
	}
	s.findTwins()
	return s
}

func (s *subsetSearch) worthWithTaken(i int) int64 {
	var sum int64
	for j, taken := range s.taken {
		if taken {
			sum += s.worth[i][j]
		}
	}
	return sum
}

func (s *subsetSearch) with(score subsetScore, i int, gain int64) subsetScore {
	return subsetScore{score.pairs + gain, score.rows + s.rows[i]}
}

// findTwins finds the devices that could change places without any sum
// changing. Of those the walk takes the lower numbers first, which is exact,
// and leaves a single way on a node where every device is linked to every
// other alike. Being interchangeable is transitive, so it is enough to
// compare with the first of each kind.
func (s *subsetSearch) findTwins() {
	s.twins = make([]int, len(s.free))
	var lasts []int // the latest of each kind, by place in free
	for p, i := range s.free {
		s.twins[p] = -1
		for kind, last := range lasts {
			if s.interchangeable(i, s.free[last]) {
				s.twins[p], lasts[kind] = last, p
				break
			}
		}
		if s.twins[p] < 0 {
			lasts = append(lasts, p)
		}
	}
}

func (s *subsetSearch) interchangeable(i, j int) bool {
	for k := range s.worth {
		if k != i && k != j && s.worth[i][k] != s.worth[j][k] {
			return false
		}
	}
	return true
}

// extend completes what is taken with need more of the free devices from the
// given place on, in every way that could be best.
func (s *subsetSearch) extend(from, need int, score subsetScore) {
	gains := s.gains[need]
	for p := from; p <= len(s.free)-need; p++ {
		if twin := s.twins[p]; twin >= 0 && !s.taken[s.free[twin]] {
			continue
		}
		s.visits++
		i := s.free[p]
		if s.least > 0 && !s.fitsTaken(i) {
			continue
		}
		extended := s.with(score, i, gains[p])
		if need == 1 {
			if extended.betterThan(s.bestScore) || s.guessed && extended == s.bestScore {
				s.bestScore, s.guessed = extended, false
				copy(s.best, s.taken)
				s.best[i] = true
			}
			continue
		}
		next := s.gains[need-1]
		for q := p + 1; q < len(s.free); q++ {
			next[q] = gains[q] + s.worth[i][s.free[q]]
		}
		if s.subsetBound != nil && s.hopeless(p+1, need-1, extended) {
			continue
		}
		s.taken[i] = true
		s.extend(p+1, need-1, extended)
		s.taken[i] = false
	}
}

// fitsTaken reports whether every pair with a taken device is worth enough.
func (s *subsetSearch) fitsTaken(i int) bool {
	for j, taken := range s.taken {
		if taken && s.worth[i][j] < s.least {
			return false
		}
	}
	return true
}

// choose is the number of subsets of k out of n, or more than maxSubsets.
func choose(n, k int) int {
	k = min(k, n-k)
	subsets := 1
	for i := 1; i <= k && subsets <= maxSubsets; i++ {
		subsets = subsets * (n - k + i) / i
	}
	return subsets
}
