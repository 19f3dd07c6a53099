package node

import (
	"strings"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
	"github.com/kilter-dev/kilter/kube"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
)

func TestNotices(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	since := now.Add(-time.Hour)
	in := func(state device.HealthState, reason string) device.Device {
		return device.Device{ID: "d0", Model: "M", Index: 3, Health: device.Health{State: state, Reason: reason, Since: since}}
	}
	held := func(pod, uid, container string) ledger.Hold {
		return ledger.Hold{Device: "d0", Resource: gpu, Holder: ledger.Holder{Namespace: "ns", Pod: pod, UID: uid, Container: container}}
	}
	a := held("a", "u1", "main")
	key := noticeKey{"d0", "ns", "a", "u1"}
	told := map[noticeKey]bool{key: true}

	tests := map[string]struct {
		told       map[noticeKey]bool
		devices    []device.Device
		incomplete bool
		holds      []ledger.Hold
		// want are the reasons of the events, and text what the first says.
		want     []string
		text     string
		thenTold bool
	}{
		"well":                       {devices: []device.Device{in(device.Healthy, "")}, holds: []ledger.Hold{a}},
		"sick and nobody has it":     {devices: []device.Device{in(device.Unhealthy, "x")}},
		"sick":                       {devices: []device.Device{in(device.Unhealthy, "XID 79.")}, holds: []ledger.Hold{a}, want: []string{"DeviceUnhealthy"}, text: "nvidia.com/gpu 3 (M, d0): XID 79. The Pod keeps", thenTold: true},
		"sick without a reason":      {devices: []device.Device{in(device.Unhealthy, "")}, holds: []ledger.Hold{a}, want: []string{"DeviceUnhealthy"}, text: "the device is unhealthy", thenTold: true},
		"sick and told":              {told: told, devices: []device.Device{in(device.Unhealthy, "y")}, holds: []ledger.Hold{a}, thenTold: true},
		"two containers of a Pod":    {devices: []device.Device{in(device.Unhealthy, "x")}, holds: []ledger.Hold{a, held("a", "u1", "side")}, want: []string{"DeviceUnhealthy"}, thenTold: true},
		"another Pod of the name":    {told: map[noticeKey]bool{{"d0", "ns", "a", "u0"}: true}, devices: []device.Device{in(device.Unhealthy, "x")}, holds: []ledger.Hold{a}, want: []string{"DeviceUnhealthy"}, thenTold: true},
		"suspect":                    {devices: []device.Device{in(device.Suspect, "x")}, holds: []ledger.Hold{a}},
		"on trial":                   {told: told, devices: []device.Device{in(device.Recovering, "x")}, holds: []ledger.Hold{a}, thenTold: true},
		"well again":                 {told: told, devices: []device.Device{in(device.Healthy, "")}, holds: []ledger.Hold{a}, want: []string{"DeviceRecovered"}, text: "nvidia.com/gpu 3 (M, d0) is well again."},
		"well again, the Pod ended":  {told: told, devices: []device.Device{in(device.Healthy, "")}},
		"vanished":                   {holds: []ledger.Hold{a}, want: []string{"DeviceUnhealthy"}, text: "nvidia.com/gpu 3 (M, d0): the device has vanished", thenTold: true},
		"not yet reported":           {incomplete: true, holds: []ledger.Hold{a}},
		"vanished, told, back again": {told: told, devices: []device.Device{in(device.Healthy, "")}, holds: []ledger.Hold{a}, want: []string{"DeviceRecovered"}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			snapshot := inventory.Snapshot{Devices: test.devices, Complete: !test.incomplete}
			remembered := map[device.ID]device.Device{"d0": in(device.Healthy, "")}
			events, next := notices(test.told, snapshot, test.holds, remembered, now)
			var reasons []string
			for _, event := range events {
				reasons = append(reasons, event.Reason)
				if event.UID != "u1" || event.Pod != "a" || event.Namespace != "ns" {
					t.Errorf("told to %+v", event)
				}
				if want := map[string]kube.EventType{"DeviceUnhealthy": kube.Warning, "DeviceRecovered": kube.Normal}[event.Reason]; event.Type != want {
					t.Errorf("type %s", event.Type)
				}
				if len(test.devices) > 0 && !event.Time.Equal(since) {
					t.Errorf("time %v, want when the state was entered", event.Time)
				}
			}
			if strings.Join(reasons, " ") != strings.Join(test.want, " ") {
				t.Fatalf("events %v, want %v", reasons, test.want)
			}
			if len(events) > 0 && !strings.Contains(events[0].Message, test.text) {
				t.Errorf("message %q, want %q in it", events[0].Message, test.text)
			}
			if next[key] != test.thenTold {
				t.Errorf("told after that: %v", next)
			}
			again, _ := notices(next, snapshot, test.holds, remembered, now)
			if len(again) != 0 {
				t.Errorf("told twice: %v", again)
			}
		})
	}
}

func TestVanishedDeviceThatNobodyRemembers(t *testing.T) {
	hold := ledger.Hold{Device: "d0", Resource: gpu, Holder: ledger.Holder{Namespace: "ns", Pod: "a", UID: "u1"}}
	events, _ := notices(nil, inventory.Snapshot{Complete: true}, []ledger.Hold{hold}, nil, time.Now())
	if len(events) != 1 || !strings.HasPrefix(events[0].Message, "nvidia.com/gpu d0: ") {
		t.Errorf("events %v", events)
	}
}
