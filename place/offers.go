package place

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// column remembers the options of every node for one request. They stay right
// until the node changes.
type column struct {
	request Request
	cells   []cell // by the node's slot
	asked   uint64
}

type cell struct {
	version uint64 // of the node
	options []option
}

// maxColumns bounds the requests that are remembered.
const maxColumns = 256

// bid is an option of a node, and what it costs.
type bid struct {
	node *node
	*option
	gain float64 // the change of the cluster's worth; the higher, the better
}

// Offers answers a request with the best few nodes, the best one first, at
// most one offer a node. The answer is empty when no node will do.
//
// Better is, by the first that differs: the bandwidth in groups that prefer or
// require links; the rank of each group; the worth that the cluster keeps for
// what is usually asked of it; the least left over on the node; the first name.
func (c *Cluster) Offers(r Request, most int) ([]Offer, error) {
	if err := r.Validate(); err != nil {
		return nil, err
	}
	col := c.column(r)
	var best []bid // the best first
	for slot, n := range c.nodes {
		if n == nil {
			continue
		}
		cell := &col.cells[slot]
		if cell.version != n.version {
			cell.version, cell.options = n.version, c.options(n, &col.request)
		}
		if len(cell.options) == 0 {
			continue
		}
		b := c.bestOption(n, cell.options)
		if len(best) == most && compareBids(&b, &best[most-1]) >= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, b, func(x, y bid) int { return compareBids(&x, &y) })
		if len(best) == most {
			best = best[:most-1]
		}
		best = slices.Insert(best, at, b)
	}
	offers := make([]Offer, len(best))
	for i := range best {
		offers[i] = best[i].offer(&col.request)
	}
	return offers, nil
}

func (c *Cluster) bestOption(n *node, options []option) bid {
	before := c.mix.Worth(n.row, n.shape)
	best := bid{n, &options[0], c.mix.Worth(options[0].row, n.shape) - before}
	for i := 1; i < len(options); i++ {
		b := bid{n, &options[i], c.mix.Worth(options[i].row, n.shape) - before}
		if compareBids(&b, &best) < 0 {
			best = b
		}
	}
	return best
}

// compareBids is negative when a is better than b.
func compareBids(a, b *bid) int {
	if a.links != b.links {
		return cmp.Compare(b.links, a.links)
	}
	for i := range a.rank {
		if order := a.rank[i].compare(b.rank[i]); order != 0 {
			return order
		}
	}
	if a.gain != b.gain {
		return cmp.Compare(b.gain, a.gain)
	}
	if a.left != b.left {
		return cmp.Compare(a.left, b.left)
	}
	return strings.Compare(a.node.name, b.node.name)
}

func (b *bid) offer(r *Request) Offer {
	o := Offer{Node: b.node.name, Gain: b.gain, host: r.Host, version: b.node.version}
	for _, t := range b.taken {
		o.Parts = append(o.Parts, Part{r.Groups[t.group].Name, b.node.devices[t.device].ID, t.amount})
	}
	return o
}

// column finds what is remembered of the request.
func (c *Cluster) column(r Request) *column {
	c.asked++
	key := r.key()
	col := c.columns[key]
	if col == nil {
		if len(c.columns) >= maxColumns {
			c.dropOldest()
		}
		r.Groups = slices.Clone(r.Groups)
		col = &column{request: r}
		c.columns[key] = col
	}
	col.asked = c.asked
	for len(col.cells) < len(c.nodes) {
		col.cells = append(col.cells, cell{})
	}
	return col
}

func (c *Cluster) dropOldest() {
	var oldest string
	for key, col := range c.columns {
		if oldest == "" || col.asked < c.columns[oldest].asked {
			oldest = key
		}
	}
	delete(c.columns, oldest)
}

// String is for people: a node and its devices.
func (o Offer) String() string {
	ids := make([]string, len(o.Parts))
	for i, part := range o.Parts {
		ids[i] = string(part.Device)
	}
	return fmt.Sprintf("%s [%s]", o.Node, strings.Join(ids, " "))
}
