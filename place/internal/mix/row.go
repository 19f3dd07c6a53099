package mix

import (
	"cmp"
	"encoding/binary"
	"slices"
)

// State is what is free on a node, as far as its worth depends on it.
type State struct {
	CPUMilli    int64
	MemoryBytes int64
	Pods        int64
	Rooms       []Room
}

// Room is what is free on devices of one kind that have the same left.
type Room struct {
	Kind    int
	Amount  Amount
	Devices int
}

// maxCells bounds the rows that are kept: rows times classes.
const maxCells = 4 << 20

// room is a Room and its size.
type room struct {
	Room
	size int64 // what is free of one device, in thousandths
}

// Row is a state and what is known of it. Equal states have the same row, so
// that a thousand empty nodes are weighed once.
type Row struct {
	cpu, memory, pods int64
	rooms             []room  // the fullest first
	room              float64 // the device room, in thousandths of a device

	fits       []float32 // k_m, by class
	lost       []float32 // F_m in thousandths, by class
	generation int       // of the classes' numbers

	base  float64 // the sums of the formula
	epoch int     // that base is for
	fill  float64 // V
	drawn int     // that fill is for
}

// Row returns the row of a state. Rooms need no order; those that are used up
// are left out.
func (m *Mix) Row(s State) *Row {
	var scratch [16]room
	rooms := scratch[:0]
	for _, r := range s.Rooms {
		if size := m.size(r.Kind, r.Amount); size > 0 {
			rooms = insert(rooms, room{r, size})
		}
	}
	m.key = m.key[:0]
	m.key = binary.AppendVarint(m.key, s.CPUMilli)
	m.key = binary.AppendVarint(m.key, s.MemoryBytes)
	m.key = binary.AppendVarint(m.key, s.Pods)
	for i := range rooms {
		r := &rooms[i]
		m.key = binary.AppendVarint(m.key, int64(r.Kind))
		m.key = binary.AppendVarint(m.key, int64(r.Devices))
		m.key = binary.AppendVarint(m.key, r.Amount.ComputeMilli)
		m.key = binary.AppendVarint(m.key, r.Amount.MemoryBytes)
	}
	if row, ok := m.rows[string(m.key)]; ok {
		return row
	}
	if len(m.rows)*max(1, len(m.classes)) > maxCells {
		// Nodes keep theirs; the rest is found again when it is needed.
		m.rows = make(map[string]*Row)
	}
	row := &Row{
		cpu: s.CPUMilli, memory: s.MemoryBytes, pods: s.Pods,
		rooms: slices.Clone(rooms), epoch: -1, drawn: -1,
	}
	for _, r := range rooms {
		row.room += float64(r.size) * float64(r.Devices)
	}
	m.rows[string(m.key)] = row
	return row
}

// insert puts a room where it belongs: by size, the fullest first. Equal rooms
// become one.
func insert(rooms []room, r room) []room {
	at := len(rooms)
	for ; at > 0; at-- {
		switch order := compareRooms(&rooms[at-1], &r); {
		case order == 0:
			rooms[at-1].Devices += r.Devices
			return rooms
		case order < 0:
			return slices.Insert(rooms, at, r)
		}
	}
	return slices.Insert(rooms, 0, r)
}

func compareRooms(a, b *room) int {
	if a.size != b.size {
		return cmp.Compare(a.size, b.size)
	}
	return cmp.Or(
		cmp.Compare(a.Kind, b.Kind),
		cmp.Compare(a.Amount.ComputeMilli, b.Amount.ComputeMilli),
		cmp.Compare(a.Amount.MemoryBytes, b.Amount.MemoryBytes),
	)
}

// size is what is free of a device, in thousandths: the lesser of memory and
// compute.
func (m *Mix) size(kind int, a Amount) int64 {
	if capacity := m.kinds[kind]; capacity > 0 {
		part := int64(float64(a.MemoryBytes) / float64(capacity) * WholeCompute)
		return min(a.ComputeMilli, part)
	}
	return a.ComputeMilli
}

// holds reports whether a device with that amount free has room for one of
// the class.
func (m *Mix) holds(d *demand, kind int, free Amount) bool {
	if !d.accepted[kind] {
		return false
	}
	if d.Each == (Amount{}) {
		return free.ComputeMilli == WholeCompute && free.MemoryBytes == m.kinds[kind]
	}
	return free.ComputeMilli >= d.Each.ComputeMilli && free.MemoryBytes >= d.Each.MemoryBytes
}

// times is how often the class fits on a device that it fits on.
func times(d *demand, r *room) int64 {
	if d.Each == (Amount{}) {
		return 1
	}
	n := int64(WholeCompute)
	if d.Each.ComputeMilli > 0 {
		n = r.Amount.ComputeMilli / d.Each.ComputeMilli
	}
	if d.Each.MemoryBytes > 0 {
		n = min(n, r.Amount.MemoryBytes/d.Each.MemoryBytes)
	}
	return n
}

// complete fills in the classes that have come since.
func (m *Mix) complete(row *Row) {
	if row.generation != m.generation {
		row.fits, row.lost, row.generation = row.fits[:0], row.lost[:0], m.generation
	}
	if missing := len(m.classes) - len(row.fits); missing > 0 {
		row.fits, row.lost = slices.Grow(row.fits, missing), slices.Grow(row.lost, missing)
	}
	for i := len(row.fits); i < len(m.classes); i++ {
		fits, lost := m.weigh(row, &m.classes[i])
		row.fits, row.lost = append(row.fits, float32(fits)), append(row.lost, float32(lost))
	}
}

// weigh is k_m and F_m of a state.
func (m *Mix) weigh(row *Row, d *demand) (fits int64, lost float64) {
	fits = row.pods
	if d.CPUMilli > 0 {
		fits = min(fits, row.cpu/d.CPUMilli)
	}
	if d.hostMemory > 0 {
		fits = min(fits, int64(float64(row.memory)/d.hostMemory))
	}
	fits = max(0, fits)
	if d.Devices == 0 {
		return fits, row.room
	}
	var all, enough, tooFull int64
	for i := range row.rooms {
		r := &row.rooms[i]
		devices := int64(r.Devices)
		if m.holds(d, r.Kind, r.Amount) {
			all += times(d, r) * devices
			enough += devices
		} else {
			tooFull += r.size * devices
		}
	}
	if enough < int64(d.Devices) {
		return 0, row.room
	}
	lost = float64(tooFull)
	if row.cpu < d.CPUMilli {
		lost = row.room
	}
	return min(fits, all/int64(d.Devices)), lost
}

// Worth is Φ of a node in the row's state and of the given shape.
func (m *Mix) Worth(row *Row, shape int) float64 {
	if row.epoch != m.epoch {
		m.complete(row)
		var sum float64
		for i, fit := range m.fit {
			sum += fit*float64(row.fits[i]) - m.lost[i]*float64(row.lost[i])
		}
		row.base, row.epoch = sum, m.epoch
	}
	if row.drawn != m.drawn {
		row.fill, row.drawn = m.pour(row), m.drawn
	}
	return row.base + m.shapes[shape].price*row.fill
}

// Room is the device room of the state, in thousandths of a device.
func (r *Row) Room() float64 { return r.room }
