// Package place chooses devices. It is pure: it knows no Kubernetes, no file,
// no clock and no vendor, and the same input always gives the same answer.
package place
