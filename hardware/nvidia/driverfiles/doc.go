// Package driverfiles decides which files of the host a container needs in
// order to use an NVIDIA GPU: the user-space half of the driver, whose version
// has to equal that of the kernel's half and which therefore can not be part
// of an image.
//
// The files appear under /usr/local/nvidia in the container. NVIDIA's own
// images have /usr/local/nvidia/bin in their PATH and /usr/local/nvidia/lib64
// in their LD_LIBRARY_PATH. Any other image has to name the second in its
// LD_LIBRARY_PATH or in /etc/ld.so.conf.d: setting the variable for it would
// replace the image's own value.
//
// The decision is made from listings alone (an fs.FS of the host's root), so
// that it can be tried on recorded machines.
package driverfiles
