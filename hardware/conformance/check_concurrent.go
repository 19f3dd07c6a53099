package conformance

import (
	"errors"
	"fmt"
	"sync"

	"github.com/kilter-dev/kilter/device"
)

// checkConcurrent uses the driver from many goroutines at once. It is the
// race detector that makes it strict.
func checkConcurrent(s Subject) error {
	return whileWatching(s, func(_ *watching, devices []device.Device) error {
		const callers, rounds = 8, 10
		errs := make([]error, callers)
		var wg sync.WaitGroup
		for i := range callers {
			wg.Go(func() {
				d := devices[i%len(devices)]
				for round := range rounds {
					errs[i] = errors.Join(errs[i], useOnce(s, fmt.Sprintf("caller-%d-%d", i, round), d.ID))
				}
			})
		}
		// Two callers with one grant, as when the kubelet asks again because
		// the first answer was slow.
		both := make([]error, 2)
		for i := range both {
			wg.Go(func() { _, both[i] = prepare(s, "same", devices[0].ID) })
		}
		wg.Wait()
		return errors.Join(append(errs, both...)...)
	})
}

func useOnce(s Subject, grantID string, id device.ID) error {
	if name := s.Driver.Name(); name == "" {
		return errors.New("the driver lost its name")
	}
	if _, err := prepare(s, grantID, id); err != nil {
		return err
	}
	return unprepare(s, grantID)
}
