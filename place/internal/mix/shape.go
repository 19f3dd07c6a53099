package mix

// shape is a kind of node, and the room on all nodes of it.
type shape struct {
	empty *Row
	room  float64 // in thousandths of a device
	price float64 // 5·ψ
}

// AddShape makes a kind of node known by what an empty one looks like, and
// returns its number.
func (m *Mix) AddShape(empty State) int {
	m.shapes = append(m.shapes, shape{empty: m.Row(empty)})
	return len(m.shapes) - 1
}

// Add counts a node in the given state; Remove takes one away.
func (m *Mix) Add(row *Row, shape int) { m.change(row, shape, 1) }

// Remove is the reverse of Add.
func (m *Mix) Remove(row *Row, shape int) { m.change(row, shape, -1) }

func (m *Mix) change(row *Row, shape, by int) {
	m.live[row] += by
	if m.live[row] == 0 {
		delete(m.live, row)
	}
	m.shapes[shape].room += float64(by) * row.room
}

// price sets ψ of every shape, times its weight.
func (m *Mix) price(room, total float64) {
	elsewhere := make([]float64, m.counted)
	var demanded float64
	for i := range m.classes {
		demanded += m.classes[i].weight / total * m.classes[i].devices
	}
	for s := range m.shapes {
		m.complete(m.shapes[s].empty)
		for i, k := range m.shapes[s].empty.fits[:m.counted] {
			if k > 0 {
				elsewhere[i] += m.shapes[s].room / WholeCompute
			}
		}
	}
	for s := range m.shapes {
		var served float64
		for i, k := range m.shapes[s].empty.fits[:m.counted] {
			if k > 0 {
				served += m.classes[i].weight / total * m.classes[i].devices * (room + 1) / (elsewhere[i] + 1)
			}
		}
		m.shapes[s].price = 0
		if demanded > 0 {
			m.shapes[s].price = fillWeight * served / demanded
		}
	}
}
