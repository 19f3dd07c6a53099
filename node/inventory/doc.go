// Package inventory is the list of the node's devices and their health, merged
// from what each hardware driver reports.
//
// A driver that fails is started again after a while; the devices that it
// reported last stay in the list, because a driver that can not look at the
// moment says nothing about its devices. A device belongs to the driver that
// reported it first; a second one that claims the same id is refused.
package inventory
