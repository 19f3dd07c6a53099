package simulated

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/machines"
)

// killedAgent names the folder in which the test binary, run as a child, has
// devices fall sick and recover until it is killed.
const killedAgent = "KILTER_TEST_KILLED_AGENT"

func TestMain(m *testing.M) {
	if root := os.Getenv(killedAgent); root != "" {
		fmt.Fprintln(os.Stderr, beKilled(root))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func beKilled(root string) error {
	machine, err := machines.Load("t4x2")
	if err != nil {
		return err
	}
	d, err := New(Config{Machine: machine, NodeName: "node-a", Root: root})
	if err != nil {
		return err
	}
	for round := 0; ; round++ {
		if err := d.Fail(d.devices[0].ID, fmt.Sprintf("round %d", round)); err != nil {
			return err
		}
		fmt.Println(round)
	}
}

// TestKill kills an agent in the middle of its writing, and wants the fault
// that it had last confirmed, or a later one.
func TestKill(t *testing.T) {
	root := t.TempDir()
	for kill := range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		agent := exec.CommandContext(ctx, os.Args[0])
		agent.Env = append(os.Environ(), killedAgent+"="+root)
		output, err := agent.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		lines, confirmed := bufio.NewScanner(output), -1
		for confirmed < 3*kill && lines.Scan() {
			confirmed++
		}
		if err := agent.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			confirmed++
		}
		if err := agent.Wait(); confirmed < 0 || agent.ProcessState.ExitCode() != -1 {
			t.Fatalf("the agent ended by itself: %v", err)
		}

		var log bytes.Buffer
		d := open(t, "t4x2", root, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
		reason := look(t, d)[0].Health.Reason
		var kept int
		if _, err := fmt.Sscanf(reason, "round %d", &kept); err != nil || kept < confirmed {
			t.Errorf("confirmed was round %d, kept is %q", confirmed, reason)
		}
		if log.Len() > 0 {
			t.Errorf("the log says %s", log.String())
		}
	}
}
