// Package host is everything that a cluster borrows from the machine outside
// its data folder, and gives back: cgroups, mount namespaces, a bridge, and
// the empty folders that things are mounted on.
package host
