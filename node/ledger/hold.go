package ledger

import (
	"cmp"
	"slices"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube/config"
)

// Holder is the container that has a device.
type Holder struct {
	Namespace string `json:"namespace"`
	Pod       string `json:"pod"`
	// UID tells Pods of the same name apart. It is empty until the API server
	// has said it.
	UID       string `json:"uid,omitempty"`
	Container string `json:"container"`
}

// String is the holder as people name it: namespace/pod/container.
func (h Holder) String() string { return h.Namespace + "/" + h.Pod + "/" + h.Container }

func (h Holder) podName() PodName { return PodName{h.Namespace, h.Pod} }

// PodName is how the kubelet names Pods.
type PodName struct {
	Namespace, Name string
}

// Hold says that a container has a device, or a replica of one.
type Hold struct {
	// Device is the id by which the kubelet knows it: the device's own, or
	// that of a replica. Of is the device itself.
	Device   device.ID `json:"device"`
	Resource string    `json:"resource"`
	Holder   Holder    `json:"holder"`
	// Since is when the hold was first seen.
	Since time.Time `json:"since"`

	// Run is the run of the kubelet that listed the hold last. That one is
	// believed when it lists it no more; one that has restarted since may just
	// have lost its memory.
	Run string `json:"run,omitempty"`

	// MissingSince is when the kubelet stopped listing the hold; zero while
	// it does.
	MissingSince time.Time `json:"-"`
	// Orphaned holds are those that the kubelet has forgotten although the
	// Pod lives. Their devices must not be given to anybody else.
	Orphaned bool `json:"orphaned,omitempty"`

	// verified says that the uid was looked up by this process. One that was
	// read from the file may be of a Pod before the present one.
	verified bool
	// podListed says whether the kubelet lists the Pod at all.
	podListed bool
}

// Of is the device that is held, whole or as a replica.
func (h Hold) Of() device.ID {
	id, _, _ := config.SplitID(string(h.Device))
	return id
}

// key tells holds apart.
type key struct {
	device    device.ID
	pod       PodName
	container string
}

func (h Hold) key() key { return key{h.Device, h.Holder.podName(), h.Holder.Container} }

func sortHolds(holds []Hold) {
	slices.SortFunc(holds, func(a, b Hold) int {
		return cmp.Or(
			cmp.Compare(a.Device, b.Device),
			cmp.Compare(a.Holder.Namespace, b.Holder.Namespace),
			cmp.Compare(a.Holder.Pod, b.Holder.Pod),
			cmp.Compare(a.Holder.Container, b.Holder.Container),
		)
	})
}

// Container is a container as the kubelet lists it. Containers without devices
// are listed too: that a Pod is there says something.
type Container struct {
	Namespace, Pod, Container string
	// Devices are by the name of their resource.
	Devices map[string][]device.ID
}

func (c Container) podName() PodName { return PodName{c.Namespace, c.Pod} }
