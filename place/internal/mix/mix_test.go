package mix

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

func anyKind(string, int) bool { return true }

// whole is a class of whole devices, part one of a part of a device.
func whole(cpu int64, devices int) Class { return Class{CPUMilli: cpu, Devices: devices} }

func part(cpu, compute int64) Class {
	return Class{CPUMilli: cpu, Devices: 1, Each: Amount{ComputeMilli: compute}}
}

// eight is a node with eight devices, of which some have the given left.
func eight(cpu int64, left ...int64) State {
	s := State{CPUMilli: cpu, MemoryBytes: 1 << 40, Pods: 100}
	for i := range 8 {
		compute := int64(WholeCompute)
		if i < len(left) {
			compute = left[i]
		}
		s.Rooms = append(s.Rooms, Room{Amount: Amount{ComputeMilli: compute}, Devices: 1})
	}
	return s
}

func TestWeigh(t *testing.T) {
	for _, test := range []struct {
		name  string
		state State
		class Class
		fits  int64
		lost  float64
	}{
		{"whole devices", eight(96_000), whole(8_000, 1), 8, 0},
		{"CPU is the limit", eight(20_000), whole(8_000, 1), 2, 0},
		{"all at once", eight(96_000), whole(8_000, 8), 1, 0},
		{"one is in use", eight(96_000, 500), whole(8_000, 8), 0, 7500},
		{"what is left on one is lost", eight(96_000, 500), whole(8_000, 1), 7, 500},
		{"parts", eight(96_000, 500, 250), part(1_000, 300), 6*3 + 1, 250},
		{"no CPU", eight(500), part(1_000, 300), 0, 8000},
		{"no device asked for", eight(10_000, 500), Class{CPUMilli: 4_000}, 2, 7500},
	} {
		m := New(anyKind)
		m.AddKind(0)
		m.Learn(test.class, 1)
		fits, lost := m.weigh(m.Row(test.state), &m.classes[0])
		if fits != test.fits || lost != test.lost {
			t.Errorf("%s: got %d and %v, want %d and %v", test.name, fits, lost, test.fits, test.lost)
		}
	}
}

func TestMemoryOfDevicesCounts(t *testing.T) {
	m := New(anyKind)
	m.AddKind(80)
	class := Class{Devices: 1, Each: Amount{MemoryBytes: 30, ComputeMilli: 100}}
	m.Learn(class, 0)
	s := State{Pods: 10, Rooms: []Room{{0, Amount{80, 1000}, 1}, {0, Amount{20, 900}, 1}}}
	row := m.Row(s)
	if row.room != 1250 {
		t.Errorf("room is %v: a quarter of the memory is a quarter of the device", row.room)
	}
	if fits, lost := m.weigh(row, &m.classes[0]); fits != 2 || lost != 250 {
		t.Errorf("got %d and %v, want 2 and 250", fits, lost)
	}
	m.measure(&m.classes[0])
	if got := m.classes[0].devices; got != 30.0/80 {
		t.Errorf("it takes %v of a device, want its memory's part", got)
	}
}

func TestRowsAreShared(t *testing.T) {
	m := New(anyKind)
	m.AddKind(0)
	a := m.Row(eight(1000, 300, 500))
	b := m.Row(eight(1000, 500, 300))
	used := eight(1000, 0, 500, 300)
	used.Rooms = append(used.Rooms, Room{Amount: Amount{ComputeMilli: WholeCompute}, Devices: 1})
	c := m.Row(used)
	if a != b || a != c {
		t.Error("states that differ only in the order of devices and in full ones have different rows")
	}
	if a == m.Row(eight(1000, 300, 501)) || a == m.Row(eight(1001, 300, 500)) {
		t.Error("different states have the same row")
	}
}

// TestWorthPrefersWhatTheMixNeeds: with requests for eight devices about, a
// single one goes to the node that is broken already.
func TestWorthPrefersWhatTheMixNeeds(t *testing.T) {
	m := New(anyKind)
	m.AddKind(0)
	shape := m.AddShape(eight(96_000))
	intact, broken := m.Row(eight(96_000)), m.Row(eight(96_000, 0))
	m.Add(intact, shape)
	m.Add(broken, shape)
	for range 50 {
		m.Learn(whole(8_000, 8), 1)
		m.Learn(whole(8_000, 1), 1)
	}
	loss := func(before, after *Row) float64 { return m.Worth(before, shape) - m.Worth(after, shape) }
	onIntact := loss(intact, m.Row(eight(88_000, 0)))
	onBroken := loss(broken, m.Row(eight(88_000, 0, 0)))
	if onBroken >= onIntact {
		t.Errorf("breaking the intact node costs %v, using the broken one %v", onIntact, onBroken)
	}
}

// TestWorthKeepsScarceKinds: a request that any kind can serve leaves the rare
// kind alone, if some ask for it.
func TestWorthKeepsScarceKinds(t *testing.T) {
	m := New(func(selector string, kind int) bool { return selector == "" || kind == 1 })
	m.AddKind(0)
	m.AddKind(0)
	common, rare := eight(96_000), eight(96_000)
	for i := range rare.Rooms {
		rare.Rooms[i].Kind = 1
	}
	commonShape, rareShape := m.AddShape(common), m.AddShape(rare)
	for range 9 {
		m.Add(m.Row(common), commonShape)
	}
	m.Add(m.Row(rare), rareShape)
	for i := range 100 {
		m.Learn(whole(8_000, 1), 1)
		if i%10 == 0 {
			m.Learn(Class{CPUMilli: 8_000, Devices: 1, Selector: "rare"}, 1)
		}
	}
	used := func(s State) State {
		s.CPUMilli -= 8_000
		s.Rooms = s.Rooms[1:]
		return s
	}
	onCommon := m.Worth(m.Row(common), commonShape) - m.Worth(m.Row(used(common)), commonShape)
	onRare := m.Worth(m.Row(rare), rareShape) - m.Worth(m.Row(used(rare)), rareShape)
	if onCommon >= onRare {
		t.Errorf("the common kind costs %v, the rare one %v", onCommon, onRare)
	}
}

func TestPourFills(t *testing.T) {
	m := New(anyKind)
	m.AddKind(0)
	for range 100 {
		m.Learn(part(1_000, 500), 1)
	}
	for _, test := range []struct {
		state State
		want  float64
	}{
		{eight(96_000), 8},
		{eight(5_000), 2.5},
		{eight(96_000, 400, 500), 6.5},
		{eight(96_000, 0, 0, 0, 0, 0, 0, 0, 0), 0},
	} {
		if got := m.pour(m.Row(test.state)); math.Abs(got-test.want) > 1e-9 {
			t.Errorf("%+v: %v devices filled, want %v", test.state, got, test.want)
		}
	}
}

// TestForgetting: however many classes come, only so many are kept, the common
// ones among them, and the worth stays what it would be without the rare ones.
func TestForgetting(t *testing.T) {
	m := New(anyKind)
	m.AddKind(0)
	shape := m.AddShape(eight(96_000))
	row := m.Row(eight(96_000, 300))
	m.Add(row, shape)
	random := rand.New(rand.NewPCG(1, 1))
	for range 3000 {
		m.Learn(whole(8_000, 1), 1)
		m.Learn(whole(random.Int64N(1<<40), 1), 1)
	}
	m.refresh()
	if len(m.classes) > maxClasses {
		t.Errorf("%d classes are kept", len(m.classes))
	}
	if i, ok := m.known[whole(8_000, 1)]; !ok || m.classes[i].weight < 2999 {
		t.Error("the common class was forgotten")
	}
	for class, i := range m.known {
		if m.classes[i].Class != class {
			t.Fatalf("class %v is filed under %v", m.classes[i].Class, class)
		}
	}
	if worth := m.Worth(row, shape); math.IsNaN(worth) || math.IsInf(worth, 0) {
		t.Errorf("worth is %v", worth)
	}
}

// TestAddRemove: after all nodes are gone nothing is counted.
func TestAddRemove(t *testing.T) {
	m := New(anyKind)
	m.AddKind(0)
	shape := m.AddShape(eight(96_000))
	var rows []*Row
	for i := range 20 {
		rows = append(rows, m.Row(eight(96_000, int64(i%3)*100)))
		m.Add(rows[i], shape)
	}
	for _, row := range rows {
		m.Remove(row, shape)
	}
	if len(m.live) != 0 || m.shapes[shape].room != 0 {
		t.Error(fmt.Sprint(len(m.live), " rows live, room ", m.shapes[shape].room))
	}
}
