package config

import (
	"strconv"
	"strings"

	"github.com/kilter-dev/kilter/device"
)

// ReplicaID is the id under which the kubelet knows one replica of a device.
// It has the form that NVIDIA's device plugin gives it, so that the ids of
// running Pods stay valid when one takes the place of the other.
func ReplicaID(id device.ID, number int) string {
	return string(id) + "::" + strconv.Itoa(number)
}

// SplitID is the way back from an id of the kubelet's to the device and, if it
// is that of a replica, to the replica's number.
func SplitID(id string) (of device.ID, number int, isReplica bool) {
	at := strings.LastIndex(id, "::")
	if at < 0 {
		return device.ID(id), 0, false
	}
	number, err := strconv.Atoi(id[at+2:])
	if err != nil || number < 0 || ReplicaID(device.ID(id[:at]), number) != id {
		return device.ID(id), 0, false
	}
	return device.ID(id[:at]), number, true
}
