package nvidia

import (
	"encoding/binary"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/device"
)

// port is one active NVLink of a GPU and what it leads to.
type port struct {
	toSwitch bool
	peer     string // PCI address of the other GPU
	mbps     int64  // in one direction, 10^6 bytes a second
}

// readPorts lists the active NVLinks of a GPU.
func (s *session) readPorts(gpu nvml.Device) []port {
	var ports []port
	for link := range nvml.NVLINK_MAX_LINKS {
		state, ret := gpu.GetNvLinkState(link)
		if ret == nvml.ERROR_INVALID_ARGUMENT || ret == nvml.ERROR_NOT_SUPPORTED {
			break // no such link, nor any after it
		}
		if ret != nvml.SUCCESS || state != nvml.FEATURE_ENABLED {
			continue
		}
		p := port{mbps: linkSpeed(gpu, link)}
		if s.has("nvmlDeviceGetNvLinkRemoteDeviceType") {
			kind, ret := gpu.GetNvLinkRemoteDeviceType(link)
			p.toSwitch = ret == nvml.SUCCESS && kind == nvml.NVLINK_DEVICE_TYPE_SWITCH
		}
		if !p.toSwitch {
			if info, ret := gpu.GetNvLinkRemotePciInfo(link); ret == nvml.SUCCESS {
				p.peer = addressOf(info)
			}
		}
		ports = append(ports, p)
	}
	return ports
}

// linkSpeeds are the rated speeds of one link by NVLink's version, for
// libraries that do not tell the actual one.
var linkSpeeds = map[uint32]int64{1: 20_000, 2: 25_000, 3: 25_000, 4: 25_000, 5: 50_000}

func linkSpeed(gpu nvml.Device, link int) int64 {
	if speed, ok := field(gpu, nvml.FI_DEV_NVLINK_GET_SPEED, link); ok && speed > 0 {
		return int64(speed)
	}
	if version, ret := gpu.GetNvLinkVersion(link); ret == nvml.SUCCESS {
		return linkSpeeds[version]
	}
	return 0
}

// field reads one of NVML's numbered values.
func field(gpu nvml.Device, id, scope int) (uint64, bool) {
	values := []nvml.FieldValue{{FieldId: uint32(id), ScopeId: uint32(scope)}}
	if ret := gpu.GetFieldValues(values); ret != nvml.SUCCESS {
		return 0, false
	}
	v := values[0]
	if nvml.Return(v.NvmlReturn) != nvml.SUCCESS {
		return 0, false
	}
	switch nvml.ValueType(v.ValueType) {
	case nvml.VALUE_TYPE_UNSIGNED_INT, nvml.VALUE_TYPE_SIGNED_INT:
		return uint64(binary.NativeEndian.Uint32(v.Value[:])), true
	case nvml.VALUE_TYPE_UNSIGNED_LONG, nvml.VALUE_TYPE_UNSIGNED_LONG_LONG, nvml.VALUE_TYPE_SIGNED_LONG_LONG:
		return binary.NativeEndian.Uint64(v.Value[:]), true
	case nvml.VALUE_TYPE_UNSIGNED_SHORT:
		return uint64(binary.NativeEndian.Uint16(v.Value[:])), true
	default:
		return 0, false
	}
}

// linksOf says how each GPU is linked with the others. It is computed for a
// pair at once, so that both ends tell the same.
func linksOf(gpus []gpu) map[string][]device.Link {
	links := map[string][]device.Link{}
	for i, a := range gpus {
		for _, b := range gpus[i+1:] {
			for _, l := range pairLinks(a, b) {
				l.Peer = b.id()
				links[a.uuid] = append(links[a.uuid], l)
				l.Peer = a.id()
				links[b.uuid] = append(links[b.uuid], l)
			}
		}
	}
	return links
}

// pairLinks returns the links between two GPUs, without the peer. Over
// switches every GPU reaches every other of its clique with all its ports; the
// end with fewer ports is the limit.
func pairLinks(a, b gpu) []device.Link {
	var links []device.Link
	direct := func(from, to gpu) (device.Link, bool) {
		return sum(device.NVLink, from.ports, func(p port) bool {
			return !p.toSwitch && p.peer != "" && p.peer == to.place.address
		})
	}
	if there, ok := direct(a, b); ok {
		if back, ok := direct(b, a); ok {
			links = append(links, lesser(there, back))
		}
	}
	switched := func(g gpu) (device.Link, bool) {
		return sum(device.NVSwitch, g.ports, func(p port) bool { return p.toSwitch })
	}
	if there, ok := switched(a); ok && a.vitals.fabric.clique == b.vitals.fabric.clique {
		if back, ok := switched(b); ok {
			links = append(links, lesser(there, back))
		}
	}
	return links
}

func sum(kind device.LinkKind, ports []port, counts func(port) bool) (device.Link, bool) {
	l := device.Link{Kind: kind}
	for _, p := range ports {
		if counts(p) {
			l.Lanes++
			l.BandwidthMBps += p.mbps
		}
	}
	return l, l.Lanes > 0
}

func lesser(a, b device.Link) device.Link {
	a.Lanes = min(a.Lanes, b.Lanes)
	a.BandwidthMBps = min(a.BandwidthMBps, b.BandwidthMBps)
	return a
}
