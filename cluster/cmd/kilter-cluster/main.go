// Kilter-cluster is the one-machine cluster in one binary: the commands that
// bring it up and look after it, and the components of Kubernetes that they
// run as child processes of the same program.
package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/logs/json/register"
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
	kubectl "k8s.io/kubectl/pkg/cmd"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	controllermanager "k8s.io/kubernetes/cmd/kube-controller-manager/app"
	scheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
	kubelet "k8s.io/kubernetes/cmd/kubelet/app"

	"github.com/kilter-dev/kilter/cluster/command"
)

// The components of Kubernetes, by the name under which they are called.
var components = map[string]func() *cobra.Command{
	"kube-apiserver":          apiserver.NewAPIServerCommand,
	"kube-controller-manager": controllermanager.NewControllerManagerCommand,
	"kube-scheduler":          func() *cobra.Command { return scheduler.NewSchedulerCommand() },
	"kubelet":                 func() *cobra.Command { return kubelet.NewKubeletCommand(context.Background()) },
	"kubectl":                 kubectl.NewDefaultKubectlCommand,
}

func main() {
	if len(os.Args) > 1 {
		component := os.Args[1]
		if component == "etcd" {
			etcdmain.Main(os.Args[1:])
			return
		}
		if create, ok := components[component]; ok {
			// They look at the command line themselves.
			os.Args = os.Args[1:]
			os.Exit(cli.Run(create()))
		}
	}
	os.Exit(command.Run())
}
