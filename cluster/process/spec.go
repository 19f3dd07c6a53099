// Package process runs the components of a cluster as child processes: it
// starts them in order, waits until each answers, starts again what dies, and
// stops them in the reverse order. What is run is data; see plan.
package process

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
)

// Spec describes one process.
type Spec struct {
	Name string
	// Args is the program's absolute path and its arguments.
	Args []string
	Env  []string
	// Cgroup is the folder the process is put in, below the cluster's own.
	Cgroup string
	// MountNamespace is the file of a pinned namespace that the process runs
	// in; empty for the machine's own.
	MountNamespace string
	// After names the processes that must be ready before this one starts.
	After []string
	// Ready tells when it can be used; nil means as soon as it runs.
	Ready Probe
}

// Probe tells whether a process can be used.
type Probe interface {
	Check(ctx context.Context) error
}

// Socket is ready when somebody accepts connections at the path.
type Socket string

// Check connects once.
func (s Socket) Check(ctx context.Context) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", string(s))
	if err != nil {
		return err
	}
	return conn.Close()
}

// Healthz is ready when the URL answers 200 over TLS.
type Healthz struct {
	URL       string
	CA        string
	Cert, Key string
}

// Check asks once.
func (h Healthz) Check(ctx context.Context) error {
	ca, err := os.ReadFile(h.CA)
	if err != nil {
		return err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(ca)
	cert, err := tls.LoadX509KeyPair(h.Cert, h.Key)
	if err != nil {
		return err
	}
	transport := &http.Transport{
		TLSClientConfig:   &tls.Config{RootCAs: pool, Certificates: []tls.Certificate{cert}},
		DisableKeepAlives: true,
	}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, h.URL, nil)
	if err != nil {
		return err
	}
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, 200))
		return fmt.Errorf("%s: %s", response.Status, body)
	}
	return nil
}
