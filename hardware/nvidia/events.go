package nvidia

import (
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// event is something that NVML tells without being asked.
type event struct {
	uuid string // of the GPU; empty when NVML does not say
	xid  uint64 // 0 for what is only a reason to look again
}

// eventWait is how long one wait for an event takes, and so how long its end
// may take.
const eventWait = 500 // milliseconds

// eventTypes are the events that are asked for, as far as a GPU has them. All
// but the first only make the next look come at once.
const eventTypes = nvml.EventTypeXidCriticalError |
	nvml.EventTypeDoubleBitEccError |
	nvml.EventTypeGpuUnavailableError |
	nvml.EventTypeGpuRecoveryAction

// listener waits for the events of the GPUs that were added to it.
type listener struct {
	set    nvml.EventSet
	events chan<- event
	stop   chan struct{}
	done   chan struct{} // closed when the waiting has ended; nil before it starts

	mu   sync.Mutex
	gpus map[nvml.Device]string // UUIDs by handle
}

// newListener makes a listener that does not wait yet.
func newListener(lib nvml.Interface, events chan<- event) (*listener, nvml.Return) {
	set, ret := lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		return nil, ret
	}
	l := &listener{
		set:    set,
		events: events,
		stop:   make(chan struct{}),
		gpus:   map[nvml.Device]string{},
	}
	return l, nvml.SUCCESS
}

// start begins to wait, unless it has begun. GPUs had better be added before:
// NVML adds none in the middle of a wait.
func (l *listener) start() {
	if l.done == nil {
		l.done = make(chan struct{})
		go l.run()
	}
}

// add asks for the events of a GPU, once.
func (l *listener) add(gpu nvml.Device, uuid string) nvml.Return {
	l.mu.Lock()
	_, known := l.gpus[gpu]
	l.gpus[gpu] = uuid
	l.mu.Unlock()
	if known {
		return nvml.SUCCESS
	}
	types, ret := gpu.GetSupportedEventTypes()
	if ret != nvml.SUCCESS {
		return ret
	}
	if types &= eventTypes; types == 0 {
		return nvml.ERROR_NOT_SUPPORTED
	}
	return gpu.RegisterEvents(types, l.set)
}

func (l *listener) run() {
	defer close(l.done)
	for {
		data, ret := l.set.Wait(eventWait)
		var e event
		switch ret {
		case nvml.SUCCESS:
			// The handle is what the event is known by: a GPU that has just
			// been lost can not be asked for its UUID.
			l.mu.Lock()
			e.uuid = l.gpus[data.Device]
			l.mu.Unlock()
			if data.EventType == nvml.EventTypeXidCriticalError {
				e.xid = data.EventData
			}
		case nvml.ERROR_TIMEOUT:
			select {
			case <-l.stop:
				return
			default:
				continue
			}
		default:
			// A lost GPU makes every wait of its set fail. The next look
			// finds out which, and makes a new set without it.
			l.send(event{})
			return
		}
		if !l.send(e) {
			return
		}
	}
}

func (l *listener) send(e event) bool {
	select {
	case l.events <- e:
		return true
	case <-l.stop:
		return false
	}
}

// failed reports whether the waiting has ended by itself.
func (l *listener) failed() bool {
	if l.done == nil {
		return false
	}
	select {
	case <-l.done:
		return true
	default:
		return false
	}
}

// end stops the waiting, and reports whether it has ended in time.
func (l *listener) end(patience time.Duration) bool {
	close(l.stop)
	if l.done == nil {
		return true
	}
	select {
	case <-l.done:
		return true
	case <-time.After(patience):
		return false
	}
}
