// Package ledger is the node's one truth of who holds which device.
//
// The device plugin protocol says when a device is given, but neither to whom
// nor when it comes back. Both are learnt from the kubelet's PodResources API.
// That is not enough on its own: a kubelet that restarts without its checkpoint
// has forgotten what running Pods hold and would give it to somebody else.
// Holds are therefore sticky over a restart of the kubelet. One ends when
//
//   - the run of the kubelet that listed it lists it no more; or
//   - a later run does not list it, and the API server says that this very Pod
//     (by uid, since names are used again) is deleted or has ended; or
//   - the kubelet lists the device with another container; or
//   - the kubelet lists the container with other devices.
//
// When the API server does not answer, the hold stays. A hold that a restarted
// kubelet does not list although its Pod lives is orphaned: the device must
// not be given to anybody else until the Pod has ended.
//
// What is held is named as the kubelet names it, so a replica of a shared
// device is held by itself: two Pods may hold two replicas of one device.
//
// Decide is all of that as a pure function; Ledger gathers what it needs and
// keeps the outcome in a file, so that it also holds over a restart of the
// agent. Nothing survives a reboot, because no container does.
package ledger
