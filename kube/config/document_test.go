package config

import (
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

const document = "../../docs/from-nvidia-device-plugin.md"

var update = flag.Bool("update", false, "write the table of settings into the document")

// TestDocument holds the document's table to the code's, row by row.
func TestDocument(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	const begin, end = "-run TestDocument -update -->\n", "\n## Settings of NVIDIA's other containers"
	before, rest, found := strings.Cut(string(data), begin)
	written, after, ended := strings.Cut(rest, end)
	if !found || !ended {
		t.Fatal("the document has no place for the table")
	}
	if *update {
		if err := os.WriteFile(document, []byte(before+begin+table()+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(table(), written); diff != "" {
		t.Errorf("the document is behind; run go test ./kube/config -run TestDocument -update\n%s", diff)
	}
}

func table() string {
	var b strings.Builder
	b.WriteString("\n| In the file | Flag | Environment | Acted on | How |\n|---|---|---|---|---|\n")
	for _, s := range Settings() {
		var key []string
		if s.Key != "" {
			key = []string{s.Key}
		}
		how := s.Note
		if s.Status == Pending {
			how += " *Today:* " + s.Until
		}
		cells := []string{codes("", key), codes("--", s.Flags), codes("", s.Env), string(s.Status), how}
		b.WriteString("| " + strings.Join(cells, " | ") + " |\n")
	}
	return b.String()
}

func codes(prefix string, names []string) string {
	quoted := make([]string, len(names))
	for i, name := range names {
		quoted[i] = "`" + prefix + name + "`"
	}
	return strings.Join(quoted, ", ")
}

// TestExamples reads the examples that people copy.
func TestExamples(t *testing.T) {
	data, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	var plans []string
	_, rest, found := strings.Cut(string(data), "```yaml\n")
	for found {
		var example string
		example, rest, _ = strings.Cut(rest, "```")
		c, _ := read(t, from(example))
		plan, err := c.Plan(gpus(5))
		if err != nil {
			t.Error(err)
		}
		plans = append(plans, count(plan))
		_, rest, found = strings.Cut(rest, "```yaml\n")
	}
	want := []string{
		"gpu.shared:8 gpu.half:2 gpu.large:1 gpu.small:2 gpu:1",
		"gpu.notebook:1 gpu:4",
	}
	if diff := cmp.Diff(want, plans); diff != "" {
		t.Error(diff)
	}
}

// TestSharingExample reads the example of the page about sharing.
func TestSharingExample(t *testing.T) {
	data, err := os.ReadFile("../../docs/sharing.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(data), "```yaml\n")
	example, _, found := strings.Cut(rest, "```")
	if !found {
		t.Fatal("the page has no example")
	}
	c, warnings := read(t, from(example))
	plan, err := c.Plan(gpus(2))
	if got := count(plan); err != nil || got != "gpu.shared:8" || len(warnings) > 0 {
		t.Errorf("%s, %v, %v", got, warnings, err)
	}
}

// The mistakes that the document shows are the real ones.
func TestShownMistakes(t *testing.T) {
	_, _, err := Read(Sources{
		File: &File{Name: "config.yaml", Data: []byte("version: v1\nflags:\n  migstrategy: none\n  plugin: {}\nsharing:\n  timeSlicing:\n    resources:\n    # all of them\n    - {name: nvidia.com/gpu, replicas: 0}\n")},
		Env:  lookup(map[string]string{"MIG_STRATEGY": "double"}),
	})
	data, readErr := os.ReadFile(document)
	if readErr != nil {
		t.Fatal(readErr)
	}
	if err == nil || !strings.Contains(string(data), "```\n"+err.Error()+"\n```") {
		t.Errorf("the document does not show %v", err)
	}
}

// count says how many there are of each resource, in the order of the plan.
func count(plan Plan) string {
	var order, out []string
	number := map[string]int{}
	for _, o := range plan.Offers {
		if number[o.Resource] == 0 {
			order = append(order, o.Resource)
		}
		number[o.Resource] += o.Replicas
	}
	for _, resource := range order {
		out = append(out, strings.TrimPrefix(resource, "nvidia.com/")+":"+device.Int(number[resource]).String())
	}
	return strings.Join(out, " ")
}
