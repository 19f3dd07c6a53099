package local

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/device"
)

// agent answers what the test says.
type agent struct {
	report  Report
	err     error
	health  Health
	faults  map[device.ID]string
	devices []device.Device
}

func (a *agent) Report(context.Context) (Report, error) { return a.report, a.err }
func (a *agent) Health() Health                         { return a.health }

func (a *agent) Fail(text, reason string) (device.ID, error) {
	id, err := Resolve(a.devices, text, "simulated")
	if err == nil {
		a.faults[id] = reason
	}
	return id, err
}

func (a *agent) Heal(text string) (device.ID, error) {
	id, err := Resolve(a.devices, text, "simulated")
	delete(a.faults, id)
	return id, err
}

// serve runs a server for the agent and returns its socket.
func serve(t *testing.T, a *agent) string {
	t.Helper()
	socket := filepath.Join(tempFolder(t), "run", "agent.sock")
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	server := NewServer(socket, a, a, slog.New(slog.NewTextHandler(io.Discard, nil)))
	go func() { ended <- server.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		if _, err := os.Stat(socket); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("the socket is left behind: %v", err)
		}
	})
	for deadline := time.Now().Add(10 * time.Second); ; {
		if info, err := os.Stat(socket); err == nil && info.Mode().Perm() == 0o600 {
			return socket
		}
		if time.Now().After(deadline) {
			t.Fatal("the socket does not come")
		}
		time.Sleep(time.Millisecond)
	}
}

func TestDevicesRoundTrip(t *testing.T) {
	want := Report{Node: "n1", Devices: []Device{{
		Device: device.Device{
			ID: "GPU-1", Vendor: "nvidia.com", Kind: "gpu", Model: "H100", Index: 1, NUMANode: -1,
			Capacity: device.Capacity{MemoryBytes: 80 << 30, Multiprocessors: 132},
			Attributes: map[string]device.Attribute{
				"architecture": device.String("Hopper"), "count": device.Int(1 << 40), "migCapable": device.Bool(true),
			},
			Links:  []device.Link{{Peer: "GPU-2", Kind: device.NVSwitch, Lanes: 18, BandwidthMBps: 450000}},
			Health: device.Health{State: device.Unhealthy, Reason: "XID 79", Since: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)},
		},
		Resource: "nvidia.com/gpu", Door: DoorDevicePlugin, Note: "it is unhealthy",
		Holders: []Holder{{Namespace: "default", Pod: "a", UID: "u1", Container: "main"}},
	}}}
	a := &agent{report: want}
	client := NewClient(serve(t, a))
	got, err := client.Devices(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if name := got.Devices[0].Holders[0].String(); name != "default/a/main" {
		t.Errorf("the holder is shown as %q", name)
	}

	a.err = errors.New("the book is lost")
	if _, err := client.Devices(t.Context()); err == nil || err.Error() != "the book is lost" {
		t.Errorf("error %v", err)
	}
}

func TestUnreadableAttributes(t *testing.T) {
	for _, attributes := range []string{`{"x": 1.5}`, `{"x": [1]}`, `{"x": null}`, `7`} {
		var d Device
		if err := json.Unmarshal([]byte(`{"id": "d0", "attributes": `+attributes+`}`), &d); err == nil {
			t.Errorf("%s was read as %v", attributes, d.Attributes)
		}
	}
}

func TestHealth(t *testing.T) {
	a := &agent{health: Health{Waiting: []string{"nvidia.com/gpu: the kubelet is not there yet"}}}
	socket := serve(t, a)
	client := NewClient(socket)
	got, err := client.Health(t.Context())
	if err != nil || cmp.Diff(a.health, got) != "" {
		t.Errorf("%+v, %v", got, err)
	}
	if status := get(t, socket, "/v1/health"); status != http.StatusServiceUnavailable {
		t.Errorf("status %d for an agent that is not ready", status)
	}
	a.health = Health{Ready: true}
	if got, err := client.Health(t.Context()); err != nil || !got.Ready {
		t.Errorf("%+v, %v", got, err)
	}
	if status := get(t, socket, "/v1/health"); status != http.StatusOK {
		t.Errorf("status %d for an agent that is ready", status)
	}
}

// get makes a request as curl --unix-socket would.
func get(t *testing.T, socket, path string) int {
	t.Helper()
	response, err := NewClient(socket).http.Get("http://agent" + path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	return response.StatusCode
}

func TestFaults(t *testing.T) {
	a := &agent{faults: make(map[device.ID]string), devices: []device.Device{
		{ID: "GPU-aa11", Index: 0}, {ID: "GPU-ab22", Index: 1}, {ID: "/dev/fpga0", Index: 2},
	}}
	client := NewClient(serve(t, a))
	for text, want := range map[string]device.ID{"GPU-aa11": "GPU-aa11", "GPU-ab": "GPU-ab22", "1": "GPU-ab22", "/dev/fpga0": "/dev/fpga0"} {
		id, err := client.Fail(t.Context(), text, "too hot")
		if err != nil || id != want || a.faults[want] != "too hot" {
			t.Errorf("fail %s: %s, %v", text, id, err)
		}
		id, err = client.Heal(t.Context(), text)
		if err != nil || id != want || len(a.faults) != 0 {
			t.Errorf("heal %s: %s, %v, left %v", text, id, err, a.faults)
		}
	}
	_, err := client.Fail(t.Context(), "X", "too hot")
	if want := `no simulated device "X"; the node has 0 (GPU-aa11), 1 (GPU-ab22), 2 (/dev/fpga0)`; err == nil || err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
	if _, err := client.Heal(t.Context(), "GPU-a"); err == nil || !strings.Contains(err.Error(), "could be any of [GPU-aa11 GPU-ab22]") {
		t.Errorf("an id that is not clear: %v", err)
	}
	if _, err := client.Fail(t.Context(), "0", ""); err == nil || !strings.Contains(err.Error(), "needs a reason") {
		t.Errorf("without a reason: %v", err)
	}
}

func TestBadRequests(t *testing.T) {
	socket := serve(t, &agent{faults: make(map[device.ID]string), devices: []device.Device{{ID: "GPU-0"}}})
	for body, want := range map[string]string{
		`{`: "want", `{}`: "needs a reason", `{"id": "0", "reason": "x", "more": 1}`: "unknown field", `[]`: "want", `{"id":"0","reason":"x"} {}`: "more than one",
	} {
		status, text := post(t, socket, body)
		if status != http.StatusBadRequest || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", body, status, text)
		}
	}
	if status := get(t, socket, "/v1/unknown"); status != http.StatusNotFound {
		t.Errorf("an unknown path: %d", status)
	}
}

func post(t *testing.T, socket, body string) (int, string) {
	t.Helper()
	response, err := NewClient(socket).http.Post("http://agent/v1/faults", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

func TestNobodyListens(t *testing.T) {
	socket := filepath.Join(tempFolder(t), "a.sock")
	if _, err := NewClient(socket).Devices(t.Context()); !errors.Is(err, ErrNoAgent) || !strings.Contains(err.Error(), socket) {
		t.Errorf("no socket: %v", err)
	}
	leaveSocket(t, socket)
	if _, err := NewClient(socket).Devices(t.Context()); !errors.Is(err, ErrNoAgent) {
		t.Errorf("a socket that was left behind: %v", err)
	}
}

// leaveSocket makes a socket on which nobody listens.
func leaveSocket(t *testing.T, path string) {
	t.Helper()
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	listener.(*net.UnixListener).SetUnlinkOnClose(false)
	_ = listener.Close()
}

// tempFolder has a path short enough for sockets.
func tempFolder(t *testing.T) string {
	t.Helper()
	root, err := os.MkdirTemp("", "kilter")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(root) })
	return root
}

func TestSocketAndFolderAreTheOwnersAlone(t *testing.T) {
	socket := serve(t, &agent{})
	for path, want := range map[string]os.FileMode{socket: 0o600, filepath.Dir(socket): 0o700} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
}

func TestSocketLeftBehindIsReplaced(t *testing.T) {
	socket := filepath.Join(tempFolder(t), "agent.sock")
	leaveSocket(t, socket)
	listener, err := NewServer(socket, nil, nil, nil).listen()
	if err != nil {
		t.Fatal(err)
	}
	_ = listener.Close()
}
