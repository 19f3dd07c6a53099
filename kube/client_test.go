package kube

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
)

// server is an API server that answers every request with handler.
func server(t *testing.T, handler http.HandlerFunc) *Client {
	t.Helper()
	s := httptest.NewServer(handler)
	t.Cleanup(s.Close)
	client, err := NewClient(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client
}

func reply(w http.ResponseWriter, status int, body string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write([]byte(body))
}

func failure(reason string, code int) string {
	body, _ := json.Marshal(map[string]any{
		"apiVersion": "v1", "kind": "Status", "status": "Failure", "reason": reason, "code": code, "message": "because " + reason,
	})
	return string(body)
}

func TestPod(t *testing.T) {
	tests := map[string]struct {
		status int
		body   string
		uid    string
		alive  bool
		fails  bool
	}{
		"running":   {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Running"}}`, uid: "u1", alive: true},
		"pending":   {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Pending"}}`, uid: "u1", alive: true},
		"deleting":  {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1","deletionTimestamp":"2026-01-02T03:04:05Z"},"status":{"phase":"Running"}}`, uid: "u1", alive: true},
		"succeeded": {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Succeeded"}}`, uid: "u1"},
		"failed":    {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Failed"}}`, uid: "u1"},
		"unknown":   {status: 200, body: `{"apiVersion":"v1","kind":"Pod","metadata":{"uid":"u1"},"status":{"phase":"Unknown"}}`, uid: "u1", alive: true},
		"deleted":   {status: 404, body: failure("NotFound", 404)},
		"forbidden": {status: 403, body: failure("Forbidden", 403), fails: true},
		"broken":    {status: 500, body: failure("InternalError", 500), fails: true},
		"no object": {status: 200, body: `{"apiVersion":`, fails: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			client := server(t, func(w http.ResponseWriter, r *http.Request) {
				if r.URL.Path != "/api/v1/namespaces/ns/pods/p" {
					t.Errorf("asked for %s", r.URL.Path)
				}
				reply(w, test.status, test.body)
			})
			uid, alive, err := client.Pod(t.Context(), "ns", "p")
			if uid != test.uid || alive != test.alive || (err != nil) != test.fails {
				t.Errorf("got %q, %v, %v", uid, alive, err)
			}
			if err != nil && !strings.Contains(err.Error(), "ns/p") {
				t.Errorf("the error does not name the Pod: %v", err)
			}
		})
	}
}

func TestPodWithoutAServer(t *testing.T) {
	client, err := NewClient(&rest.Config{Host: "http://127.0.0.1:1"})
	if err != nil {
		t.Fatal(err)
	}
	if uid, _, err := client.Pod(t.Context(), "ns", "p"); err == nil {
		t.Errorf("no API server, and yet the Pod is %q", uid)
	}
}

func TestNode(t *testing.T) {
	client := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/nodes/n1" {
			reply(w, 404, failure("NotFound", 404))
			return
		}
		reply(w, 200, `{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","uid":"u1"}}`)
	})
	if node, err := client.Node(t.Context(), "n1"); err != nil || node.UID != "u1" {
		t.Errorf("node n1: %v, %v", node, err)
	}
	if _, err := client.Node(t.Context(), "n2"); err == nil || !strings.Contains(err.Error(), "n2") {
		t.Errorf("node n2: %v", err)
	}
}

func testEvent() PodEvent {
	return PodEvent{
		Namespace: "ns", Pod: "p", UID: "u1", Node: "n1", Type: Warning, Reason: ReasonDeviceUnhealthy,
		Message: "too hot", Time: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC),
	}
}

func TestCreateEvent(t *testing.T) {
	var got corev1.Event
	client := server(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost || r.URL.Path != "/api/v1/namespaces/ns/events" {
			t.Errorf("%s %s", r.Method, r.URL.Path)
		}
		if err := json.NewDecoder(r.Body).Decode(&got); err != nil {
			t.Errorf("body: %v", err)
		}
		reply(w, 201, `{"apiVersion":"v1","kind":"Event","metadata":{"name":"x"}}`)
	})
	if err := client.CreateEvent(t.Context(), testEvent()); err != nil {
		t.Fatal(err)
	}
	if got.InvolvedObject.Kind != "Pod" || got.InvolvedObject.Name != "p" || got.InvolvedObject.Namespace != "ns" || got.InvolvedObject.UID != "u1" {
		t.Errorf("involved: %+v", got.InvolvedObject)
	}
	if got.Type != "Warning" || got.Reason != "DeviceUnhealthy" || got.Message != "too hot" || got.Source.Host != "n1" || got.Count != 1 {
		t.Errorf("event: %+v", got)
	}
	if !got.FirstTimestamp.Equal(&got.LastTimestamp) || got.FirstTimestamp.UTC() != testEvent().Time {
		t.Errorf("times: %v, %v", got.FirstTimestamp, got.LastTimestamp)
	}
}

func TestCreateEventFailures(t *testing.T) {
	for reason, test := range map[string]struct {
		status         int
		fails, refused bool
	}{
		"AlreadyExists": {409, false, false},
		"NotFound":      {404, true, true},
		"Forbidden":     {403, true, true},
		"Invalid":       {422, true, true},
		"InternalError": {500, true, false},
	} {
		t.Run(reason, func(t *testing.T) {
			client := server(t, func(w http.ResponseWriter, _ *http.Request) { reply(w, test.status, failure(reason, test.status)) })
			err := client.CreateEvent(t.Context(), testEvent())
			if (err != nil) != test.fails || errors.Is(err, ErrRefused) != test.refused {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestEventNames(t *testing.T) {
	event := testEvent()
	if event.name() != testEvent().name() {
		t.Error("the same event has two names")
	}
	for what, change := range map[string]func(*PodEvent){
		"another Pod of the name": func(e *PodEvent) { e.UID = "u2" },
		"another reason":          func(e *PodEvent) { e.Reason = ReasonDeviceRecovered },
		"another message":         func(e *PodEvent) { e.Message = "x" },
		"another time":            func(e *PodEvent) { e.Time = e.Time.Add(time.Second) },
	} {
		other := testEvent()
		change(&other)
		if other.name() == event.name() {
			t.Errorf("%s has the same name", what)
		}
	}
	event.Pod = strings.Repeat("a", 235) + "-" + strings.Repeat("b", 17)
	if name := event.name(); len(name) > longestName || strings.Contains(name, "-.") {
		t.Errorf("the name of a long Pod's event: %q, %d characters", name, len(name))
	}
}
