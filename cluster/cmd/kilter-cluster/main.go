package main

import (
	"fmt"
	"os"

	"context"
	_ "github.com/containerd/containerd/v2/client"
	"github.com/spf13/cobra"
	_ "github.com/vishvananda/netlink"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"
)

func main() {
	cmds := map[string]func() *cobra.Command{
		"kube-apiserver":          apiserver.NewAPIServerCommand,
		"kube-controller-manager": controllermanager.NewControllerManagerCommand,
		"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
		"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
		"kubectl":                 kubectl.NewDefaultKubectlCommand,
	}
	name := os.Args[1]
	if name == "etcd" {
		etcdmain.Main(os.Args[1:])
		return
	}
	if f, ok := cmds[name]; ok {
		c := f()
		c.SetArgs(os.Args[2:])
		os.Exit(cli.Run(c))
	}
	fmt.Println("?")
}
