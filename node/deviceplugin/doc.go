// Package deviceplugin is the door through which devices reach every cluster:
// the kubelet's device plugin protocol, v1beta1.
//
// There is one plugin a resource. Each serves on a socket in the kubelet's
// folder and registers with the kubelet, which then opens a stream on which it
// is told the devices and their health. A plugin counts as registered while
// that stream is open; whenever it is not, and the kubelet is there, the plugin
// serves on a fresh socket and registers again. That one rule covers a kubelet
// that restarts, a folder that is wiped and a socket that is deleted.
//
// Every serving has a socket name of its own. The kubelet keeps its plugins by
// the path of their socket: one that registers again under a path that the
// kubelet still knows is refused, and by its clean-up of the refusal Kubernetes
// 1.37 loses sight of the first one too. With fresh names the new registration
// stands before the old one goes, and there is no moment without devices.
//
// A device is offered whole, under its own id, or as replicas, each under an id
// such as GPU-…::0. Package terms says which; Offers says what that comes to,
// given who holds what; and a replica is given as the device that it is of.
package deviceplugin
