package command

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kilter-dev/kilter/cli/output"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/onemachine"
	"github.com/kilter-dev/kilter/cluster/process"
)

// report is the state of the cluster for people and machines.
type report struct {
	Supervised bool             `json:"supervised"`
	Processes  []process.Status `json:"processes"`
	Nodes      []nodeReport     `json:"nodes"`
	// Unreachable says why there are no nodes to show.
	Unreachable string `json:"unreachable,omitempty"`
}

type nodeReport struct {
	Name    string `json:"name"`
	Address string `json:"address"`
	Ready   bool   `json:"ready"`
	// Devices are the extended resources: what there is and what can be given.
	Devices map[string]counts `json:"devices"`
}

type counts struct {
	Capacity    int64 `json:"capacity"`
	Allocatable int64 `json:"allocatable"`
}

func status(files func() layout.Files) *cobra.Command {
	var format string
	cmd := &cobra.Command{
		Use:     "status",
		Short:   "Show the cluster's processes, nodes and devices",
		Example: "  kilter status\n  kilter status -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			report, err := look(cmd.Context(), files())
			if err != nil {
				return err
			}
			if format != "" {
				return output.Write(cmd.OutOrStdout(), format, report)
			}
			return print(cmd.OutOrStdout(), report)
		},
	}
	cmd.Flags().StringVarP(&format, "output", "o", "", output.Help)
	return cmd
}

func look(ctx context.Context, files layout.Files) (report, error) {
	statuses, running, err := onemachine.Statuses(files)
	if err != nil {
		return report{}, err
	}
	r := report{Supervised: running, Processes: statuses, Nodes: []nodeReport{}}
	if !running {
		r.Unreachable = "the cluster is down; `kilter up` brings it back"
		r.Processes = nil
		return r, nil
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	nodes, err := listNodes(ctx, files)
	if err != nil {
		r.Unreachable = err.Error()
		return r, nil
	}
	for _, node := range nodes {
		r.Nodes = append(r.Nodes, describe(node))
	}
	return r, nil
}

func listNodes(ctx context.Context, files layout.Files) ([]corev1.Node, error) {
	config, err := clientcmd.BuildConfigFromFlags("", files.Kubeconfig())
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, err
	}
	return list.Items, nil
}

func describe(node corev1.Node) nodeReport {
	r := nodeReport{Name: node.Name, Devices: map[string]counts{}}
	for _, address := range node.Status.Addresses {
		if address.Type == corev1.NodeInternalIP {
			r.Address = address.Address
		}
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			r.Ready = condition.Status == corev1.ConditionTrue
		}
	}
	for name, capacity := range node.Status.Capacity {
		// Extended resources are those with a domain.
		if strings.Contains(string(name), "/") {
			allocatable := node.Status.Allocatable[name]
			r.Devices[string(name)] = counts{capacity.Value(), allocatable.Value()}
		}
	}
	return r
}

func print(out io.Writer, r report) error {
	table := tabwriter.NewWriter(out, 0, 0, 3, ' ', 0)
	if len(r.Processes) > 0 {
		fmt.Fprintln(table, "PROCESS\tSTATE\tPID\tRESTARTS\tSINCE")
	}
	for _, p := range r.Processes {
		fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\n", p.Name, p.State, p.PID, p.Restarts, time.Since(p.Since).Round(time.Second))
	}
	table.Flush()
	if len(r.Nodes) > 0 {
		fmt.Fprintln(out)
		fmt.Fprintln(table, "NODE\tREADY\tADDRESS\tDEVICES")
	}
	for _, n := range r.Nodes {
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", n.Name, yesNo(n.Ready), n.Address, n.devices())
	}
	table.Flush()
	if r.Unreachable != "" {
		fmt.Fprintln(out, r.Unreachable)
	}
	return nil
}

func (n nodeReport) devices() string {
	var words []string
	for _, name := range slices.Sorted(maps.Keys(n.Devices)) {
		c := n.Devices[name]
		word := fmt.Sprintf("%d × %s", c.Capacity, name)
		if c.Allocatable != c.Capacity {
			word = fmt.Sprintf("%d of %d × %s", c.Allocatable, c.Capacity, name)
		}
		words = append(words, word)
	}
	if len(words) == 0 {
		return "none"
	}
	return strings.Join(words, ", ")
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

// welcome says what there is now, and what to do with it.
func welcome(ctx context.Context, out io.Writer, files layout.Files, took time.Duration) error {
	r, err := look(ctx, files)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "\nKubernetes is up after %.1f s:\n", took.Seconds())
	for _, node := range r.Nodes {
		fmt.Fprintf(out, "  node %s with %s\n", node.Name, node.devices())
	}
	fmt.Fprint(out, `
Next:
  kilter kubectl apply -f examples/vector-add.yaml    run a Pod with a GPU
  kilter kubectl logs vector-add                      what it saw
  kilter devices                                      every device and who holds it
  export KUBECONFIG=$(kilter kubeconfig)              for your own tools
  kilter down                                         take everything away
`)
	return nil
}
