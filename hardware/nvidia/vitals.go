package nvidia

import (
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/kilter-dev/kilter/hardware/nvidia/health"
)

// vitals are what NVML says about how well a GPU is.
type vitals struct {
	recovery     health.Recovery
	resetDue     bool // the recovery is one for which nobody may hold the GPU open
	remapPending bool // rows of memory are replaced with the next reset
	remapFailed  bool // there was no row left to replace one with
	uncorrected  uint64
	fabric       fabric
	probe        error // why the GPU did not do what it was asked to
}

func (s *session) readVitals(gpu nvml.Device) vitals {
	var v vitals
	v.recovery, v.resetDue = readRecovery(gpu)
	if s.has("nvmlDeviceGetRemappedRows") {
		if _, _, pending, failed, ret := gpu.GetRemappedRows(); ret == nvml.SUCCESS {
			v.remapPending, v.remapFailed = pending, failed
		}
	}
	if errors, ret := gpu.GetTotalEccErrors(nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC); ret == nvml.SUCCESS {
		v.uncorrected = errors
	}
	v.fabric = s.readFabric(gpu)
	v.probe = probe(gpu)
	return v
}

// probe asks for what the GPU itself has to look up, rather than the driver.
func probe(gpu nvml.Device) error {
	if _, ret := gpu.GetMemoryInfo(); ret != nvml.SUCCESS {
		return fmt.Errorf("probe the memory: %w", ret)
	}
	if _, ret := gpu.GetTemperature(nvml.TEMPERATURE_GPU); ret != nvml.SUCCESS && ret != nvml.ERROR_NOT_SUPPORTED {
		return fmt.Errorf("probe the temperature: %w", ret)
	}
	return nil
}

// recoveries are NVML's recovery actions in words that follow "it needs".
var recoveries = map[nvml.DeviceGpuRecoveryAction]string{
	nvml.GPU_RECOVERY_ACTION_NONE:                "",
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:           "a reset",
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:         "a restart of the node",
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:           "an end of its peer-to-peer traffic",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET:     "an end of its peer-to-peer traffic and a reset",
	nvml.GPU_RECOVERY_ACTION_RECOVER_IMEX_DOMAIN: "a recovery of its IMEX domain",
	nvml.GPU_RECOVERY_ACTION_BUS_RESET:           "a reset of its PCIe bus",
	nvml.GPU_RECOVERY_ACTION_SYSTEM_REBOOT:       "a restart of the system",
}

// readRecovery asks what the GPU needs. Drivers before the recovery action had
// two yes-or-no values for it; those before them do not say.
func readRecovery(gpu nvml.Device) (recovery health.Recovery, resetDue bool) {
	if action, ok := field(gpu, nvml.FI_DEV_GET_GPU_RECOVERY_ACTION, 0); ok {
		a := nvml.DeviceGpuRecoveryAction(action)
		due, known := recoveries[a]
		if !known {
			due = fmt.Sprintf("recovery action %d", action)
		}
		switch a {
		case nvml.GPU_RECOVERY_ACTION_GPU_RESET, nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET, nvml.GPU_RECOVERY_ACTION_BUS_RESET:
			resetDue = true
		}
		return health.Recovery{Known: true, Due: due}, resetDue
	}
	reset, ok := field(gpu, nvml.FI_DEV_RESET_STATUS, 0)
	drain, both := field(gpu, nvml.FI_DEV_DRAIN_AND_RESET_STATUS, 0)
	switch {
	case ok && reset != 0:
		return health.Recovery{Known: true, Due: recoveries[nvml.GPU_RECOVERY_ACTION_GPU_RESET]}, true
	case both && drain != 0:
		return health.Recovery{Known: true, Due: recoveries[nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET]}, true
	default:
		return health.Recovery{Known: ok && both}, false
	}
}

// look puts the vitals into the terms of the state machine. NVML's judgement
// takes pending remaps into account; without it they are a reset that is due.
func (v vitals) look(before vitals) health.Look {
	l := health.Look{Recovery: v.recovery, Probed: v.probe == nil}
	if v.remapPending && !v.recovery.Known {
		l.Recovery = health.Recovery{Known: true, Due: "a reset, with which rows of its memory are replaced"}
	}
	if v.remapFailed {
		l.Signs = append(l.Signs, health.Sign{Weight: health.Fault, Reason: "rows of its memory can not be replaced any more; the card has to be exchanged"})
	}
	if sign, bad := v.fabric.sign(); bad {
		l.Signs = append(l.Signs, sign)
	}
	if v.probe != nil {
		l.Signs = append(l.Signs, health.Sign{Weight: weightOf(v.probe), Reason: v.probe.Error()})
	}
	if v.uncorrected > before.uncorrected {
		l.Happened = append(l.Happened, "memory errors that could not be corrected")
	}
	return l
}

// weightOf says how much the failure of a call means. An answer that does not
// come, or is no answer, may be a moment's trouble.
func weightOf(err error) health.Weight {
	if errors.Is(err, nvml.ERROR_GPU_IS_LOST) {
		return health.Fault
	}
	for _, passing := range []error{errSilent, errMIG, nvml.ERROR_UNKNOWN, nvml.ERROR_TIMEOUT, nvml.ERROR_IN_USE} {
		if errors.Is(err, passing) {
			return health.Doubt
		}
	}
	return health.Fault
}
