package node

import (
	"context"
	"slices"
	"strings"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/node/deviceplugin"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/local"
)

// desk answers the people on the node.
type desk struct {
	node      string
	inventory *inventory.Inventory
	ledger    *ledger.Ledger
	door      *deviceplugin.Door
}

// Report says how each device stands, as of now.
func (d *desk) Report(ctx context.Context) (local.Report, error) {
	// When the kubelet does not answer, what is known is still worth telling;
	// the ledger has logged it.
	_ = d.ledger.Refresh(ctx)
	report := local.Report{Node: d.node, Devices: []local.Device{}}
	for _, offer := range d.door.Offers() {
		report.Devices = append(report.Devices, reported(offer))
	}
	return report, nil
}

func reported(offer deviceplugin.Offer) local.Device {
	reported := local.Device{
		Device:   offer.Device,
		Resource: offer.Resource,
		Door:     local.DoorDevicePlugin,
		Offered:  offer.Offered,
		Note:     offer.Note,
	}
	if offer.Shared {
		reported.Replicas = len(offer.IDs)
	}
	var keepers []string
	for _, hold := range offer.Holds {
		if holder := local.Holder(hold.Holder); !slices.Contains(reported.Holders, holder) {
			// A container may have several replicas of it.
			reported.Holders = append(reported.Holders, holder)
		}
		if keeper := hold.Holder.String(); !hold.Orphaned && !slices.Contains(keepers, keeper) {
			keepers = append(keepers, keeper)
		}
	}
	if !offer.Offered && len(keepers) > 0 {
		verb := " keeps it"
		if len(keepers) > 1 {
			verb = " keep it"
		}
		reported.Note += "; " + strings.Join(keepers, " and ") + verb
	}
	return reported
}

// Health says whether every resource is registered with the kubelet.
func (d *desk) Health() local.Health {
	snapshot := d.inventory.Snapshot()
	var waiting []string
	if !snapshot.Complete {
		waiting = append(waiting, "not all hardware drivers have reported yet")
	}
	for _, offer := range d.door.Offers() {
		if offer.Resource != "" && !d.door.Serves(offer.Resource) {
			waiting = append(waiting, offer.Resource+": it is new and being registered")
			break
		}
	}
	waiting = append(waiting, d.door.Waiting()...)
	return local.Health{Ready: len(waiting) == 0, Waiting: waiting}
}

// Fail makes a simulated device sick.
func (d *desk) Fail(text, reason string) (device.ID, error) {
	return d.inject(text, func(f hardware.FaultInjector, id device.ID) error { return f.Fail(id, reason) })
}

// Heal makes a simulated device well again.
func (d *desk) Heal(text string) (device.ID, error) {
	return d.inject(text, func(f hardware.FaultInjector, id device.ID) error { return f.Heal(id) })
}

func (d *desk) inject(text string, do func(hardware.FaultInjector, device.ID) error) (device.ID, error) {
	injectors := make(map[device.ID]hardware.FaultInjector)
	var simulated []device.Device
	for _, each := range d.inventory.Snapshot().Devices {
		driver, _ := d.inventory.Driver(each.ID)
		if injector, can := driver.(hardware.FaultInjector); can {
			injectors[each.ID] = injector
			simulated = append(simulated, each)
		}
	}
	id, err := local.Resolve(simulated, text, "simulated")
	if err != nil {
		return "", err
	}
	return id, do(injectors[id], id)
}
