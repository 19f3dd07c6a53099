package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kilter-dev/kilter/kube"
)

// upKubeconfig is the kubeconfig of the cluster on this machine, in the data
// folder that `kilter up` uses.
func upKubeconfig() string {
	return filepath.Join(cmp.Or(os.Getenv("KILTER_DATA"), "/var/lib/kilter-cluster"), "kubeconfig")
}

// clusterFlags say which cluster is meant.
type clusterFlags struct {
	kubeconfig string
}

func (f *clusterFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default $KUBECONFIG, else that of `kilter up`, else ~/.kube/config)")
}

// connect finds the cluster: what the user names first, then the one on this
// machine.
func (f *clusterFlags) connect() (*rest.Config, *kube.Client, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	switch {
	case f.kubeconfig != "":
		rules.ExplicitPath = f.kubeconfig
	case os.Getenv(clientcmd.RecommendedConfigPathEnvVar) != "":
	default:
		if _, err := os.Stat(upKubeconfig()); err == nil {
			rules.ExplicitPath = upKubeconfig()
		} else if errors.Is(err, os.ErrPermission) {
			return nil, nil, fmt.Errorf("the cluster on this machine belongs to root: run it with sudo, or name another with --kubeconfig")
		}
	}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil).ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, nil, errors.New("no cluster to ask: `kilter up` brings one up on this machine, and --kubeconfig names another")
	}
	if err != nil {
		return nil, nil, fmt.Errorf("find the cluster: %w", err)
	}
	config.QPS, config.Burst = 50, 100
	client, err := kube.NewClient(config)
	return config, client, err
}
