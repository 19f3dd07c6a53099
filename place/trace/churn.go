package trace

import (
	"cmp"
	"container/heap"
	"context"
	"errors"
	"math/rand"
	"slices"
)

// A run with departures. Pods come in the order of their creation in the
// trace, from a place that the seed chooses, and the trace is repeated as long
// as needed; the rate at which they come, with random gaps, offers the wanted
// load. A Pod runs as long as it did in the trace, from when it is placed, but
// at most four hours: else some twenty Pods that ran for months would be most
// of the load. The run begins with the cluster in the middle of its life: with
// the Pods that would be running, for what is left of their time.
//
// A Pod that fits nowhere waits. When Pods have left, the waiting ones are
// asked again, the oldest first, at most once a minute.
const (
	window   = 4 * 3600
	longest  = 4 * 3600
	interval = 60
)

// ErrNoTimes says that the Pods of a trace have no times.
var ErrNoTimes = errors.New("the Pods have no times of creation and deletion")

// Service is the outcome of a run with departures.
type Service struct {
	Offered float64   // the GPU time asked for, in percent of all
	Served  float64   // the GPU time given, in percent of all
	Waits   []float64 // how long each Pod that came waited, in seconds, ascending
	Waiting int       // how many of them still waited when it ended
}

// stay is one Pod of a run with departures.
type stay struct {
	pod      *Pod
	from     float64 // when it comes, in seconds; 0 for those that run at the beginning
	duration float64
	at       Placement
}

// Churn places Pods that come and go, at the given load, in parts of all GPU.
func (t *Trace) Churn(ctx context.Context, make Make, seed int64, load float64) (*Service, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	random := rand.New(rand.NewSource(seed))
	stays, offered, err := t.stays(random, load)
	if err != nil {
		return nil, err
	}
	machines := slices.Clone(t.Machines)
	slices.SortFunc(machines, func(a, b Machine) int { return cmp.Compare(a.Name, b.Name) })
	random.Shuffle(len(machines), func(i, j int) { machines[i], machines[j] = machines[j], machines[i] })
	c := &churn{state: newState(machines), policy: make(t, random), failed: map[ask]bool{}}
	for _, m := range machines {
		c.capacity += float64(m.GPUs) * WholeGPU
	}
	if err := c.run(ctx, stays); err != nil {
		return nil, err
	}
	slices.Sort(c.waits)
	all := c.capacity * window
	return &Service{Offered: 100 * offered / all, Served: 100 * c.served / all, Waits: c.waits, Waiting: c.stillWaiting}, nil
}

// lifetime is how long a Pod runs, in seconds.
func lifetime(p *Pod) float64 { return min(longest, float64(p.Deleted-p.Created)) }

// stays are the Pods of a run in the order in which they come, and the GPU
// time they ask for while it lasts.
func (t *Trace) stays(random *rand.Rand, load float64) (stays []*stay, offered float64, err error) {
	var pods []*Pod
	var capacity, seconds, gpuSeconds float64
	for i := range t.Pods {
		p := &t.Pods[i]
		if p.Deleted > p.Created {
			pods = append(pods, p)
			seconds += lifetime(p)
			gpuSeconds += lifetime(p) * float64(p.Milli())
		}
	}
	if gpuSeconds == 0 {
		return nil, 0, ErrNoTimes
	}
	for _, m := range t.Machines {
		capacity += float64(m.GPUs) * WholeGPU
	}
	slices.SortStableFunc(pods, func(a, b *Pod) int {
		return cmp.Or(cmp.Compare(a.Created, b.Created), cmp.Compare(a.Name, b.Name))
	})
	rate := load * capacity / (gpuSeconds / float64(len(pods))) // in Pods a second

	add := func(p *Pod, from, duration float64) {
		stays = append(stays, &stay{pod: p, from: from, duration: duration})
		offered += min(duration, window-from) * float64(p.Milli())
	}
	// Of those that run at some moment, a Pod is one with a chance in
	// proportion to its lifetime, and any part of it may be over.
	for range int(rate * seconds / float64(len(pods))) {
		at := random.Float64() * seconds
		i := 0
		for at >= lifetime(pods[i]) && i < len(pods)-1 {
			at -= lifetime(pods[i])
			i++
		}
		add(pods[i], 0, lifetime(pods[i])*random.Float64())
	}
	next := random.Intn(len(pods))
	for now := random.ExpFloat64() / rate; now < window; now += random.ExpFloat64() / rate {
		add(pods[next], now, lifetime(pods[next]))
		next = (next + 1) % len(pods)
	}
	return stays, offered, nil
}

// churn is a run with departures.
type churn struct {
	state    *State
	policy   Policy
	capacity float64

	leaving departures
	queue   []*stay
	failed  map[ask]bool // what has found no place since Pods last left
	freed   bool         // Pods have left since the queue was asked

	served       float64
	waits        []float64
	stillWaiting int
}

func (c *churn) run(ctx context.Context, stays []*stay) error {
	nextRetry := float64(interval)
	for {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		// What happens next: somebody comes, or the queue is asked.
		now := nextRetry
		coming := len(stays) > 0 && stays[0].from <= nextRetry
		if coming {
			now = stays[0].from
		}
		if now >= window {
			break
		}
		c.leaveUntil(now)
		if coming {
			s := stays[0]
			stays = stays[1:]
			if l, ok := c.policy.(Learner); ok {
				l.Learn(c.state, s.pod)
			}
			if err := c.try(s, now); err != nil {
				return err
			}
			if s.at.Node == nil {
				c.queue = append(c.queue, s)
			}
			continue
		}
		nextRetry += interval
		if err := c.askQueue(now); err != nil {
			return err
		}
	}
	for _, s := range c.queue {
		if s.from > 0 {
			c.stillWaiting++
			c.waits = append(c.waits, window-s.from)
		}
	}
	return nil
}

// leaveUntil lets the Pods go whose time is over.
func (c *churn) leaveUntil(now float64) {
	for len(c.leaving) > 0 && c.leaving[0].time <= now {
		d := heap.Pop(&c.leaving).(departure)
		c.state.remove(d.stay.pod, d.stay.at)
		if l, ok := c.policy.(Leaver); ok {
			l.Leave(d.stay.pod, d.stay.at)
		}
		c.freed = true
	}
	if c.freed {
		clear(c.failed)
	}
}

// askQueue asks the waiting Pods again.
func (c *churn) askQueue(now float64) error {
	if !c.freed {
		return nil
	}
	c.freed = false
	var still []*stay
	for _, s := range c.queue {
		if err := c.try(s, now); err != nil {
			return err
		}
		if s.at.Node == nil {
			still = append(still, s)
		}
	}
	c.queue = still
	return nil
}

// try places a Pod, if it fits somewhere.
func (c *churn) try(s *stay, now float64) error {
	if c.failed[s.pod.ask()] {
		return nil
	}
	at, ok := c.policy.Place(c.state, s.pod)
	if !ok {
		c.failed[s.pod.ask()] = true
		return nil
	}
	if err := c.state.put(s.pod, at); err != nil {
		return err
	}
	s.at = at
	heap.Push(&c.leaving, departure{now + s.duration, s})
	c.served += min(s.duration, window-now) * float64(s.pod.Milli())
	if s.from > 0 {
		c.waits = append(c.waits, now-s.from)
	}
	return nil
}

// departure is when a Pod leaves.
type departure struct {
	time float64
	stay *stay
}

// departures is a heap, the next one first.
type departures []departure

func (d departures) Len() int           { return len(d) }
func (d departures) Less(i, j int) bool { return d[i].time < d[j].time }
func (d departures) Swap(i, j int)      { d[i], d[j] = d[j], d[i] }
func (d *departures) Push(x any)        { *d = append(*d, x.(departure)) }
func (d *departures) Pop() any {
	last := (*d)[len(*d)-1]
	*d = (*d)[:len(*d)-1]
	return last
}
