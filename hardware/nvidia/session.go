package nvidia

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errSilent says that NVML did not return from a call.
var errSilent = errors.New("NVML does not answer")

// session is NVML between its start and its shutdown.
type session struct {
	lib          nvml.Interface
	host         fs.FS
	logger       *slog.Logger
	driver, cuda string // versions
	bound        string // the GPUs that the driver served at the start
	questions    *questions
	book         *factbook
	events       chan event
	listener     *listener // nil when there are no events to be had
	deaf         bool      // which the log has said
}

// open starts NVML.
func open(load func() (nvml.Interface, error), host fs.FS, logger *slog.Logger, q *questions, book *factbook) (*session, error) {
	lib, err := load()
	if err != nil {
		return nil, err
	}
	served := bound(host)
	var started nvml.Return
	if q.ask(map[string]func(){"start": func() { started = lib.Init() }})["start"] {
		return nil, fmt.Errorf("start NVML: %w", errSilent)
	}
	if started != nvml.SUCCESS {
		return nil, explain(started)
	}
	s := &session{lib: lib, host: host, logger: logger, bound: served, questions: q, book: book, events: make(chan event, 64)}
	var ret nvml.Return
	if s.driver, ret = lib.SystemGetDriverVersion(); ret != nvml.SUCCESS {
		lib.Shutdown()
		return nil, fmt.Errorf("read the driver's version: %w", ret)
	}
	if cuda, ret := lib.SystemGetCudaDriverVersion(); ret == nvml.SUCCESS {
		s.cuda = fmt.Sprintf("%d.%d", cuda/1000, cuda%1000/10)
	}
	return s, nil
}

// close shuts NVML down, unless it is still busy with a call, from under which
// nothing must be taken.
func (s *session) close() {
	ended := s.listener == nil || s.listener.end(s.questions.patience)
	if !s.questions.settle() || !ended {
		return
	}
	if s.listener != nil {
		s.listener.set.Free()
	}
	s.lib.Shutdown()
}

// outdated reports whether the driver has got or given up a GPU since NVML was
// started. NVML lists what there was then.
func (s *session) outdated() bool {
	return bound(s.host) != s.bound && !s.questions.busy()
}

// has reports whether the library has a function. Calling one that it does
// not have would end the process.
func (s *session) has(function string) bool {
	return s.lib.Extensions().LookupSymbol(function) == nil
}

// sighting is what one look at one GPU brought.
type sighting struct {
	index  int
	facts  facts
	mig    mig
	vitals vitals
	err    error // the GPU did not answer, or not well; the rest is then empty
}

// look lists the GPUs and asks each how it is.
func (s *session) look() ([]sighting, error) {
	s.prepareEvents()
	var count int
	var ret nvml.Return
	if s.questions.ask(map[string]func(){"list": func() { count, ret = s.lib.DeviceGetCount() }})["list"] {
		return nil, errSilent
	}
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("list the GPUs: %w", ret)
	}

	sightings := make([]sighting, count)
	calls := map[string]func(){}
	events := s.listener // for calls that return when it has been replaced
	for i := range sightings {
		calls[strconv.Itoa(i)] = func() { sightings[i] = s.lookAt(i, events) }
	}
	silent := s.questions.ask(calls)
	if s.listener != nil {
		s.listener.start()
	}
	// A call that is still out may write into sightings at any time.
	answered := make([]sighting, count)
	for i := range answered {
		if silent[strconv.Itoa(i)] {
			answered[i] = sighting{index: i, err: errSilent}
		} else {
			answered[i] = sightings[i]
		}
	}
	return answered, nil
}

// prepareEvents sees to it that there is a set of events to add GPUs to. One
// that failed is replaced, but not while a call is out that may still use it.
func (s *session) prepareEvents() {
	if s.listener != nil {
		if !s.listener.failed() || s.questions.busy() {
			return
		}
		s.listener.set.Free()
	}
	var ret nvml.Return
	if s.listener, ret = newListener(s.lib, s.events); ret != nvml.SUCCESS && !s.deaf {
		s.deaf = true
		s.logger.Warn("NVML gives no events; errors are noticed with the next look at a GPU", "error", ret)
	}
}

func (s *session) lookAt(index int, events *listener) sighting {
	failed := func(err error) sighting { return sighting{index: index, err: err} }
	gpu, ret := s.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return failed(fmt.Errorf("open it: %w", ret))
	}
	uuid, ret := gpu.GetUUID()
	if ret != nvml.SUCCESS {
		return failed(fmt.Errorf("read the UUID: %w", ret))
	}
	vitals := s.readVitals(gpu)
	facts, err := s.book.get(uuid, vitals.fabric.state, func() (facts, error) { return s.readFacts(gpu, uuid) })
	if err != nil {
		return failed(err)
	}
	mig, err := s.readMIG(gpu, facts)
	if err != nil {
		return failed(err)
	}
	if events != nil {
		if ret := events.add(gpu, uuid); ret != nvml.SUCCESS {
			s.logger.Warn("NVML gives no events of this GPU; errors are noticed with the next look", "gpu", uuid, "error", ret)
		}
	}
	return sighting{index: index, facts: facts, mig: mig, vitals: vitals}
}
