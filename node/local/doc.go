// Package local is the agent's door for people and programs on the node: HTTP
// with JSON over a unix socket that only its owner may open. There is no TCP
// port. Server and client share the types of this package.
//
//	GET    /v1/devices      a Report
//	POST   /v1/faults       a Fault: make a simulated device sick
//	DELETE /v1/faults/{id}  make it well again
//	GET    /v1/health       a Health; status 503 until the agent is ready
package local
