package plan

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
	"github.com/kilter-dev/kilter/deploy"
)

// PauseImage holds a Pod's namespaces open.
const PauseImage = "kilter.dev/pause:latest"

// Binds are the places that a node sees as its own: the kubelet's, the
// container runtime's and Kilter's are at their usual paths inside each node,
// however many nodes share the machine.
func (c Cluster) Binds(node string) []host.Bind {
	return []host.Bind{
		{Source: c.Files.Node(node, "kubelet"), Target: "/var/lib/kubelet"},
		{Source: c.Files.Node(node, "kilter"), Target: "/var/lib/kilter"},
		{Source: c.Files.Node(node, "cni"), Target: "/var/lib/cni"},
		{Source: c.Files.Node(node, "log"), Target: "/var/log"},
		{Source: c.RunFolder(node, "containerd"), Target: "/run/containerd"},
		{Source: c.RunFolder(node, "kilter"), Target: "/run/kilter"},
		{Source: c.RunFolder(node, "cdi"), Target: "/run/cdi"},
	}
}

func containerdName(node string) string { return "containerd-" + node }
func kubeletName(node string) string    { return "kubelet-" + node }

func (c Cluster) containerd(node Node) process.Spec {
	return process.Spec{
		Name:           containerdName(node.Name),
		Args:           []string{c.Program("containerd"), "--config=" + c.Files.Config(containerdName(node.Name)+".toml")},
		Env:            []string{"PATH=" + c.Programs + ":/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Cgroup:         RuntimeCgroup(node.Name),
		MountNamespace: c.Files.MountNamespace(node.Name),
		Ready:          process.Socket(c.ContainerdSocket(node.Name)),
	}
}

func (c Cluster) kubelet(i int, node Node) process.Spec {
	args := []string{
		c.Program("kilter-cluster"), "kubelet",
		"--config=" + c.Files.Config(kubeletName(node.Name)+".yaml"),
		"--kubeconfig=" + c.Files.Config(kubeletName(node.Name)+".kubeconfig"),
		"--hostname-override=" + node.Name,
		"--node-ip=" + c.Addresses().Node(i).String(),
		"--root-dir=/var/lib/kubelet",
	}
	if node.Machine != OwnHardware {
		args = append(args, "--node-labels="+deploy.SimulateLabel+"="+node.Machine)
	}
	return process.Spec{
		Name:           kubeletName(node.Name),
		Args:           args,
		Env:            []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		Cgroup:         RuntimeCgroup(node.Name),
		MountNamespace: c.Files.MountNamespace(node.Name),
		After:          []string{"kube-apiserver", containerdName(node.Name)},
		Ready: process.Healthz{
			URL: fmt.Sprintf("https://%s:%d/healthz", c.Addresses().Node(i), layout.KubeletPort),
			CA:  c.Files.PKI("ca.crt"), Cert: c.Files.PKI("apiserver-kubelet-client.crt"), Key: c.Files.PKI("apiserver-kubelet-client.key"),
		},
	}
}

// ConfigFiles are the configuration files of all components, by path.
func (c Cluster) ConfigFiles() (map[string][]byte, error) {
	files := map[string][]byte{}
	for i, node := range c.Spec.Nodes {
		kubelet, err := c.kubeletConfig(i, node)
		if err != nil {
			return nil, err
		}
		network, err := c.networkConfig(i)
		if err != nil {
			return nil, err
		}
		files[c.Files.Config(kubeletName(node.Name)+".yaml")] = kubelet
		files[c.Files.Config(containerdName(node.Name)+".toml")] = c.containerdConfig(node)
		files[c.networkFolder(node.Name)+"/10-kilter.conflist"] = network
	}
	return files, nil
}

func (c Cluster) networkFolder(node string) string { return c.Files.Config("network-" + node) }

func (c Cluster) kubeletConfig(i int, node Node) ([]byte, error) {
	off, on := false, true
	zero := int32(0)
	seconds := func(n int) metav1.Duration { return metav1.Duration{Duration: time.Duration(n) * time.Second} }
	return yaml.Marshal(kubeletconfig.KubeletConfiguration{
		TypeMeta:          metav1.TypeMeta{APIVersion: kubeletconfig.SchemeGroupVersion.String(), Kind: "KubeletConfiguration"},
		Address:           c.Addresses().Node(i).String(),
		Port:              layout.KubeletPort,
		HealthzPort:       &zero,
		TLSCertFile:       c.Files.PKI(kubeletName(node.Name) + ".crt"),
		TLSPrivateKeyFile: c.Files.PKI(kubeletName(node.Name) + ".key"),
		Authentication: kubeletconfig.KubeletAuthentication{
			X509:      kubeletconfig.KubeletX509Authentication{ClientCAFile: c.Files.PKI("ca.crt")},
			Webhook:   kubeletconfig.KubeletWebhookAuthentication{Enabled: &on},
			Anonymous: kubeletconfig.KubeletAnonymousAuthentication{Enabled: &off},
		},
		Authorization:            kubeletconfig.KubeletAuthorization{Mode: kubeletconfig.KubeletAuthorizationModeWebhook},
		ContainerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
		PodLogsDir:               "/var/log/pods",
		CgroupDriver:             "cgroupfs",
		CgroupRoot:               "/" + NodeCgroup(node.Name),
		// Trial clusters stand on whatever machine there is.
		FailCgroupV1:                  &off,
		FailSwapOn:                    &off,
		LocalStorageCapacityIsolation: &off,
		EvictionHard: map[string]string{
			"memory.available": "50Mi", "nodefs.available": "200Mi", "imagefs.available": "200Mi", "nodefs.inodesFree": "1%",
		},
		// A device that falls sick leaves the node's status this fast.
		NodeStatusUpdateFrequency: seconds(1),
		// And a changed ConfigMap reaches its Pods this fast.
		SyncFrequency: seconds(10),
		// There is no DNS in the cluster; a name is refused at once.
		ClusterDNS:    []string{c.Addresses().API().String()},
		ClusterDomain: "cluster.local",
		// Nothing can be pulled again where there is no registry.
		ImageMinimumGCAge:           metav1.Duration{Duration: 24 * 365 * time.Hour},
		ImageGCHighThresholdPercent: ptr(int32(100)),
		EnableDebuggingHandlers:     &on,
		SerializeImagePulls:         &off,
		KubeAPIQPS:                  ptr(int32(100)),
		KubeAPIBurst:                200,
		EventRecordQPS:              ptr(int32(0)),
	})
}

func ptr[T any](value T) *T { return &value }

// containerdConfig is TOML; strconv.Quote writes strings as TOML reads them.
func (c Cluster) containerdConfig(node Node) []byte {
	return []byte(strings.Join([]string{
		`version = 3`,
		`root = ` + strconv.Quote(c.Files.Node(node.Name, "containerd")),
		`state = "/run/containerd"`,
		`disabled_plugins = ["io.containerd.nri.v1.nri", "io.containerd.tracing.processor.v1.otlp"]`,
		`[grpc]`,
		`address = "/run/containerd/containerd.sock"`,
		`[plugins."io.containerd.cri.v1.images".pinned_images]`,
		`sandbox = ` + strconv.Quote(PauseImage),
		`[plugins."io.containerd.cri.v1.runtime"]`,
		`restrict_oom_score_adj = ` + strconv.FormatBool(!c.CanRaiseOOMScore),
		`netns_mounts_under_state_dir = true`,
		`cdi_spec_dirs = ["/run/cdi"]`,
		`[plugins."io.containerd.cri.v1.runtime".cni]`,
		`bin_dirs = [` + strconv.Quote(c.Program("cni")) + `]`,
		`conf_dir = ` + strconv.Quote(c.networkFolder(node.Name)),
		`use_internal_loopback = true`,
		`[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]`,
		`runtime_type = "io.containerd.runc.v2"`,
		`[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]`,
		`BinaryName = ` + strconv.Quote(c.Program("runc")),
		`SystemdCgroup = false`,
		``,
	}, "\n"))
}

// networkConfig puts Pods on the cluster's bridge, which has all addresses of
// the machine's side already. It changes no setting of the kernel: Pods reach
// each other, the nodes and the API server, and nothing beyond the machine.
func (c Cluster) networkConfig(i int) ([]byte, error) {
	pods := c.Addresses().Pods(i)
	first := pods.Addr().As4()
	last := first
	first[3], last[3] = 2, 254
	ip := func(b [4]byte) string { return fmt.Sprintf("%d.%d.%d.%d", b[0], b[1], b[2], b[3]) }
	return json.MarshalIndent(map[string]any{
		"cniVersion": "1.0.0",
		"name":       "kilter",
		"plugins": []any{map[string]any{
			"type":   "bridge",
			"bridge": layout.Bridge,
			"ipam": map[string]any{
				"type":    "host-local",
				"dataDir": "/var/lib/cni/networks",
				"ranges": [][]any{{map[string]any{
					"subnet":     c.Spec.Subnet.String(),
					"rangeStart": ip(first), "rangeEnd": ip(last),
					"gateway": c.Addresses().API().String(),
				}}},
				"routes": []any{map[string]any{"dst": "0.0.0.0/0"}},
			},
		}},
	}, "", "  ")
}
