//go:build e2e

// Package e2e proves what Kilter promises on real kubelets, a real API server
// and a real container runtime: two nodes on this machine, with Kilter
// installed from its own manifests. `make test-e2e` runs it, as root.
package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The nodes of the test cluster.
const (
	small, smallMachine, smallCount = "small", "t4x2", 2
	big, bigMachine, bigCount       = "big", "h100x8", 8
)

const gpu = "nvidia.com/gpu"

// probeImage runs test/probe.
const probeImage = "kilter.dev/probe:latest"

// suite is the cluster under test, and upTook how long it took to be there.
var (
	suite  *cluster
	upTook time.Duration
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

// run brings the cluster up, runs the tests, takes it down and compares the
// machine with how it was before.
func run(m *testing.M) (status int) {
	bin := os.Getenv("KILTER_BIN")
	if bin == "" || os.Geteuid() != 0 {
		fmt.Println("the end-to-end tests run a cluster from the programs in $KILTER_BIN, as root: `make test-e2e`")
		return 1
	}
	data, err := os.MkdirTemp("", "kilter-e2e-")
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer os.RemoveAll(data)
	before := lookAtMachine(bin)
	suite = &cluster{bin: bin, data: filepath.Join(data, "cluster")}
	defer func() {
		if out, err := suite.command("down").CombinedOutput(); err != nil {
			fmt.Printf("kilter down: %v\n%s", err, out)
			status = 1
		}
		if left := before.missingFrom(lookAtMachine(bin)); len(left) > 0 {
			fmt.Println("kilter down left behind:")
			for _, thing := range left {
				fmt.Println("  ", thing)
			}
			status = 1
		}
	}()
	began := time.Now()
	if out, err := suite.command("up", "--node", small+"="+smallMachine, "--node", big+"="+bigMachine, "--timeout", "2m").CombinedOutput(); err != nil {
		fmt.Printf("kilter up: %v\n%s", err, out)
		return 1
	}
	upTook = time.Since(began)
	fmt.Printf("two nodes with devices after %.1f s\n", upTook.Seconds())
	if err := suite.prepare(); err != nil {
		fmt.Println(err)
		return 1
	}
	if status = m.Run(); status != 0 {
		out, _ := suite.command("kubectl", "get", "pods,events", "-A").CombinedOutput()
		fmt.Printf("%s\n", out)
	}
	return status
}
