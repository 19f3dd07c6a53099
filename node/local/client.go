package local

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"syscall"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// ErrNoAgent is in the error of a call when no agent answers on the socket.
var ErrNoAgent = errors.New("no agent is running on this node")

// callTimeout is far above what the agent needs for an answer.
const callTimeout = 15 * time.Second

// Client talks to the agent of this node.
type Client struct {
	socket string
	http   *http.Client
}

// NewClient returns a client for the agent that listens on socket. It makes no
// call.
func NewClient(socket string) *Client {
	dialer := net.Dialer{}
	transport := &http.Transport{
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", socket)
		},
		DisableKeepAlives: true,
	}
	return &Client{socket: socket, http: &http.Client{Transport: transport, Timeout: callTimeout}}
}

// Devices asks for the node's devices and who holds them.
func (c *Client) Devices(ctx context.Context) (Report, error) {
	var report Report
	err := c.call(ctx, http.MethodGet, "/v1/devices", nil, &report)
	return report, err
}

// Fail makes a simulated device sick. The id may be the beginning of one, or
// the device's index; the answer is the full id.
func (c *Client) Fail(ctx context.Context, id, reason string) (device.ID, error) {
	var result FaultResult
	err := c.call(ctx, http.MethodPost, "/v1/faults", Fault{ID: id, Reason: reason}, &result)
	return result.ID, err
}

// Heal makes a simulated device well again.
func (c *Client) Heal(ctx context.Context, id string) (device.ID, error) {
	var result FaultResult
	err := c.call(ctx, http.MethodDelete, "/v1/faults/"+url.PathEscape(id), nil, &result)
	return result.ID, err
}

// Health asks whether the agent is ready. An agent that is not ready yet is no
// error.
func (c *Client) Health(ctx context.Context) (Health, error) {
	var health Health
	err := c.call(ctx, http.MethodGet, "/v1/health", nil, &health)
	return health, err
}

// call makes one request and reads the answer into result.
func (c *Client) call(ctx context.Context, method, path string, body, result any) error {
	encoded, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	// The host in the address is not used: the socket says where to go.
	request, err := http.NewRequestWithContext(ctx, method, "http://agent"+path, bytes.NewReader(encoded))
	if err != nil {
		return fmt.Errorf("ask the agent: %w", err)
	}
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return fmt.Errorf("%w: nobody listens on %s", ErrNoAgent, c.socket)
	case errors.Is(err, fs.ErrPermission):
		return fmt.Errorf("ask the agent on %s: permission denied; the socket is open to its owner only (root, as a rule)", c.socket)
	case err != nil:
		return fmt.Errorf("ask the agent on %s: %w", c.socket, err)
	}
	defer func() { _ = response.Body.Close() }()
	decoder := json.NewDecoder(response.Body)
	_, isHealth := result.(*Health)
	if response.StatusCode == http.StatusOK || isHealth && response.StatusCode == http.StatusServiceUnavailable {
		if err := decoder.Decode(result); err != nil {
			return fmt.Errorf("read the agent's answer: %w", err)
		}
		return nil
	}
	var failure errorBody
	if err := decoder.Decode(&failure); err != nil || failure.Error == "" {
		return fmt.Errorf("the agent answered %s", response.Status)
	}
	return errors.New(failure.Error)
}

// errorBody is what comes with a status that tells of a failure.
type errorBody struct {
	Error string `json:"error"`
}
