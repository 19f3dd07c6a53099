package onemachine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/cluster/host"
	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/plan"
	"github.com/kilter-dev/kilter/machines"
)

// UpOptions are what a user can say about a new cluster.
type UpOptions struct {
	Files layout.Files
	// Nodes are NAME=MACHINE; none means the machine's own hardware, or a
	// simulated machine where there is none.
	Nodes []string
	// Subnet is empty for the default.
	Subnet string
	// Programs is the folder of the cluster's programs.
	Programs string
	Timeout  time.Duration
	// Out is told what happens.
	Out io.Writer
}

// DefaultMachine is what is simulated on a machine without GPUs.
const DefaultMachine = "h100x8"

// Up brings a cluster up, or repairs the one that is there, and returns when
// its nodes are ready and their devices advertised.
func Up(ctx context.Context, options UpOptions) error {
	if err := requireRoot(); err != nil {
		return err
	}
	s, err := decide(options)
	if err != nil {
		return err
	}
	c := s.cluster(options.Files)
	running := supervisorPID(options.Files.Lock()) != 0
	if !running {
		if err := endRemains(ctx, c); err != nil {
			return err
		}
		if err := preflight(c); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, options.Timeout)
	defer cancel()
	progress := newProgress(options.Out)
	if err := os.MkdirAll(options.Files.Data, 0o700); err != nil {
		return fmt.Errorf("make the data folder: %w", err)
	}
	unlock, err := onlyOne(options.Files)
	if err != nil {
		return err
	}
	defer unlock()
	if !running {
		// Remembered before they are made: a crash in between loses nothing.
		s.MadeFolders = append(s.MadeFolders, host.MissingFolders(mountPoints(c))...)
		if err := writeState(options.Files, s); err != nil {
			return err
		}
		if err := progress.step("keys, certificates and configuration", func() error { return writeFiles(c) }); err != nil {
			return err
		}
		if err := startSupervisor(c); err != nil {
			return err
		}
	}
	if err := bringUp(ctx, c, progress); err != nil {
		return fmt.Errorf("%w\n%s", err, whatIsWrong(options.Files))
	}
	return nil
}

// decide merges what the user asks for with the cluster that may be there.
func decide(options UpOptions) (state, error) {
	existing, err := readState(options.Files)
	isNew := errors.Is(err, ErrNoCluster)
	if err != nil && !isNew {
		return state{}, err
	}
	existing.Programs = options.Programs
	if !isNew && len(options.Nodes) == 0 && options.Subnet == "" {
		return existing, nil
	}
	wanted, err := specOf(options)
	if err != nil {
		return state{}, err
	}
	if isNew {
		return state{Spec: wanted, Programs: options.Programs}, nil
	}
	if !slices.Equal(wanted.Nodes, existing.Spec.Nodes) || wanted.Subnet != existing.Spec.Subnet {
		return state{}, fmt.Errorf("a cluster with %s on %s is here already; `kilter down` takes it away first", describe(existing.Spec), existing.Spec.Subnet)
	}
	return existing, nil
}

// specOf reads the user's words.
func specOf(options UpOptions) (plan.Spec, error) {
	subnet, err := netip.ParsePrefix(orDefault(options.Subnet, layout.DefaultSubnet))
	if err != nil {
		return plan.Spec{}, fmt.Errorf("--subnet: %w", err)
	}
	if err := (layout.Addresses{Subnet: subnet}).Check(); err != nil {
		return plan.Spec{}, fmt.Errorf("--subnet: %w", err)
	}
	nodes, err := parseNodes(options.Nodes)
	if err != nil {
		return plan.Spec{}, err
	}
	if len(nodes) == 0 {
		nodes = []plan.Node{{Name: "gpu", Machine: plan.OwnHardware}}
		if !hasGPU() {
			nodes = []plan.Node{{Name: DefaultMachine, Machine: DefaultMachine}}
		}
	}
	return plan.Spec{Nodes: nodes, Subnet: subnet}, nil
}

// A node's name is a Kubernetes name without dots, short enough for sockets.
var nodeName = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]{0,30}[a-z0-9])?$`)

func parseNodes(words []string) ([]plan.Node, error) {
	var nodes []plan.Node
	seen := map[string]bool{}
	own := 0
	for _, word := range words {
		name, machine, ok := strings.Cut(word, "=")
		if !ok || !nodeName.MatchString(name) {
			return nil, fmt.Errorf("--node %s: a node is NAME=MACHINE, with a name of at most 32 lower-case letters, digits and dashes; machines are %s, %s", word, strings.Join(machines.Names(), ", "), plan.OwnHardware)
		}
		if seen[name] {
			return nil, fmt.Errorf("--node %s: there are two nodes of that name", word)
		}
		seen[name] = true
		if machine == plan.OwnHardware {
			own++
		} else if !slices.Contains(machines.Names(), machine) {
			return nil, fmt.Errorf("--node %s: no machine is called %q; there are %s, and %s for this machine's own devices", word, machine, strings.Join(machines.Names(), ", "), plan.OwnHardware)
		}
		nodes = append(nodes, plan.Node{Name: name, Machine: machine})
	}
	if own > 1 {
		return nil, fmt.Errorf("only one node can have this machine's own devices, and %d ask for them", own)
	}
	if len(nodes) > layout.MaxNodes {
		return nil, fmt.Errorf("%d nodes are too many for one machine: at most %d", len(nodes), layout.MaxNodes)
	}
	return nodes, nil
}

// hasGPU reports whether a GPU's driver is loaded on this machine.
func hasGPU() bool {
	gpus, _ := filepath.Glob("/proc/driver/nvidia/gpus/*")
	return len(gpus) > 0
}

func orDefault(value, fallback string) string {
	if value == "" {
		return fallback
	}
	return value
}

// endRemains ends what a killed supervisor may have left: its processes die
// with it, but not within the same instant. Containers and their shims stay.
func endRemains(ctx context.Context, c plan.Cluster) error {
	cgroups, err := host.FindCgroups()
	if err != nil {
		return err
	}
	return poll(ctx, func() (string, error) {
		left := ""
		for _, group := range c.Cgroups() {
			for _, pid := range cgroups.Processes(group) {
				program, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid))
				switch {
				case program == c.Program("kilter-cluster") || program == c.Program("containerd"):
					_ = syscall.Kill(pid, syscall.SIGKILL)
					left = fmt.Sprintf("%s (pid %d) of the last supervisor does not end", program, pid)
				case err != nil:
					// Its memory is gone already, and its sockets go with its
					// last thread; after that it is no longer in the cgroup.
					left = fmt.Sprintf("process %d of the last supervisor does not end", pid)
				}
			}
		}
		return left, nil
	})
}

// onlyOne keeps two commands from changing one cluster at once.
func onlyOne(files layout.Files) (release func(), err error) {
	file, err := os.OpenFile(filepath.Join(files.Data, "command.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(file.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, errors.New("another `kilter up` or `kilter down` is at work on this cluster: wait for it")
	}
	return func() { file.Close() }, nil
}

// startSupervisor starts the supervisor so that it outlives this command, and
// waits until it has taken its lock.
func startSupervisor(c plan.Cluster) error {
	cgroups, err := host.FindCgroups()
	if err != nil {
		return err
	}
	if err := cgroups.Make(supervisorCgroup); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(c.Files.Log("supervisor")), 0o700); err != nil {
		return err
	}
	log, err := os.OpenFile(c.Files.Log("supervisor"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	self := c.Program("kilter-cluster")
	cmd := exec.Command(self, LaunchCommand, supervisorCgroup, "", "--", self, SuperviseCommand, "--data", c.Files.Data)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start the supervisor: %w", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for supervisorPID(c.Files.Lock()) != cmd.Process.Pid {
		select {
		case <-ended:
			return fmt.Errorf("the supervisor ended at once:\n%s", tail(c.Files.Log("supervisor"), 5))
		case <-time.After(10 * time.Millisecond):
		}
	}
	return nil
}
