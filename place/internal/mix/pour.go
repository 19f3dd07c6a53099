package mix

import "slices"

// pour is V of a state: the devices filled, on average over the sequences,
// when the requests of a sequence are placed one after the other where they
// fit. A part goes to the device with the least room that it fits on. Host
// memory is left out of it.
func (m *Mix) pour(row *Row) float64 {
	if len(m.sequences) == 0 || len(row.rooms) == 0 {
		return 0
	}
	p := pouring{mix: m}
	var filled float64
	for _, sequence := range m.sequences {
		p.rooms = p.rooms[:0]
		for _, r := range row.rooms {
			one := r
			one.Devices = 1
			for range r.Devices {
				p.rooms = append(p.rooms, one)
			}
		}
		cpu := row.cpu
		for _, class := range sequence {
			d := &m.classes[class]
			if d.CPUMilli <= cpu && p.take(d) {
				cpu -= d.CPUMilli
				filled += d.devices
				if len(p.rooms) == 0 {
					break
				}
			}
		}
	}
	return filled / float64(len(m.sequences))
}

// pouring is the room of a node while it is filled.
type pouring struct {
	mix   *Mix
	rooms []room // one a device, the fullest first
	found []int  // scratch
	rest  []room // scratch
}

// take takes the room of one request, if it is there. Rooms that are used up
// leave the list.
func (p *pouring) take(d *demand) bool {
	p.found = p.found[:0]
	for i := range p.rooms {
		if p.mix.fits(d, &p.rooms[i]) {
			if p.found = append(p.found, i); len(p.found) == d.Devices {
				break
			}
		}
	}
	if len(p.found) < d.Devices {
		return false
	}
	p.rest = p.rest[:0]
	for at := len(p.found) - 1; at >= 0; at-- { // from the back: the places before stay right
		i := p.found[at]
		if d.Each != (Amount{}) {
			r := p.rooms[i]
			r.Amount.ComputeMilli -= d.Each.ComputeMilli
			r.Amount.MemoryBytes -= d.Each.MemoryBytes
			r.size = p.mix.size(r.Kind, r.Amount)
			p.rest = append(p.rest, r)
		}
		p.rooms = slices.Delete(p.rooms, i, i+1)
	}
	for _, r := range p.rest {
		if r.size <= 0 {
			continue
		}
		to := 0
		for to < len(p.rooms) && p.rooms[to].size < r.size {
			to++
		}
		p.rooms = slices.Insert(p.rooms, to, r)
	}
	return true
}
