// Package node is the agent: it finds the node's devices, offers them to the
// kubelet, keeps the book of who holds what, tells Pods when a device of
// theirs falls sick, and answers people on the node.
package node

import (
	"context"
)

// Agent is the agent of one node.
type Agent struct {
	config Config
}

// New returns an agent. It does nothing until Run.
func New(config Config) *Agent {
	return &Agent{config: config.withDefaults()}
}

// Run does the agent's work until ctx ends, and then returns nil. It returns
// an error when it can not go on; starting it again is then the way forward.
func (a *Agent) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}
