package onemachine

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/process"
)

// progress tells a person what is being done and how long it took.
type progress struct {
	out   io.Writer
	began time.Time
}

func newProgress(out io.Writer) *progress { return &progress{out: out, began: time.Now()} }

func (p *progress) step(what string, do func() error) error {
	fmt.Fprintf(p.out, "  %-48s", what)
	began := time.Now()
	if err := do(); err != nil {
		fmt.Fprintln(p.out, "failed")
		return err
	}
	fmt.Fprintf(p.out, "%6.1f s\n", time.Since(began).Seconds())
	return nil
}

// whatIsWrong names the processes that are not ready, with the end of their
// logs.
func whatIsWrong(files layout.Files) string {
	var report strings.Builder
	if supervisorPID(files.Lock()) == 0 {
		fmt.Fprintf(&report, "The supervisor is not running:\n%s", tail(files.Log("supervisor"), 5))
		return report.String()
	}
	statuses, _ := process.ReadStatus(files.Status())
	for _, status := range statuses {
		if status.State != process.Ready {
			fmt.Fprintf(&report, "%s is %s %s\n%s", status.Name, strings.ToLower(string(status.State)), status.LastExit, tail(files.Log(status.Name), 5))
		}
	}
	fmt.Fprintf(&report, "`kilter status` and `kilter logs COMPONENT` say more; `kilter up` again repairs, `kilter down` takes everything away.")
	return report.String()
}

// tail is the last lines of a file, indented.
func tail(path string, lines int) string {
	data, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	all := strings.Split(strings.TrimRight(string(data), "\n"), "\n")
	if len(all) > lines {
		all = all[len(all)-lines:]
	}
	return "    " + strings.Join(all, "\n    ") + "\n"
}
