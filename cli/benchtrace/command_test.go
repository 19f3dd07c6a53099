package benchtrace

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// writeTrace makes a folder with a small trace that was made up.
func writeTrace(t *testing.T, files ...string) string {
	t.Helper()
	folder := t.TempDir()
	content := map[string]string{}
	var nodes, pods, plain strings.Builder
	nodes.WriteString("sn,cpu_milli,memory_mib,gpu,model\n")
	for i := range 6 {
		fmt.Fprintf(&nodes, "machine-%d,32000,65536,%d,%s\n", i, 4+4*(i%2), []string{"A", "B"}[i%2])
	}
	pods.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n")
	plain.WriteString("name,cpu_milli,memory_mib,num_gpu,gpu_milli\n")
	for i := range 60 {
		milli := []int{250, 470, 810, 1000}[i%4]
		fmt.Fprintf(&pods, "pod-%d,%d,1024,1,%d,,LS,Running,%d,%d,0\n", i, 1000*(1+i%5), milli, 10*i, 10*i+600+i%7)
		fmt.Fprintf(&plain, "pod-%d,%d,1024,1,%d\n", i, 1000*(1+i%5), milli)
	}
	content[nodeFile] = nodes.String()
	content[podPrefix+"default.csv"] = pods.String()
	content[podPrefix+"another.csv"] = plain.String()
	content[publishedFile] = "trace,policy,arrived_pct,alloc_pct_mean,alloc_pct_sd,unalloc_pct_mean,n\n" +
		"openb_pod_list_default,06-FGD,100,90.5,0.1,9.5,10\nopenb_pod_list_default,06-FGD,130,95.25,0.1,4.75,10\n"
	for _, name := range files {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content[name]), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return folder
}

var allFiles = []string{nodeFile, podPrefix + "default.csv", podPrefix + "another.csv", publishedFile}

func runCommand(t *testing.T, args ...string) (string, error) {
	t.Helper()
	cmd := Command()
	cmd.SetArgs(args)
	var out, progress bytes.Buffer
	cmd.SetOut(&out)
	cmd.SetErr(&progress)
	cmd.SilenceUsage, cmd.SilenceErrors = true, true
	err := cmd.ExecuteContext(context.Background())
	return out.String(), err
}

func TestTable(t *testing.T) {
	folder := writeTrace(t, allFiles...)
	out, err := runCommand(t, "--trace", folder, "--seeds", "42-43")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"default: 60 Pods, 6 machines, 36 GPUs; seeds 42 to 43",
		"another: 60 Pods",
		"Random", "DotProd", "GpuClustering", "GpuPacking", "BestFit", "FGD", "Kilter",
		"9.50", "95.25", // published
		"no policy can",
		"Kilter is ahead of FGD, at 100 and at 130, on",
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if strings.Index(out, "default:") > strings.Index(out, "another:") {
		t.Error("default does not come first")
	}
	if strings.Contains(out, "KilterBatch") {
		t.Error("a policy that nobody asked for was run")
	}
}

func TestJSON(t *testing.T) {
	folder := writeTrace(t, allFiles...)
	out, err := runCommand(t, "--trace", folder, "--seeds", "7", "--policy", "KilterMoves,FGD,KilterBatch", "-o", "json", "--jobs", "1")
	if err != nil {
		t.Fatal(err)
	}
	var report arrivalReport
	if err := json.Unmarshal([]byte(out), &report); err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, row := range report.Traces[0].Rows {
		names = append(names, row.Policy)
	}
	if !slices.Equal(names, []string{"FGD", "KilterBatch", "KilterMoves"}) {
		t.Errorf("policies are %v", names)
	}
	fgd, batch := report.Traces[0].Rows[0], report.Traces[0].Rows[1]
	if fgd.UnallocatedToFGD != nil || *fgd.PublishedAllocated != 95.25 || *fgd.PublishedUnallocated != 9.5 {
		t.Errorf("FGD is %+v", fgd)
	}
	if got := batch.Allocated.Mean - fgd.Allocated.Mean; batch.AllocatedToFGD.Mean-got > 1e-9 || got-batch.AllocatedToFGD.Mean > 1e-9 {
		t.Errorf("the difference to FGD is %v, want %v", batch.AllocatedToFGD.Mean, got)
	}
	if batch.Allocated.Mean > report.Traces[0].Bound.Allocated || batch.Unallocated.Mean < report.Traces[0].Bound.Unallocated {
		t.Errorf("%+v is beyond the bound %+v", batch, report.Traces[0].Bound)
	}
	if batch.DecisionMillis <= 0 || batch.LongestDecisionWait < batch.DecisionMillis {
		t.Errorf("it took %v ms, at most %v", batch.DecisionMillis, batch.LongestDecisionWait)
	}
}

func TestDepartures(t *testing.T) {
	folder := writeTrace(t, allFiles...)
	out, err := runCommand(t, "--trace", folder, "--seeds", "42,45", "--departures", "--loads", "0.5,1.5")
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"seeds 42, 45", "0.50", "1.50", "BestFit", "FGD", "Kilter", "99th percentile"} {
		if !strings.Contains(out, want) {
			t.Errorf("the table lacks %q:\n%s", want, out)
		}
	}
	if strings.Contains(out, "another") || strings.Contains(out, "Random") {
		t.Errorf("there is more than was asked for, or a trace without times:\n%s", out)
	}
	out, err = runCommand(t, "--trace", writeTrace(t, nodeFile, podPrefix+"another.csv"), "--departures", "--seeds", "1")
	if err != nil || !strings.Contains(out, "No trace") {
		t.Errorf("without times: got %q, %v", out, err)
	}
}

func TestRefused(t *testing.T) {
	folder := writeTrace(t, allFiles...)
	broken := writeTrace(t, allFiles...)
	if err := os.WriteFile(filepath.Join(broken, podPrefix+"x.csv"), []byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,x,1,1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	idle := writeTrace(t, allFiles...)
	if err := os.WriteFile(filepath.Join(idle, podPrefix+"x.csv"), []byte("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,0,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	odd := writeTrace(t, allFiles...)
	if err := os.WriteFile(filepath.Join(odd, publishedFile), []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name string
		args []string
		want string
	}{
		{"no folder", nil, `"trace" not set`},
		{"an empty folder", []string{"--trace", t.TempDir()}, "no " + nodeFile + ": get the trace from https://github.com/alibaba/clusterdata"},
		{"no Pods", []string{"--trace", writeTrace(t, nodeFile)}, "no " + podFiles + ": get the trace from"},
		{"a broken file", []string{"--trace", broken}, "x.csv: line 2: cpu_milli"},
		{"Pods without GPUs", []string{"--trace", idle}, "x.csv: no Pod asks for a GPU"},
		{"odd figures", []string{"--trace", odd}, publishedFile + ": the first columns"},
		{"unknown policy", []string{"--trace", folder, "--policy", "Best"}, `unknown policy "Best": known are Random`},
		{"moves with departures", []string{"--trace", folder, "--policy", "KilterMoves", "--departures"}, "does not run with departures"},
		{"odd seeds", []string{"--trace", folder, "--seeds", "42-x"}, `"x" is no number`},
		{"reversed seeds", []string{"--trace", folder, "--seeds", "9-3"}, "no range"},
		{"a seed twice", []string{"--trace", folder, "--seeds", "3,1-4"}, "3 is there twice"},
		{"unknown output", []string{"--trace", folder, "-o", "xml"}, `unknown output "xml"`},
	} {
		if _, err := runCommand(t, test.args...); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want an error with %q", test.name, err, test.want)
		}
	}
}

// TestProgress: a line from time to time, with a clock that runs fast.
func TestProgress(t *testing.T) {
	now := time.Unix(0, 0)
	o := options{jobs: 1, now: func() time.Time {
		now = now.Add(4 * time.Second)
		return now
	}}
	var out bytes.Buffer
	w := o.newWork(context.Background(), &out)
	for range 10 {
		w.add(func(context.Context) error { return nil })
	}
	if err := w.wait(); err != nil {
		t.Fatal(err)
	}
	want := "3 of 10 runs done in 12s, about 28s left\n6 of 10 runs done in 24s, about 16s left\n9 of 10 runs done in 36s, about 4s left\n"
	if out.String() != want {
		t.Errorf("got %q, want %q", out.String(), want)
	}
}

func TestStat(t *testing.T) {
	if got := statOf([]float64{1, 2, 3, 4}).String(); got != "2.50 ±1.29" {
		t.Errorf("got %s", got)
	}
	if got := statOf([]float64{-1}).signed(); got != "-1.00 ±0.00" {
		t.Errorf("got %s", got)
	}
}
