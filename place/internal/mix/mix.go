// Package mix knows what has been asked for lately, and what the free room of
// a node is worth to requests like those.
//
// The worth of a node is
//
//	Φ(n) = Σ_m p_m·s_m·k_m(n) − 2·Σ_m p_m·s_m·F_m(n) + 5·ψ(n)·V(n)
//
// over the classes m of requests, where
//
//   - p_m is the share of class m among the requests,
//   - k_m(n) is how often m fits on the node (only classes with devices),
//   - F_m(n) is the device room, in devices, that m can not use: all of it
//     where m does not fit, and otherwise what is left on devices too full
//     for it; it is the fragmentation of FGD (USENIX ATC 2023),
//   - s_m = (A+1)/(C_m·g_m+1) is how scarce room for m is: A is the free
//     device room of the cluster, C_m how often m fits into it, g_m the
//     devices one m takes (at least 0.05); in the second sum it is 1 for
//     classes without devices,
//   - V(n) is how many devices are filled, on average, when requests drawn
//     from the mix are poured into the node until nothing more fits,
//   - ψ(n) is the price of the node's shape: the demand that an empty node
//     like it could serve, each class weighted by how little other room there
//     is for it.
//
// A placement is good when it costs little worth. The worth of the cluster is
// the sum over its nodes, so a placement changes one term.
package mix

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// The weights of the formula, and how the mix is kept up to date.
const (
	fragmentWeight = 2
	fillWeight     = 5
	minDevices     = 0.05 // g_m is at least this

	// halfLife is after how many requests an old one counts half.
	halfLife = 20_000
	// Early on every few requests change the picture.
	earlyRequests, earlyInterval, interval = 100, 5, 50
	// maxClasses bounds the classes; the rarest are forgotten.
	maxClasses = 512
)

// Class is what a kind of request asks for, apart from host memory, in which
// requests of one class may differ. Selector stands for a set of device kinds.
type Class struct {
	CPUMilli int64
	Devices  int
	// Each is what is taken of each device; zero: all of it.
	Each     Amount
	Selector string
}

// Amount is a part of a device.
type Amount struct{ MemoryBytes, ComputeMilli int64 }

// WholeCompute is the compute of a device.
const WholeCompute = 1000

// Mix is the requests of late and the free room of the cluster. It is not
// safe for concurrent use.
type Mix struct {
	accepts func(selector string, kind int) bool
	kinds   []int64 // the memory of each kind of device
	shapes  []shape

	classes []demand
	known   map[Class]int
	learned int

	rows map[string]*Row
	live map[*Row]int // how many nodes are in that state
	key  []byte       // scratch

	// What follows from the classes and the room, until the next refresh.
	epoch      int
	generation int // changes when classes are forgotten, and so renumbered
	counted    int // the classes that the weights are for
	fit, lost  []float64
	sequences  [][]int32
	drawn      int     // counts the drawings of sequences
	scratch    []space // of pour
}

// demand is a class and what is known of it.
type demand struct {
	Class
	weight     float64 // how many requests, the older ones counting less
	hostMemory float64 // the mean
	accepted   []bool  // by kind
	devices    float64 // g_m
	need       int64   // a device of smaller size will not do
}

// New makes an empty mix. accepts says whether a selector matches devices of
// a kind; its answer must not change.
func New(accepts func(selector string, kind int) bool) *Mix {
	return &Mix{
		accepts: accepts,
		known:   map[Class]int{},
		rows:    map[string]*Row{},
		live:    map[*Row]int{},
	}
}

// AddKind makes a kind of device known by its memory, and returns its number.
func (m *Mix) AddKind(memoryBytes int64) int {
	m.kinds = append(m.kinds, memoryBytes)
	for i := range m.classes {
		m.acceptKinds(&m.classes[i])
	}
	return len(m.kinds) - 1
}

// acceptKinds finds out which of the new kinds will do for the class.
func (m *Mix) acceptKinds(d *demand) {
	for kind := len(d.accepted); kind < len(m.kinds); kind++ {
		d.accepted = append(d.accepted, m.accepts(d.Selector, kind))
	}
}

// Learn counts a request.
func (m *Mix) Learn(c Class, hostMemoryBytes int64) {
	i, ok := m.known[c]
	if !ok {
		i = len(m.classes)
		m.known[c] = i
		m.classes = append(m.classes, demand{Class: c})
		m.acceptKinds(&m.classes[i])
	}
	d := &m.classes[i]
	d.weight++
	d.hostMemory += (float64(hostMemoryBytes) - d.hostMemory) / d.weight
	m.learned++
	if m.learned%interval == 0 || m.learned <= earlyRequests && m.learned%earlyInterval == 0 {
		m.refresh()
	}
}

// refresh follows the requests and the room of the cluster.
func (m *Mix) refresh() {
	if m.learned%halfLife == 0 {
		for i := range m.classes {
			m.classes[i].weight /= 2
		}
	}
	forgot := len(m.classes) > maxClasses
	if forgot {
		m.forgetRarest()
	}
	var total float64
	for i := range m.classes {
		total += m.classes[i].weight
		m.measure(&m.classes[i])
	}
	if m.due() || forgot {
		m.draw(total)
	}
	m.counted = len(m.classes)
	m.epoch++

	// Integers, so that the order of the map does not show.
	room, fits := 0.0, make([]float64, m.counted)
	for row, nodes := range m.live {
		m.complete(row)
		room += row.room * float64(nodes)
		for i, k := range row.fits[:m.counted] {
			fits[i] += float64(k) * float64(nodes)
		}
	}
	room /= WholeCompute
	m.fit, m.lost = resize(m.fit, m.counted), resize(m.lost, m.counted)
	for i := range m.classes {
		d := &m.classes[i]
		share := d.weight / total
		if d.Devices == 0 {
			m.fit[i], m.lost[i] = 0, fragmentWeight*share/WholeCompute
			continue
		}
		scarcity := (room + 1) / (fits[i]*max(d.devices, minDevices) + 1)
		m.fit[i] = share * scarcity
		m.lost[i] = fragmentWeight * share * scarcity / WholeCompute
	}
	m.price(room, total)
}

// forgetRarest keeps the heavier half of the classes.
func (m *Mix) forgetRarest() {
	order := make([]int, len(m.classes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(m.classes[b].weight, m.classes[a].weight) })
	order = order[:maxClasses/2]
	slices.Sort(order)
	var kept []demand
	clear(m.known)
	for _, i := range order {
		m.known[m.classes[i].Class] = len(kept)
		kept = append(kept, m.classes[i])
	}
	m.classes = kept
	m.generation++
}

// measure finds how many devices one request of the class takes: parts of a
// device count by the larger of memory and compute, on an average device.
func (m *Mix) measure(d *demand) {
	d.devices, d.need = float64(d.Devices), WholeCompute
	if d.Each == (Amount{}) || d.Devices == 0 {
		return
	}
	compute := float64(d.Each.ComputeMilli) / WholeCompute
	least, sum, kinds := compute, 0.0, 0.0
	for kind, capacity := range m.kinds {
		if !d.accepted[kind] {
			continue
		}
		part := compute
		if capacity > 0 {
			memory := float64(d.Each.MemoryBytes) / float64(capacity)
			part, least = max(part, memory), min(least, memory)
		}
		sum, kinds = sum+min(1, part), kinds+1
	}
	if kinds == 0 {
		sum, kinds = compute, 1
	}
	d.devices *= sum / kinds
	d.need = int64(least * WholeCompute)
}

// due reports whether the sequences are to be drawn anew: when the mix has
// become much better known, and later now and then.
func (m *Mix) due() bool {
	switch m.learned {
	case 5, 50, 100, 300, 1000, 3000:
		return true
	}
	return m.learned%10_000 == 0
}

// The pouring of V: a few long sequences, the same for all nodes, so that
// nodes differ by their room and not by luck.
const (
	sequences      = 8
	sequenceLength = 80
)

// draw draws the sequences from the mix.
func (m *Mix) draw(total float64) {
	m.drawn++
	random := rand.New(rand.NewPCG(0x6b696c746572, uint64(m.drawn)))
	m.sequences = make([][]int32, sequences)
	for i := range m.sequences {
		for range sequenceLength {
			at := random.Float64() * total
			class := 0
			for class < len(m.classes)-1 && at >= m.classes[class].weight {
				at -= m.classes[class].weight
				class++
			}
			if m.classes[class].Devices > 0 {
				m.sequences[i] = append(m.sequences[i], int32(class))
			}
		}
	}
}

func resize(s []float64, n int) []float64 {
	for len(s) < n {
		s = append(s, 0)
	}
	return s[:n]
}
