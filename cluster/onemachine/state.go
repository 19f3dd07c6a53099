// Package onemachine brings a real Kubernetes up on one machine, looks after
// it and takes it away again without a trace.
//
// Up prepares keys, certificates and configuration in the data folder and
// leaves a supervisor running, which borrows what it needs from the machine
// (package host) and keeps the processes running (package process) that plan
// describes. Down ends the supervisor and gives everything back, also when
// the supervisor is no longer there to help.
package onemachine

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/kilter-dev/kilter/cluster/layout"
	"github.com/kilter-dev/kilter/cluster/plan"
	"github.com/kilter-dev/kilter/cluster/process"
)

const stateVersion = 1

// state is what is remembered of a cluster between commands.
type state struct {
	Version  int       `json:"version"`
	Spec     plan.Spec `json:"spec"`
	Programs string    `json:"programs"`
	// MadeFolders are folders outside the data folder that were not there
	// before; Down removes them.
	MadeFolders []string `json:"madeFolders"`
}

// ErrNoCluster says that the data folder holds no cluster.
var ErrNoCluster = errors.New("no cluster is here; `kilter up` brings one up")

func readState(files layout.Files) (state, error) {
	data, err := os.ReadFile(files.State())
	if errors.Is(err, os.ErrNotExist) {
		return state{}, ErrNoCluster
	}
	if err != nil {
		return state{}, fmt.Errorf("read what the cluster is made of: %w", err)
	}
	var s state
	if err := json.Unmarshal(data, &s); err != nil {
		return state{}, fmt.Errorf("%s is damaged (%w); `kilter down` takes the cluster away", files.State(), err)
	}
	if s.Version != stateVersion {
		return state{}, fmt.Errorf("%s was written by another version of kilter; `kilter down` with that version, or remove %s", files.State(), files.Data)
	}
	return s, nil
}

func writeState(files layout.Files, s state) error {
	s.Version = stateVersion
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return process.WriteFile(files.State(), data, 0o600)
}

// cluster is the state with its places.
func (s state) cluster(files layout.Files) plan.Cluster {
	return plan.Cluster{Spec: s.Spec, Files: files, Programs: s.Programs, CanRaiseOOMScore: canRaiseOOMScore()}
}

// canRaiseOOMScore reports whether this process has CAP_SYS_RESOURCE.
func canRaiseOOMScore() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if err := unix.Capget(&header, &data[0]); err != nil {
		return false
	}
	return data[0].Effective&(1<<unix.CAP_SYS_RESOURCE) != 0
}

// describe names the nodes of a spec as a person would type them.
func describe(spec plan.Spec) string {
	var nodes []string
	for _, node := range spec.Nodes {
		nodes = append(nodes, "--node "+node.Name+"="+node.Machine)
	}
	return strings.Join(nodes, " ")
}
