package trace

import (
	"fmt"
	"math/rand"
	"strconv"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/place"
)

// mebibyte is the trace's unit of memory.
const mebibyte = 1 << 20

// Kilter is the policy of Kilter: one Pod at a time, and the mix learnt from
// the Pods that have arrived so far.
var Kilter Make = func(*Trace, *rand.Rand) Policy { return &kilter{} }

// kilter asks place, as the scheduler does.
type kilter struct {
	cluster  *place.Cluster
	requests map[ask]place.Request
	held     map[holdingKey][]string // the ids of Pods that are alike and in the same place
	ids      int
}

// holdingKey is what a Pod asks for and where it is.
type holdingKey struct {
	ask
	node int
	gpus string
}

// Learn tells the cluster of a Pod that has arrived.
func (k *kilter) Learn(s *State, p *Pod) {
	if k.cluster == nil {
		k.start(s)
	}
	must(k.cluster.Learn(k.request(p)))
}

// Place takes the best place there is.
func (k *kilter) Place(s *State, p *Pod) (Placement, bool) {
	at, _, ok := k.take(s, p)
	return at, ok
}

// Leave gives back what a Pod had.
func (k *kilter) Leave(p *Pod, at Placement) {
	key := holdingKey{p.ask(), at.Node.Index, fmt.Sprint(at.GPUs)}
	ids := k.held[key]
	must(k.cluster.Release(ids[len(ids)-1]))
	k.held[key] = ids[:len(ids)-1]
}

// take takes the best place there is, and says what it gained.
func (k *kilter) take(s *State, p *Pod) (Placement, float64, bool) {
	offers, err := k.cluster.Offers(k.request(p), 1)
	must(err)
	if len(offers) == 0 {
		return Placement{}, 0, false
	}
	offer := offers[0]
	k.ids++
	id := strconv.Itoa(k.ids)
	must(k.cluster.Commit(id, offer))
	index, err := strconv.Atoi(offer.Node)
	must(err)
	at := Placement{Node: s.Nodes[index]}
	for _, part := range offer.Parts {
		gpu, err := strconv.Atoi(string(part.Device))
		must(err)
		at.GPUs = append(at.GPUs, gpu)
	}
	key := holdingKey{p.ask(), index, fmt.Sprint(at.GPUs)}
	k.held[key] = append(k.held[key], id)
	return at, offer.Gain, true
}

// put takes a given place, which must be free.
func (k *kilter) put(p *Pod, at Placement) {
	r := k.request(p)
	k.ids++
	h := place.Holding{ID: strconv.Itoa(k.ids), Node: nodeName(at.Node.Index), Host: r.Host}
	for _, g := range at.GPUs {
		h.Parts = append(h.Parts, place.Part{Device: gpuName(g), Amount: place.Amount{ComputeMilli: p.GPUMilli}})
	}
	must(k.cluster.Hold(h))
	key := holdingKey{p.ask(), at.Node.Index, fmt.Sprint(at.GPUs)}
	k.held[key] = append(k.held[key], h.ID)
}

// start describes the cluster to place.
func (k *kilter) start(s *State) {
	k.cluster = place.NewCluster()
	k.requests = map[ask]place.Request{}
	k.held = map[holdingKey][]string{}
	for _, n := range s.Nodes {
		node := place.Node{
			Name: nodeName(n.Index),
			Host: place.Host{CPUMilli: n.CPUMilli, MemoryBytes: n.MemoryMiB * mebibyte, Pods: maxPods},
		}
		for g := range n.GPUs {
			node.Devices = append(node.Devices, place.Device{Device: device.Device{
				ID: gpuName(g), Index: g, Model: n.Model,
				NUMANode: device.UnknownNUMANode, Health: device.Health{State: device.Healthy},
			}})
		}
		must(k.cluster.SetNode(node))
	}
}

func nodeName(index int) string { return fmt.Sprintf("%06d", index) }
func gpuName(gpu int) device.ID { return device.ID(strconv.Itoa(gpu)) }

// request is what the Pod asks for, in place's words.
func (k *kilter) request(p *Pod) place.Request {
	key := p.ask()
	if known, ok := k.requests[key]; ok {
		return known
	}
	r := place.Request{Host: place.Host{CPUMilli: p.CPUMilli, MemoryBytes: p.MemoryMiB * mebibyte, Pods: 1}}
	if p.GPUs > 0 {
		group := place.Group{Count: p.GPUs}
		if p.GPUMilli < WholeGPU {
			group.Each.ComputeMilli = p.GPUMilli
		}
		if models := p.Models; models != "" {
			group.Selector = place.Selector{Name: models, Match: func(d device.Device) bool { return accepts(models, d.Model) }}
		}
		r.Groups = []place.Group{group}
	}
	k.requests[key] = r
	return r
}

// must is for what can not fail, since every request was read and checked and
// only one goroutine is at work.
func must(err error) {
	if err != nil {
		panic("trace: " + err.Error())
	}
}
