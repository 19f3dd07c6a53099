// Package kube is where Kilter's vocabulary meets Kubernetes': resource names
// and devices, and the few calls that the agent makes to the API server.
//
// The client is deliberately small. It holds no cache and watches nothing, so
// that an idle agent costs an idle connection and little memory.
package kube
