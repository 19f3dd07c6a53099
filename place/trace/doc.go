// Package trace replays a recorded cluster: machines with GPUs, and the Pods
// that asked for them. It follows the protocol of the paper "Beware of
// Fragmentation: Scheduling GPU-Sharing Workloads with Fragmentation Gradient
// Descent" (USENIX ATC 2023) so that a placement policy can be compared with
// the paper's own figures, and holds the policies of the paper.
//
// A run is a function of machines, Pods, policy and seed. The package reads
// from an io.Reader and knows no files.
package trace
