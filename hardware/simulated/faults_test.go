package simulated

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/kilter-dev/kilter/device"
)

// ended is a context that has ended, for a Watch that only reports once.
func ended(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}

func at(now time.Time) func(*Config) {
	return func(c *Config) { c.Now = func() time.Time { return now } }
}

func TestFaultsSurviveARestart(t *testing.T) {
	root := t.TempDir()
	first, later := time.Date(2031, 4, 5, 6, 7, 8, 9, time.UTC), time.Date(2032, 1, 1, 0, 0, 0, 0, time.UTC)

	before := open(t, "a40x4", root, at(first))
	ids := look(t, before)
	if err := errors.Join(
		before.Fail(ids[1].ID, "fell off the bus"),
		before.Fail(ids[3].ID, "too hot"),
		before.Heal(ids[3].ID),
	); err != nil {
		t.Fatal(err)
	}

	after := look(t, open(t, "a40x4", root, at(later)))
	for i, d := range after {
		want := device.Health{State: device.Healthy}
		if i == 1 {
			want = device.Health{State: device.Unhealthy, Reason: "fell off the bus", Since: first}
		}
		if d.ID != ids[i].ID || d.Health != want {
			t.Errorf("device %d was %s and is %s with health %+v", i, ids[i].ID, d.ID, d.Health)
		}
	}

	// A new reason does not make it sick anew, and a restart can heal.
	healer := open(t, "a40x4", root, at(later))
	if err := healer.Fail(ids[1].ID, "still off the bus"); err != nil {
		t.Fatal(err)
	}
	if got := look(t, healer)[1].Health; got.Reason != "still off the bus" || !got.Since.Equal(first) {
		t.Errorf("health is %+v", got)
	}
	if err := open(t, "a40x4", root).Heal(ids[1].ID); err != nil {
		t.Fatal(err)
	}
	if got := look(t, open(t, "a40x4", root))[1].Health; !got.OK() {
		t.Errorf("health is %+v", got)
	}
}

func TestMalformedFaultsAreMovedAside(t *testing.T) {
	id := string(open(t, "t4x2", t.TempDir()).devices[0].ID)
	for _, test := range []struct{ name, file, says string }{
		{"empty", "", "EOF"},
		{"cut off", `{"version": 1, "faults": {"` + id, "unexpected EOF"},
		{"another version", `{"version": 2, "faults": {}}`, "version 2 is not known, only 1"},
		{"no version", `{}`, "version 0 is not known"},
		{"unknown field", `{"version": 1, "faults": {}, "mood": "bad"}`, "unknown field"},
		{"no reason", `{"version": 1, "faults": {"` + id + `": {"since": "2031-04-05T06:07:08Z"}}}`, "sick without a reason"},
		{"no time", `{"version": 1, "faults": {"` + id + `": {"reason": "x", "since": "yesterday"}}}`, "yesterday"},
		{"more", `{"version": 1, "faults": {}} {}`, "something follows"},
	} {
		t.Run(test.name, func(t *testing.T) {
			root := t.TempDir()
			path := filepath.Join(root, faultsFile)
			if err := os.WriteFile(path, []byte(test.file), 0o644); err != nil {
				t.Fatal(err)
			}
			var log bytes.Buffer
			d := open(t, "t4x2", root, at(time.Unix(0, 0)), func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
			for _, reported := range look(t, d) {
				if !reported.Health.OK() {
					t.Errorf("%s is %+v", reported.ID, reported.Health)
				}
			}
			aside := path + ".malformed-19700101T000000.000000000Z"
			if kept, err := os.ReadFile(aside); err != nil || string(kept) != test.file {
				t.Errorf("kept was %q, %v", kept, err)
			}
			if !strings.Contains(log.String(), "level=ERROR") || !strings.Contains(log.String(), test.says) {
				t.Errorf("the log says %q, want %q", log.String(), test.says)
			}
			if err := d.Fail(device.ID(id), "new"); err != nil {
				t.Error(err)
			}
			if got := look(t, open(t, "t4x2", root))[0].Health.Reason; got != "new" {
				t.Errorf("after the mishap a fault is kept as %q", got)
			}
		})
	}
}

func TestFaultsOfAnotherMachineAreDropped(t *testing.T) {
	root := t.TempDir()
	other := open(t, "h100x8", root)
	if err := other.Fail(other.devices[0].ID, "sick"); err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	d := open(t, "t4x2", root, func(c *Config) { c.Logger = slog.New(slog.NewTextHandler(&log, nil)) })
	for _, reported := range look(t, d) {
		if !reported.Health.OK() {
			t.Errorf("%s is %+v", reported.ID, reported.Health)
		}
	}
	if !strings.Contains(log.String(), "level=WARN") || !strings.Contains(log.String(), string(other.devices[0].ID)) {
		t.Errorf("the log says %q", log.String())
	}
}

// TestFaultThatIsNotKept wants no device to fall sick, or recover, when that
// could not be written down.
func TestFaultThatIsNotKept(t *testing.T) {
	root := t.TempDir()
	d := open(t, "t4x2", root)
	sick, well := d.devices[0].ID, d.devices[1].ID
	if err := d.Fail(sick, "before"); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(root, faultsFile+".tmp", "in the way"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, err := range map[string]error{"Fail": d.Fail(well, "after"), "Heal": d.Heal(sick)} {
		if err == nil || !strings.Contains(err.Error(), "keep the fault of device") {
			t.Errorf("%s returned %v", name, err)
		}
	}
	for _, driver := range []*Driver{d, open(t, "t4x2", root)} {
		devices := look(t, driver)
		if devices[0].Health.Reason != "before" || !devices[1].Health.OK() {
			t.Errorf("the devices are %+v and %+v", devices[0].Health, devices[1].Health)
		}
	}
}

func TestCrashWhileWritingFaults(t *testing.T) {
	root := t.TempDir()
	d := open(t, "t4x2", root)
	if err := d.Fail(d.devices[0].ID, "kept"); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(root, faultsFile+".tmp"), []byte(`{"version": 1, "fau`), 0o600); err != nil {
		t.Fatal(err)
	}
	restarted := open(t, "t4x2", root)
	if got := look(t, restarted)[0].Health.Reason; got != "kept" {
		t.Errorf("after the crash the reason is %q", got)
	}
	if err := restarted.Fail(d.devices[1].ID, "next"); err != nil {
		t.Fatal(err)
	}
	if got := look(t, open(t, "t4x2", root))[1].Health.Reason; got != "next" {
		t.Errorf("the next reason is %q", got)
	}
}

func TestFailNeedsAReason(t *testing.T) {
	d := open(t, "t4x2", t.TempDir())
	if err := d.Fail(d.devices[0].ID, ""); err == nil || !strings.Contains(err.Error(), "needs a reason") {
		t.Errorf("got %v", err)
	}
}
