// Package plan describes a one-machine cluster as data: which processes run,
// with which arguments, in which order, on which configuration files. It
// decides only; process runs it and onemachine prepares the ground.
package plan

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"strconv"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
)

// OwnHardware is the machine of a node that offers what this machine has.
const OwnHardware = "host"

// Spec is what a cluster is made of.
type Spec struct {
	Nodes  []Node       `json:"nodes"`
	Subnet netip.Prefix `json:"subnet"`
}

// Node is one kubelet, with the machine it stands on: the name of a recorded
// one, or OwnHardware.
type Node struct {
	Name    string `json:"name"`
	Machine string `json:"machine"`
}

// Cluster is a spec with its places on this machine.
type Cluster struct {
	Spec  Spec
	Files layout.Files
	// Programs is the folder with this binary, containerd, its shim, runc and
	// the network plugins.
	Programs string
	// CanRaiseOOMScore is false where the kernel does not let this user choose
	// which process dies first when memory runs out.
	CanRaiseOOMScore bool
}

// Addresses are the cluster's.
func (c Cluster) Addresses() layout.Addresses { return layout.Addresses{Subnet: c.Spec.Subnet} }

// Server is the URL of the API server.
func (c Cluster) Server() string { return fmt.Sprintf("https://%s", c.Addresses().API()) }

// Program is the path of a program that the cluster runs.
func (c Cluster) Program(name string) string { return filepath.Join(c.Programs, name) }

// The programs that must stand in the folder.
func Programs() []string {
	return []string{"kilter-cluster", "containerd", "containerd-shim-runc-v2", "runc", "cni/bridge", "cni/host-local"}
}

// ContainerdSocket is where a node's container runtime listens, seen from the
// machine; inside the node it is at its usual place.
func (c Cluster) ContainerdSocket(node string) string {
	return filepath.Join(c.RunFolder(node, "containerd"), "containerd.sock")
}

// RunFolder is what a node sees as /run/NAME.
func (c Cluster) RunFolder(node, name string) string { return c.Files.Run(node + "." + name) }

// Processes are all processes of the cluster, in the order of starting.
func (c Cluster) Processes() []process.Spec {
	specs := []process.Spec{c.etcd(), c.apiServer(), c.controllerManager(), c.scheduler()}
	for i, node := range c.Spec.Nodes {
		specs = append(specs, c.containerd(node), c.kubelet(i, node))
	}
	return specs
}

const controlPlane = layout.Cgroup + "/control-plane"

// NodeCgroup is the cgroup that a node's Pods live below.
func NodeCgroup(node string) string { return layout.Cgroup + "/" + node }

// RuntimeCgroup is the cgroup of a node's kubelet and container runtime, the
// runtime's shims included.
func RuntimeCgroup(node string) string { return layout.Cgroup + "/" + node + "-runtime" }

// Cgroups are all cgroups that must be there before the processes.
func (c Cluster) Cgroups() []string {
	groups := []string{controlPlane}
	for _, node := range c.Spec.Nodes {
		groups = append(groups, NodeCgroup(node.Name), RuntimeCgroup(node.Name))
	}
	return groups
}

func (c Cluster) etcdSocket() string { return c.Files.Run("etcd.sock") }

func (c Cluster) etcd() process.Spec {
	// The database listens on a socket in a folder that only root can enter:
	// no port, and no other user of the machine can reach it. The advertised
	// addresses are for other members, of which there are none.
	const advertised = "http://localhost:2380"
	return process.Spec{
		Name: "etcd",
		Args: []string{
			c.Program("kilter-cluster"), "etcd",
			"--name=kilter",
			"--data-dir=" + c.Files.Etcd(),
			"--listen-client-urls=unix://" + c.etcdSocket(),
			"--advertise-client-urls=http://localhost:2379",
			"--listen-peer-urls=unix://" + c.Files.Run("etcd-peer.sock"),
			"--initial-advertise-peer-urls=" + advertised,
			"--initial-cluster=kilter=" + advertised,
			// Lost on a power cut are the last seconds of a trial cluster; won
			// is that no Pod waits for the disk.
			"--unsafe-no-fsync",
			"--log-level=warn",
		},
		Cgroup: controlPlane,
		Ready:  process.Socket(c.etcdSocket()),
	}
}

func (c Cluster) apiServer() process.Spec {
	api := c.Addresses().API().String()
	return process.Spec{
		Name: "kube-apiserver",
		Args: []string{
			c.Program("kilter-cluster"), "kube-apiserver",
			"--etcd-servers=unix://" + c.etcdSocket(),
			"--bind-address=" + api,
			"--advertise-address=" + api,
			"--secure-port=" + strconv.Itoa(layout.APIPort),
			"--service-cluster-ip-range=" + c.Addresses().Services().String(),
			"--tls-cert-file=" + c.Files.PKI("apiserver.crt"),
			"--tls-private-key-file=" + c.Files.PKI("apiserver.key"),
			"--client-ca-file=" + c.Files.PKI("ca.crt"),
			"--kubelet-certificate-authority=" + c.Files.PKI("ca.crt"),
			"--kubelet-client-certificate=" + c.Files.PKI("apiserver-kubelet-client.crt"),
			"--kubelet-client-key=" + c.Files.PKI("apiserver-kubelet-client.key"),
			"--kubelet-preferred-address-types=InternalIP",
			"--service-account-issuer=https://kubernetes.default.svc",
			"--service-account-key-file=" + c.Files.PKI("service-accounts.key"),
			"--service-account-signing-key-file=" + c.Files.PKI("service-accounts.key"),
			"--authorization-mode=Node,RBAC",
			"--enable-admission-plugins=NodeRestriction",
			"--anonymous-auth=false",
			"--allow-privileged=true",
			"--profiling=false",
		},
		Cgroup: controlPlane,
		After:  []string{"etcd"},
		Ready: process.Healthz{
			URL: c.Server() + "/readyz", CA: c.Files.PKI("ca.crt"),
			Cert: c.Files.PKI("admin.crt"), Key: c.Files.PKI("admin.key"),
		},
	}
}

func (c Cluster) controllerManager() process.Spec {
	return process.Spec{
		Name: "kube-controller-manager",
		Args: []string{
			c.Program("kilter-cluster"), "kube-controller-manager",
			"--kubeconfig=" + c.Files.Config("controller-manager.kubeconfig"),
			"--service-account-private-key-file=" + c.Files.PKI("service-accounts.key"),
			"--root-ca-file=" + c.Files.PKI("ca.crt"),
			"--use-service-account-credentials=true",
			"--leader-elect=false",
			"--secure-port=0",
			"--profiling=false",
		},
		Cgroup: controlPlane,
		After:  []string{"kube-apiserver"},
	}
}

func (c Cluster) scheduler() process.Spec {
	return process.Spec{
		Name: "kube-scheduler",
		Args: []string{
			c.Program("kilter-cluster"), "kube-scheduler",
			"--kubeconfig=" + c.Files.Config("scheduler.kubeconfig"),
			"--leader-elect=false",
			"--secure-port=0",
			"--profiling=false",
		},
		Cgroup: controlPlane,
		After:  []string{"kube-apiserver"},
	}
}
