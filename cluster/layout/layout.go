// Package layout says where a one-machine cluster keeps its things: its files
// under one data folder, and its addresses in one subnet. It decides names
// only and touches nothing.
package layout

import (
	"fmt"
	"net/netip"
	"path/filepath"
)

const (
	// DefaultData is the data folder unless the user names another.
	DefaultData = "/var/lib/kilter-cluster"
	// DataVariable is the environment variable that names another.
	DataVariable = "KILTER_DATA"
	// DefaultSubnet holds every address of the cluster unless the user names
	// another.
	DefaultSubnet = "10.197.0.0/16"
	// Bridge is the network interface that carries the subnet.
	Bridge = "kilter0"
	// Cgroup is the folder that is made at the top of each cgroup hierarchy.
	Cgroup = "kilter"
	// APIPort is the port of the API server: the one that the Service
	// "kubernetes" always has, so that Pods reach it at its Service address
	// although no proxy runs.
	APIPort = 443
	// KubeletPort is the kubelets' port, each on its node's own address.
	KubeletPort = 10250
)

// Files are the places below one data folder.
type Files struct{ Data string }

func (f Files) path(parts ...string) string {
	return filepath.Join(append([]string{f.Data}, parts...)...)
}

// State is the file that says what the cluster is made of; a folder that has
// it is a cluster's data folder.
func (f Files) State() string { return f.path("cluster.json") }

// Lock is held by the supervisor for as long as it lives.
func (f Files) Lock() string { return f.path("supervisor.lock") }

// Status is where the supervisor says how its processes are.
func (f Files) Status() string { return f.path("status.json") }

// Kubeconfig is the administrator's.
func (f Files) Kubeconfig() string { return f.path("kubeconfig") }

// PKI is the folder of keys and certificates.
func (f Files) PKI(name string) string { return f.path("pki", name) }

// Config is a configuration file of a component.
func (f Files) Config(name string) string { return f.path("config", name) }

// Log is the log of a process.
func (f Files) Log(process string) string { return f.path("logs", process+".log") }

// Etcd is the folder of the cluster's database.
func (f Files) Etcd() string { return f.path("etcd") }

// Run is for sockets and pinned namespaces, which do not outlive a reboot.
func (f Files) Run(name string) string { return f.path("run", name) }

// Node is a folder that belongs to one node.
func (f Files) Node(node, name string) string { return f.path("nodes", node, name) }

// MountNamespace is where the mount namespace of a node is pinned.
func (f Files) MountNamespace(node string) string { return f.Run(node + ".mnt") }

// Containerd is the socket of a node's container runtime. Unix socket paths
// are short, so it stands near the top.
func (f Files) Containerd(node string) string { return f.Run(node + ".sock") }

// Addresses are the addresses in one subnet.
type Addresses struct{ Subnet netip.Prefix }

// Check says whether the subnet has room for the cluster's addresses.
func (a Addresses) Check() error {
	if !a.Subnet.IsValid() || !a.Subnet.Addr().Is4() || a.Subnet.Bits() != 16 || a.Subnet.Masked() != a.Subnet {
		return fmt.Errorf("the subnet %q is not an IPv4 network of 16 bits such as %s", a.Subnet, DefaultSubnet)
	}
	return nil
}

func (a Addresses) at(third, fourth byte) netip.Addr {
	b := a.Subnet.Addr().As4()
	return netip.AddrFrom4([4]byte{b[0], b[1], third, fourth})
}

// API is the API server's address: the first of the Services' network, which
// is the one that the Service "kubernetes" gets.
func (a Addresses) API() netip.Addr { return a.at(0, 1) }

// Services is the network of Service addresses.
func (a Addresses) Services() netip.Prefix { return netip.PrefixFrom(a.at(0, 0), 24) }

// Node is the address of the i-th node.
func (a Addresses) Node(i int) netip.Addr { return a.at(1, byte(i+1)) }

// Pods is the part of the subnet that the Pods of the i-th node live in.
func (a Addresses) Pods(i int) netip.Prefix { return netip.PrefixFrom(a.at(byte(16+i), 0), 24) }

// MaxNodes is how many nodes the addresses suffice for.
const MaxNodes = 64
