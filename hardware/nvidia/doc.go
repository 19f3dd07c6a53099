// Package nvidia is the driver for NVIDIA's GPUs. It learns about them from
// NVML, the library that comes with NVIDIA's driver, and from sysfs.
//
// # Finding and watching
//
// NVML is loaded from the host by absolute path. Where there is none, or it
// does not work, the machine has no GPUs for now: Watch reports an empty list,
// says why in the log once, and keeps trying. GPUs that were seen before stay
// in the list as unhealthy while NVML is silent about them, and leave it when
// they have left the PCI bus.
//
// Every few seconds the GPUs are listed and each is asked how it is, all at
// the same time and with a deadline, because a GPU in trouble may keep NVML
// from ever answering, and must not hide the others. What does not change
// about a GPU, its NVLink ports above all, is asked for once and kept.
//
// # Health
//
// A GPU is judged by its XID errors, by whether it answers, by NVML's recovery
// action, by the state of its memory and of its NVLink fabric, and by a small
// probe. Package health says how it falls and how it returns. A GPU that has
// to be reset must not be held open by anybody, so NVML is closed between two
// looks for as long as one of them waits for that.
//
// # MIG
//
// A partitioned GPU is offered by the strategies of NVIDIA's device plugin and
// under the same names. Its slices share its health: an error of the GPU
// concerns them all.
//
// # What a container gets
//
// The nodes of the granted GPUs, for MIG those that guard its instances, the
// driver's control nodes, and the driver's files under /usr/local/nvidia
// (package driverfiles says which, and what an image needs in order to find
// them there). No toolkit is needed on the host. The node nvidia-modeset is
// not given: it is for displays.
package nvidia
