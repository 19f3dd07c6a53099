package conformance

import (
	"errors"
	"fmt"
	"runtime"
	"sync"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
)

func checkFault(s Subject) error {
	injector := s.Driver.(hardware.FaultInjector)
	const reason = "a fault of the conformance suite"

	err := whileWatching(s, func(w *watching, before []device.Device) error {
		sick := before[len(before)-1].ID
		for _, why := range []string{"first " + reason, reason} {
			if err := injector.Fail(sick, why); err != nil {
				return fmt.Errorf("Fail of %s: %w", sick, err)
			}
			now, err := w.until("the fault", isUnhealthy(sick, why))
			if err != nil {
				return err
			}
			if err := onlyHealthDiffers(before, now, sick); err != nil {
				return fmt.Errorf("after Fail of %s: %w", sick, err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}

	// The fault lasts until Heal, whoever watches.
	return whileWatching(s, func(w *watching, before []device.Device) error {
		sick := before[len(before)-1].ID
		if !isUnhealthy(sick, reason)(before) {
			return fmt.Errorf("the fault of %s was gone when the machine was watched again", sick)
		}
		for range 2 {
			if err := injector.Heal(sick); err != nil {
				return fmt.Errorf("Heal of %s: %w", sick, err)
			}
			now, err := w.until(fmt.Sprintf("%s as healthy", sick), isHealthy(sick))
			if err != nil {
				return err
			}
			if err := onlyHealthDiffers(before, now, sick); err != nil {
				return fmt.Errorf("after Heal of %s: %w", sick, err)
			}
		}
		return nil
	})
}

func checkFaultUnknown(s Subject) error {
	injector := s.Driver.(hardware.FaultInjector)
	return whileWatching(s, func(*watching, []device.Device) error {
		if err := namesUnknown(s, injector.Fail(stranger, "no reason"), stranger); err != nil {
			return fmt.Errorf("Fail: %w", err)
		}
		if err := namesUnknown(s, injector.Heal(stranger), stranger); err != nil {
			return fmt.Errorf("Heal: %w", err)
		}
		return nil
	})
}

// checkFaultRace lets every device fall sick and recover from goroutines of
// its own, and wants the end of it reported: a change may be skipped when a
// newer one has come, never the last.
func checkFaultRace(s Subject) error {
	injector := s.Driver.(hardware.FaultInjector)
	w := watch(s, runtime.Gosched)
	devices, err := w.first()
	if err != nil {
		return errors.Join(err, w.stop())
	}
	errs := make([]error, len(devices))
	var wg sync.WaitGroup
	for i, d := range devices {
		wg.Go(func() {
			for round := range 20 {
				errs[i] = errors.Join(errs[i], injector.Fail(d.ID, fmt.Sprintf("round %d", round)), injector.Heal(d.ID))
			}
			errs[i] = errors.Join(errs[i], injector.Fail(d.ID, "the end"))
		})
	}
	wg.Wait()
	_, err = w.until("the last fault of each device", func(now []device.Device) bool {
		for _, d := range devices {
			if !isUnhealthy(d.ID, "the end")(now) {
				return false
			}
		}
		return true
	})
	return errors.Join(append(errs, err, w.stop())...)
}

func isUnhealthy(id device.ID, reason string) func([]device.Device) bool {
	return func(devices []device.Device) bool {
		d, ok := find(devices, id)
		return ok && d.Health.State == device.Unhealthy && d.Health.Reason == reason
	}
}

func isHealthy(id device.ID) func([]device.Device) bool {
	return func(devices []device.Device) bool {
		d, ok := find(devices, id)
		return ok && d.Health.OK()
	}
}

// onlyHealthDiffers checks that nothing changed but the health of one device.
func onlyHealthDiffers(before, now []device.Device, id device.ID) error {
	masked := func(devices []device.Device) []device.Device {
		copied := clone(devices)
		for i := range copied {
			if copied[i].ID == id {
				copied[i].Health = device.Health{}
			}
		}
		device.Sort(copied)
		return copied
	}
	if a, b := masked(before), masked(now); !same(a, b) {
		return fmt.Errorf("more changed than the health of %s: %+v was before %+v", id, b, a)
	}
	return nil
}
