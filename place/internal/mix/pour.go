package mix

// pour is V of a state: the devices filled, on average over the sequences,
// when the requests of a sequence are placed one after the other where they
// fit. A part goes to the device with the least room that it fits on. Host
// memory is left out of it.
func (m *Mix) pour(row *Row) float64 {
	if len(m.sequences) == 0 || len(row.rooms) == 0 {
		return 0
	}
	var filled float64
	for _, sequence := range m.sequences {
		p := pouring{mix: m, rooms: m.scratch[:0]}
		for i := range row.rooms {
			r := &row.rooms[i]
			for range r.Devices {
				p.rooms = append(p.rooms, space{r.Amount, r.Kind, r.size})
			}
		}
		m.scratch = p.rooms
		cpu := row.cpu
		for _, class := range sequence {
			d := &m.classes[class]
			if d.CPUMilli > cpu || d.need > p.rooms[len(p.rooms)-1].size || !p.take(d) {
				continue
			}
			cpu -= d.CPUMilli
			filled += d.devices
			if len(p.rooms) == 0 {
				break
			}
		}
	}
	return filled / float64(len(m.sequences))
}

// pouring is the room of a node while it is filled.
type pouring struct {
	mix   *Mix
	rooms []space // one a device, the fullest first
}

// space is what is free on one device.
type space struct {
	Amount
	kind int
	size int64
}

// take takes the room of one request, if it is there. Rooms that are used up
// leave the list.
func (p *pouring) take(d *demand) bool {
	whole := d.Each == Amount{}
	var places [16]int
	found := places[:0]
	for i := range p.rooms {
		r := &p.rooms[i]
		if r.size >= d.need && p.mix.holds(d, r.kind, r.Amount) {
			if found = append(found, i); len(found) == d.Devices {
				break
			}
		}
	}
	if len(found) < d.Devices {
		return false
	}
	if whole {
		p.drop(found)
		return true
	}
	// What has less room moves to the front, which leaves the places behind
	// it as they are.
	for _, i := range found {
		r := p.rooms[i]
		r.ComputeMilli -= d.Each.ComputeMilli
		r.MemoryBytes -= d.Each.MemoryBytes
		r.size = p.mix.size(r.kind, r.Amount)
		for ; i > 0 && p.rooms[i-1].size > r.size; i-- {
			p.rooms[i] = p.rooms[i-1]
		}
		p.rooms[i] = r
	}
	for len(p.rooms) > 0 && p.rooms[0].size <= 0 {
		p.rooms = p.rooms[1:]
	}
	return true
}

// drop removes the given places, which are in ascending order.
func (p *pouring) drop(places []int) {
	to := places[0]
	for i := to; i < len(p.rooms); i++ {
		if len(places) > 0 && i == places[0] {
			places = places[1:]
			continue
		}
		p.rooms[to] = p.rooms[i]
		to++
	}
	p.rooms = p.rooms[:to]
}
