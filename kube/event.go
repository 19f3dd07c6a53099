package kube

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// EventType says how an event is shown to people.
type EventType string

const (
	// Normal events tell what went as it should.
	Normal EventType = "Normal"
	// Warning events tell what somebody may have to look at.
	Warning EventType = "Warning"
)

// The reasons of the events that the agent writes.
const (
	// ReasonDeviceUnhealthy is on a Pod that holds a device which fell sick.
	ReasonDeviceUnhealthy = "DeviceUnhealthy"
	// ReasonDeviceRecovered is on a Pod that holds a device which is well again.
	ReasonDeviceRecovered = "DeviceRecovered"
)

// PodEvent is something that the owner of a Pod should know, shown by
// kubectl describe.
type PodEvent struct {
	Namespace string
	Pod       string
	UID       string

	// Node is where it happened.
	Node string

	Type    EventType
	Reason  string
	Message string
	Time    time.Time
}

// component is the name that stands beside Kilter's events.
const component = "kilter-agent"

// longestName is the most that Kubernetes takes for the name of an object.
const longestName = 253

// name is made of what the event says and when it began, so that telling the
// same thing twice, also over a restart of the agent, gives one event.
func (e PodEvent) name() string {
	sum := sha256.New()
	for _, part := range []string{e.UID, e.Node, string(e.Type), e.Reason, e.Message, e.Time.UTC().Format(time.RFC3339)} {
		sum.Write([]byte(part))
		sum.Write([]byte{0})
	}
	suffix := "." + hex.EncodeToString(sum.Sum(nil)[:8])
	stem := e.Pod
	if len(stem) > longestName-len(suffix) {
		stem = strings.TrimRight(stem[:longestName-len(suffix)], "-.")
	}
	return stem + suffix
}

// object is the event as the API server takes it.
func (e PodEvent) object() *corev1.Event {
	at := metav1.NewTime(e.Time)
	return &corev1.Event{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "Event"},
		ObjectMeta: metav1.ObjectMeta{Namespace: e.Namespace, Name: e.name()},
		InvolvedObject: corev1.ObjectReference{
			APIVersion: "v1",
			Kind:       "Pod",
			Namespace:  e.Namespace,
			Name:       e.Pod,
			UID:        types.UID(e.UID),
		},
		Type:           string(e.Type),
		Reason:         e.Reason,
		Message:        e.Message,
		Source:         corev1.EventSource{Component: component, Host: e.Node},
		FirstTimestamp: at,
		LastTimestamp:  at,
		Count:          1,
	}
}
