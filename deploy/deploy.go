// Package deploy holds the manifests that install Kilter into a cluster, so
// that `kilter up` installs it exactly as its users do.
package deploy

import _ "embed"

// Manifest is kilter.yaml.
//
//go:embed kilter.yaml
var Manifest []byte

// Names that stand in the manifest.
const (
	Namespace = "kilter-system"
	Image     = "kilter.dev/kilter:latest"
	// AgentSelector finds the Pods of both DaemonSets.
	AgentSelector = "app.kubernetes.io/name=kilter-agent"
)

// SimulateLabel is the node label that names the machine which the agent
// replays there.
const SimulateLabel = "kilter.dev/simulate"
