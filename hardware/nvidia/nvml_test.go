package nvidia

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// complete replaces what can change by functions that look at the machine.
func (m *machine) complete() {
	m.server.InitFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.initFail == nvml.SUCCESS {
			if m.open == 0 {
				m.listed = slices.Clone(m.gpus)
			}
			m.open++
		}
		return m.initFail
	}
	m.server.ShutdownFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.open--
		return nvml.SUCCESS
	}
	m.server.EventSetCreateFunc = m.newSet
	m.server.LookupSymbolFunc = func(symbol string) error {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.without[symbol] {
			return fmt.Errorf("undefined symbol: %s", symbol)
		}
		return nil
	}
	m.server.DeviceGetCountFunc = func() (int, nvml.Return) {
		select {
		case m.looks <- struct{}{}:
		default:
		}
		m.mu.Lock()
		defer m.mu.Unlock()
		return len(m.listed), m.initFail
	}
	m.server.DeviceGetHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if i >= len(m.listed) {
			return nil, nvml.ERROR_INVALID_ARGUMENT
		}
		if m.listed[i].lost {
			return nil, nvml.ERROR_GPU_IS_LOST
		}
		return m.listed[i].Device, nvml.SUCCESS
	}
}

func (m *machine) completeGPU(g *fakeGPU) {
	g.GetUUIDFunc = func() (string, nvml.Return) {
		m.mu.Lock()
		stuck := g.stuck
		m.mu.Unlock()
		if stuck != nil {
			<-stuck
		}
		return g.UUID, nvml.SUCCESS
	}
	g.GetPciInfoFunc = func() (nvml.PciInfo, nvml.Return) { return pciInfo(g.address), nvml.SUCCESS }
	g.GetNumGpuCoresFunc = func() (int, nvml.Return) { return g.cores, nvml.SUCCESS }
	g.GetNvLinkStateFunc = func(link int) (nvml.EnableState, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		g.reads["links"]++
		if link >= len(g.ports) {
			return 0, nvml.ERROR_INVALID_ARGUMENT
		}
		return nvml.FEATURE_ENABLED, nvml.SUCCESS
	}
	g.GetNvLinkRemoteDeviceTypeFunc = func(link int) (nvml.IntNvLinkDeviceType, nvml.Return) {
		if g.ports[link].toSwitch {
			return nvml.NVLINK_DEVICE_TYPE_SWITCH, nvml.SUCCESS
		}
		return nvml.NVLINK_DEVICE_TYPE_GPU, nvml.SUCCESS
	}
	g.GetNvLinkRemotePciInfoFunc = func(link int) (nvml.PciInfo, nvml.Return) {
		return pciInfo(g.ports[link].peer), nvml.SUCCESS
	}
	g.GetNvLinkVersionFunc = func(int) (uint32, nvml.Return) { return 4, nvml.SUCCESS }
	g.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return 0, 0, g.remapPending, g.remapFailed, nvml.SUCCESS
	}
	g.GetTotalEccErrorsFunc = func(nvml.MemoryErrorType, nvml.EccCounterType) (uint64, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return g.uncorrected, nvml.SUCCESS
	}
	g.GetTemperatureFunc = func(nvml.TemperatureSensors) (uint32, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return 40, g.temperature
	}
	g.GetGpuFabricInfo_v4Func = func() (nvml.GpuFabricInfo_v4, nvml.Return) {
		m.mu.Lock()
		defer m.mu.Unlock()
		return g.fabric, nvml.SUCCESS
	}
	g.GetSupportedEventTypesFunc = func() (uint64, nvml.Return) { return nvml.EventTypeAll, nvml.SUCCESS }
	g.RegisterEventsFunc = func(types uint64, set nvml.EventSet) nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		if types&nvml.EventTypeXidCriticalError == 0 || set.(*fakeSet).freed {
			return nvml.ERROR_INVALID_ARGUMENT
		}
		if len(set.(*fakeSet).WaitCalls()) > 0 {
			g.reads["late registrations"]++
		}
		set.(*fakeSet).gpus[g.Device] = true
		return nvml.SUCCESS
	}
	g.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		for i := range values {
			m.fieldValue(g, &values[i])
		}
		return nvml.SUCCESS
	}
}

func (m *machine) fieldValue(g *fakeGPU, v *nvml.FieldValue) {
	m.mu.Lock()
	defer m.mu.Unlock()
	number, ret := uint64(0), nvml.ERROR_NOT_SUPPORTED
	switch v.FieldId {
	case nvml.FI_DEV_NVLINK_GET_SPEED:
		number, ret = uint64(g.ports[v.ScopeId].mbps), nvml.SUCCESS
	case nvml.FI_DEV_GET_GPU_RECOVERY_ACTION:
		number, ret = uint64(g.recovery), nvml.SUCCESS
	}
	if m.noFields[v.FieldId] {
		ret = nvml.ERROR_NOT_SUPPORTED
	}
	v.NvmlReturn = uint32(ret)
	v.ValueType = uint32(nvml.VALUE_TYPE_UNSIGNED_LONG_LONG)
	binary.NativeEndian.PutUint64(v.Value[:], number)
}

func (m *machine) newSet() (nvml.EventSet, nvml.Return) {
	s := &fakeSet{
		events: make(chan nvml.EventData, 100),
		failed: make(chan struct{}),
		gpus:   map[nvml.Device]bool{},
	}
	s.WaitFunc = func(milliseconds uint32) (nvml.EventData, nvml.Return) {
		select {
		case e := <-s.events:
			return e, nvml.SUCCESS
		case <-s.failed:
			return nvml.EventData{}, nvml.ERROR_GPU_IS_LOST
		case <-time.After(time.Duration(milliseconds) * time.Millisecond / 100): // tests are in a hurry
			return nvml.EventData{}, nvml.ERROR_TIMEOUT
		}
	}
	s.FreeFunc = func() nvml.Return {
		m.mu.Lock()
		defer m.mu.Unlock()
		s.freed = true
		return nvml.SUCCESS
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets = append(m.sets, s)
	return s, nvml.SUCCESS
}

// raise sends an event of a GPU to whoever asked for it.
func (m *machine) raise(i int, xid uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.sets {
		if gpu := m.gpus[i].Device; s.gpus[gpu] && !s.freed {
			s.events <- nvml.EventData{Device: gpu, EventType: nvml.EventTypeXidCriticalError, EventData: xid}
		}
	}
}

func pciInfo(address string) nvml.PciInfo {
	var info nvml.PciInfo
	if address != "" {
		for i, c := range []byte(strings.ToUpper("0000" + address)) {
			info.BusId[i] = int8(c)
		}
	}
	return info
}
