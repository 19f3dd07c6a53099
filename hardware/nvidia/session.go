package nvidia

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// errSilent says that NVML did not return from a call.
var errSilent = errors.New("NVML does not answer")

// session is NVML between its start and its shutdown.
type session struct {
	lib          nvml.Interface
	host         fs.FS
	driver, cuda string // versions
	questions    questions

	mu    sync.Mutex
	facts map[string]facts // by UUID
}

// open starts NVML.
func open(load func() (nvml.Interface, error), host fs.FS, patience time.Duration) (*session, error) {
	lib, err := load()
	if err != nil {
		return nil, err
	}
	if ret := lib.Init(); ret != nvml.SUCCESS {
		return nil, explain(ret)
	}
	s := &session{
		lib:       lib,
		host:      host,
		questions: questions{patience: patience, out: map[string]chan struct{}{}},
		facts:     map[string]facts{},
	}
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
// it must not be taken.
func (s *session) close() {
	if s.questions.settle() {
		s.lib.Shutdown()
	}
}

// has reports whether the library has a function. Calling one that it does
// not have would end the process.
func (s *session) has(function string) bool {
	return s.lib.Extensions().LookupSymbol(function) == nil
}

// sighting is what one look at one GPU brought.
type sighting struct {
	index int
	facts facts
	err   error // the GPU did not answer, or not well; facts are then empty
}

// look lists the GPUs and asks each how it is.
func (s *session) look() ([]sighting, error) {
	var count int
	var ret nvml.Return
	if silent := s.questions.ask(map[string]func(){
		"list": func() { count, ret = s.lib.DeviceGetCount() },
	}); silent["list"] {
		return nil, errSilent
	}
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("list the GPUs: %w", ret)
	}

	sightings := make([]sighting, count)
	calls := map[string]func(){}
	for i := range sightings {
		calls[strconv.Itoa(i)] = func() { sightings[i] = s.lookAt(i) }
	}
	silent := s.questions.ask(calls)
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

func (s *session) lookAt(index int) sighting {
	failed := func(err error) sighting { return sighting{index: index, err: err} }
	gpu, ret := s.lib.DeviceGetHandleByIndex(index)
	if ret != nvml.SUCCESS {
		return failed(fmt.Errorf("open it: %w", ret))
	}
	uuid, ret := gpu.GetUUID()
	if ret != nvml.SUCCESS {
		return failed(fmt.Errorf("read the UUID: %w", ret))
	}
	facts, err := s.factsOf(gpu, uuid)
	if err != nil {
		return failed(err)
	}
	return sighting{index: index, facts: facts}
}

// factsOf returns what is known of a GPU, asking once.
func (s *session) factsOf(gpu nvml.Device, uuid string) (facts, error) {
	s.mu.Lock()
	known, ok := s.facts[uuid]
	s.mu.Unlock()
	if ok {
		return known, nil
	}
	read, err := s.readFacts(gpu, uuid)
	if err != nil {
		return facts{}, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.facts[uuid] = read
	return read, nil
}
