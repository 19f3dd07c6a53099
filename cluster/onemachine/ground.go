package onemachine

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/pki"
	"github.com/kilter-dev/kilter/cluster/plan"
)

// writeFiles makes the certificates, kubeconfigs and configuration files.
// What is there already and still right is kept.
func writeFiles(c plan.Cluster) error {
	authority, err := pki.Open(c.Files.PKI(""))
	if err != nil {
		return err
	}
	if err := issueAll(authority, c); err != nil {
		return err
	}
	configs, err := c.ConfigFiles()
	if err != nil {
		return err
	}
	for path, data := range configs {
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(path, data, 0o600); err != nil {
			return err
		}
	}
	kubeconfigs := map[string]string{
		c.Files.Kubeconfig():                            "admin",
		c.Files.Config("controller-manager.kubeconfig"): "controller-manager",
		c.Files.Config("scheduler.kubeconfig"):          "scheduler",
	}
	for _, node := range c.Spec.Nodes {
		kubeconfigs[c.Files.Config("kubelet-"+node.Name+".kubeconfig")] = "kubelet-" + node.Name
	}
	for path, name := range kubeconfigs {
		if err := authority.Kubeconfig(path, c.Server(), name); err != nil {
			return fmt.Errorf("write the kubeconfig of %s: %w", name, err)
		}
	}
	return nil
}

func issueAll(authority *pki.Authority, c plan.Cluster) error {
	loopback := netip.MustParseAddr("127.0.0.1")
	subjects := map[string]pki.Subject{
		"admin":                    {Name: "kilter-admin", Groups: []string{"system:masters"}},
		"controller-manager":       {Name: "system:kube-controller-manager"},
		"scheduler":                {Name: "system:kube-scheduler"},
		"apiserver-kubelet-client": {Name: "kube-apiserver-kubelet-client", Groups: []string{"system:masters"}},
		"apiserver": {
			Name:      "kube-apiserver",
			Addresses: []netip.Addr{c.Addresses().API(), loopback},
			Hosts:     []string{"kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local", "localhost"},
		},
	}
	for i, node := range c.Spec.Nodes {
		subjects["kubelet-"+node.Name] = pki.Subject{
			Name:      "system:node:" + node.Name,
			Groups:    []string{"system:nodes"},
			Addresses: []netip.Addr{c.Addresses().Node(i)},
			Hosts:     []string{node.Name},
		}
	}
	for name, subject := range subjects {
		if err := authority.Issue(name, subject); err != nil {
			return err
		}
	}
	return authority.SigningKey("service-accounts")
}

// mountPoints are the folders outside the data folder that nodes mount their
// own over.
func mountPoints(c plan.Cluster) []string {
	var folders []string
	for _, bind := range c.Binds(c.Spec.Nodes[0].Name) {
		folders = append(folders, bind.Target)
	}
	return folders
}

// layGround takes what the processes stand on from the machine: cgroups, the
// bridge, and a mount namespace for each node. It is done anew by every
// supervisor and repairs what is missing.
func layGround(c plan.Cluster) error {
	cgroups, err := host.FindCgroups()
	if err != nil {
		return err
	}
	for _, group := range c.Cgroups() {
		if err := cgroups.Make(group); err != nil {
			return err
		}
	}
	addresses := []netip.Prefix{netip.PrefixFrom(c.Addresses().API(), c.Spec.Subnet.Bits())}
	for i := range c.Spec.Nodes {
		addresses = append(addresses, netip.PrefixFrom(c.Addresses().Node(i), 32))
	}
	if err := host.MakeBridge(layout.Bridge, addresses); err != nil {
		return err
	}
	if err := host.MakeFolders(mountPoints(c)); err != nil {
		return err
	}
	for _, node := range c.Spec.Nodes {
		if err := layNode(c, node.Name); err != nil {
			return fmt.Errorf("prepare the node %s: %w", node.Name, err)
		}
	}
	return nil
}

func layNode(c plan.Cluster, node string) error {
	namespace := c.Files.MountNamespace(node)
	if !host.IsPinned(namespace) {
		// The node starts for the first time, or the machine has been
		// rebooted: no container runs, and what says otherwise is stale.
		for _, stale := range []string{
			c.RunFolder(node, "containerd"), c.RunFolder(node, "kilter"), c.RunFolder(node, "cdi"), c.Files.Node(node, "cni"),
		} {
			if err := os.RemoveAll(stale); err != nil {
				return err
			}
		}
		if err := host.PinningFolder(filepath.Dir(namespace)); err != nil {
			return err
		}
	}
	binds := c.Binds(node)
	for _, bind := range binds {
		if err := os.MkdirAll(bind.Source, 0o755); err != nil {
			return err
		}
	}
	return host.MakeMountNamespace(namespace, func(binds []host.Bind) []string {
		list, _ := json.Marshal(binds)
		return []string{c.Program("kilter-cluster"), MountCommand, string(list)}
	}, binds)
}
