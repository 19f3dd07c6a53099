package terms

import (
	"errors"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/kube/config"
)

// plan says what each device is offered as. Absent is what the configuration
// names in vain; with any other mistake there is no plan. Devices that
// Kubernetes has no name for are left out: they can not be asked for, and
// should not be in the way of the others. It is a pure function.
func plan(c config.Config, devices []device.Device) (offers map[device.ID]config.Offer, absent string, err error) {
	var named []device.Device
	for _, d := range devices {
		if _, err := kube.ResourceName(d); err == nil {
			named = append(named, d)
		}
	}
	planned, err := c.Plan(named)
	var missing *config.AbsentError
	switch {
	case err == nil:
	case errors.As(err, &missing) && missing.Error() == err.Error():
		absent = missing.Error()
	default:
		return nil, "", err
	}
	offers = make(map[device.ID]config.Offer, len(planned.Offers))
	for _, offer := range planned.Offers {
		offers[offer.Device] = offer
	}
	return offers, absent, nil
}
