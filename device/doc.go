// Package device is Kilter's vocabulary: the plain types in which every room
// speaks of hardware. It imports the standard library only; vendors' and
// Kubernetes' types are converted to and from these at the edges.
//
// A Device is something a container can be given. A Grant says which devices
// somebody was given, and Edits say what that means for the container: device
// nodes, mounts and environment.
package device
