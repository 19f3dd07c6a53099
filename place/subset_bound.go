package place

import (
	"cmp"
	"slices"
)

// maxSteps bounds a search that can not look at every subset: how many
// devices it weighs, a few milliseconds' worth.
const maxSteps = 1_000_000

// maxSeeds bounds the devices that a greedy start is tried from.
const maxSeeds = 32

// maxExchanges bounds the improvements of the greedy start.
const maxExchanges = 64

// subsetBound cuts the walk short where nothing better can follow, and ends
// it when its steps are spent.
type subsetBound struct {
	steps int
	most  [][]int64 // by the number of others, by place in free: the most that so many others can be worth to it
	top   []int64   // scratch of hopeless
}

// beginBounded finds a good subset to start from, and prepares the bound.
func (s *subsetSearch) beginBounded() {
	if s.least == 0 {
		s.startGreedy()
	}
	b := &subsetBound{steps: maxSteps, most: make([][]int64, s.need), top: make([]int64, 0, s.need)}
	for m := range b.most {
		b.most[m] = make([]int64, len(s.free))
	}
	others := make([]int64, 0, len(s.free))
	for p, i := range s.free {
		others = others[:0]
		for _, j := range s.free {
			if j != i {
				others = append(others, s.worth[i][j])
			}
		}
		slices.SortFunc(others, func(a, b int64) int { return cmp.Compare(b, a) })
		for m := 1; m < s.need; m++ {
			b.most[m][p] = b.most[m-1][p] + others[m-1]
		}
	}
	s.subsetBound = b
}

// hopeless reports whether no completion of what is taken, with need more of
// the free devices from the given place on, can beat the best. A device adds
// at most its gain and half of what need-1 others can be worth to it, since
// both ends count the pair.
func (s *subsetSearch) hopeless(from, need int, score subsetScore) bool {
	if s.steps -= len(s.free); s.steps < 0 {
		return true
	}
	gains, most := s.gains[need], s.most[need-1]
	top := s.top[:0]
	for p := from; p < len(s.free); p++ {
		twice := 2*gains[p] + most[p]
		if len(top) == need {
			if twice <= top[need-1] {
				continue
			}
			top = top[:need-1]
		}
		at := len(top)
		top = append(top, twice)
		for ; at > 0 && top[at-1] < twice; at-- {
			top[at] = top[at-1]
		}
		top[at] = twice
		s.steps--
	}
	var sum int64
	for _, twice := range top {
		sum += twice
	}
	return score.pairs+sum/2 < s.bestScore.pairs
}

// startGreedy tries several devices as the first, adds the one that gains
// most until there are enough, and keeps the best of these subsets after
// exchanging members for others as long as that helps.
func (s *subsetSearch) startGreedy() {
	seeds := 0
	for p, i := range s.free {
		if s.twins[p] >= 0 {
			continue
		}
		if seeds++; seeds > maxSeeds {
			break
		}
		members := slices.Clone(s.taken)
		gains := slices.Clone(s.gains[s.need])
		score := s.start
		for taken := 0; taken < s.need; taken++ {
			if taken > 0 {
				p = s.bestAddition(members, gains)
				i = s.free[p]
			}
			score = s.with(score, i, gains[p])
			s.join(members, gains, i)
		}
		if score.betterThan(s.bestScore) {
			s.bestScore, s.best = score, members
		}
	}
	s.exchange()
}

// bestAddition is the place of the free device that adds most to the members.
func (s *subsetSearch) bestAddition(members []bool, gains []int64) int {
	best := -1
	var bestScore subsetScore
	for p, i := range s.free {
		if members[i] {
			continue
		}
		if score := (subsetScore{gains[p], s.rows[i]}); best < 0 || score.betterThan(bestScore) {
			best, bestScore = p, score
		}
	}
	return best
}

func (s *subsetSearch) join(members []bool, gains []int64, i int) {
	members[i] = true
	for q, j := range s.free {
		gains[q] += s.worth[i][j]
	}
}

// exchange improves the best subset one exchange of two devices at a time.
func (s *subsetSearch) exchange() {
	gains := make([]int64, len(s.free))
	for p, i := range s.free {
		for j, member := range s.best {
			if member {
				gains[p] += s.worth[i][j]
			}
		}
	}
	for range maxExchanges {
		out, in, score := -1, -1, s.bestScore
		for p, i := range s.free {
			if !s.best[i] {
				continue
			}
			for q, j := range s.free {
				if s.best[j] {
					continue
				}
				exchanged := subsetScore{
					s.bestScore.pairs - gains[p] + gains[q] - s.worth[i][j],
					s.bestScore.rows - s.rows[i] + s.rows[j],
				}
				if exchanged.betterThan(score) {
					out, in, score = i, j, exchanged
				}
			}
		}
		if out < 0 {
			return
		}
		s.best[out], s.best[in], s.bestScore = false, true, score
		for p, i := range s.free {
			gains[p] += s.worth[i][in] - s.worth[i][out]
		}
	}
}
