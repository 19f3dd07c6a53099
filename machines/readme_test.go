package machines

import (
	"os"
	"strings"
	"testing"
)

// TestReadme reads the example that people start from, and looks for the
// machines that they can choose.
func TestReadme(t *testing.T) {
	data, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(data)
	_, example, _ := strings.Cut(readme, "```yaml\n")
	example, _, _ = strings.Cut(example, "```")
	m, err := Parse("example.yaml", []byte(example))
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Devices) != 2 || len(m.Links) != 1 || m.Links[0].BandwidthMBps != 56_250 {
		t.Errorf("the example is %+v", m)
	}
	for _, name := range Names() {
		if !strings.Contains(readme, "| `"+name+"` |") {
			t.Errorf("%s is not listed", name)
		}
	}
}
