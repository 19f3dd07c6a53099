package node

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/kilter-dev/kilter/device"
)

// agentRoot names the variable that makes the test binary an agent under the
// folder that is its value.
const agentRoot = "KILTER_TEST_AGENT_ROOT"

func TestMain(m *testing.M) {
	if root := os.Getenv(agentRoot); root != "" {
		if err := New(configuration(root, newFakeDriver(2))).Run(context.Background()); err != nil {
			_, _ = fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// process starts an agent as a process of its own.
func (s *site) process() *exec.Cmd {
	s.t.Helper()
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), agentRoot+"="+s.root)
	command.Stderr = os.Stderr
	if err := command.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { kill(command) })
	return command
}

func kill(command *exec.Cmd) {
	_ = command.Process.Signal(syscall.SIGKILL)
	_ = command.Wait()
}

func TestAgentIsKilledMidWork(t *testing.T) {
	s := newSite(t)
	s.Start()
	agent := s.process()
	s.ready(2)
	ids, _, err := s.Admit(t.Context(), s.pod("a", "u1"), gpu, 1)
	if err != nil {
		t.Fatal(err)
	}
	id := device.ID(ids[0])
	if d := s.device(id); len(d.Holders) != 1 {
		t.Fatalf("holders %v", d.Holders)
	}
	for range 3 {
		second := exec.Command(os.Args[0])
		second.Env = append(os.Environ(), agentRoot+"="+s.root)
		output, err := second.CombinedOutput()
		if want := fmt.Sprintf("pid %d on ", agent.Process.Pid); err == nil || !strings.Contains(string(output), want) {
			t.Errorf("a second agent: %v, %s; want a refusal that names %q", err, output, want)
		}
		kill(agent)
		s.Eventually("the kubelet has noticed", func() bool { return s.Healthy(gpu) == 0 })
		agent = s.process()
		s.ready(2)
		if d := s.device(id); len(d.Holders) != 1 || d.Holders[0].Pod != "a" {
			t.Errorf("holders after the kill: %v", d.Holders)
		}
		if _, _, err := s.Give(t.Context(), s.pod("b", "u2"), "main", gpu, ids[0]); err == nil || !strings.Contains(err.Error(), "default/a/main") {
			t.Errorf("the device of a running Pod: %v", err)
		}
	}
	if d := s.device(id); len(d.Holders) != 1 || d.Holders[0].Pod != "a" {
		t.Errorf("holders at the end: %v", d.Holders)
	}
}
