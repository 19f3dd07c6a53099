package node

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/node/deviceplugin"
	"github.com/kilter-dev/kilter/node/inventory"
	"github.com/kilter-dev/kilter/node/ledger"
	"github.com/kilter-dev/kilter/node/local"
	"github.com/kilter-dev/kilter/node/terms"
)

const shared = "nvidia.com/gpu.shared"

// configMap is a folder as the kubelet mounts a ConfigMap: the file is a link
// into a folder that is a link to the present version.
type configMap struct {
	t       *testing.T
	folder  string
	version int
}

// write exchanges the file as the kubelet does.
func (m *configMap) write(text string) {
	m.t.Helper()
	m.version++
	version := fmt.Sprintf("..version%d", m.version)
	steps := []error{
		os.Mkdir(filepath.Join(m.folder, version), 0o755),
		os.WriteFile(filepath.Join(m.folder, version, "config.yaml"), []byte(text), 0o644),
		os.Symlink(version, filepath.Join(m.folder, "..data_tmp")),
		os.Rename(filepath.Join(m.folder, "..data_tmp"), filepath.Join(m.folder, "..data")),
	}
	if m.version == 1 {
		steps = append(steps, os.Symlink("..data/config.yaml", filepath.Join(m.folder, "config.yaml")))
	}
	for _, err := range steps {
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

func (m *configMap) read() (config.Config, []string, error) {
	data, err := os.ReadFile(filepath.Join(m.folder, "config.yaml"))
	if err != nil {
		return config.Config{}, nil, err
	}
	return config.Read(config.Sources{File: &config.File{Name: "config.yaml", Data: data}})
}

// lines is a log that can be read while it is written.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) count(text string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.String(), text)
}

func sliced(replicas int) string {
	return fmt.Sprintf("sharing: {timeSlicing: {renameByDefault: true, resources: [{name: nvidia.com/gpu, replicas: %d}]}}", replicas)
}

// configured is an agent's configuration with that of the map.
func configured(t *testing.T, s *site, m *configMap) (Config, *lines) {
	t.Helper()
	c, _, err := m.read()
	if err != nil {
		t.Fatal(err)
	}
	log := &lines{}
	agent := configuration(s.root, newFakeDriver(2))
	agent.Kubernetes = s.api
	agent.Offering, agent.Reread, agent.rereadPause = &c, m.read, 20*time.Millisecond
	agent.Logger = slog.New(slog.NewTextHandler(log, nil))
	return agent, log
}

func TestSharedDeviceAndAChangedConfiguration(t *testing.T) {
	s := newSite(t)
	s.Start()
	m := &configMap{t: t, folder: t.TempDir()}
	m.write(sliced(2))
	agent, log := configured(t, s, m)
	s.start(agent)
	s.Eventually("four replicas are there", func() bool { return s.Healthy(shared) == 4 })

	// Three Pods on two devices: one of them has two holders, and the sickness
	// of it is told to both.
	for i := range 3 {
		if _, _, err := s.Admit(t.Context(), s.pod(fmt.Sprintf("p%d", i), fmt.Sprintf("u%d", i)), shared, 1); err != nil {
			t.Fatal(err)
		}
	}
	d := s.device("GPU-0")
	var holders []string
	for _, holder := range d.Holders {
		holders = append(holders, holder.String())
	}
	if diff := cmp.Diff([]string{"default/p0/main", "default/p2/main"}, holders); diff != "" || d.Resource != shared || d.Replicas != 2 {
		t.Errorf("%s\n%+v", diff, d)
	}
	if _, err := s.client.Fail(t.Context(), "GPU-0", "XID 79"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("both are told", func() bool { return len(s.api.Events()) == 2 })
	if d := s.device("GPU-0"); d.Offered || d.Note != "it is unhealthy: XID 79; default/p0/main and default/p2/main keep it" {
		t.Errorf("sick: %+v", d)
	}
	if _, err := s.client.Heal(t.Context(), "GPU-0"); err != nil {
		t.Fatal(err)
	}
	s.Eventually("it is well again", func() bool { return s.Healthy(shared) == 4 })

	// A bad file is logged with its place, once, and nothing changes.
	m.write("version: v1\nsharing:\n  timeslicing: {}\nflags: {migStrategy: double}\n")
	s.Eventually("the mistakes are logged", func() bool {
		return log.count("config.yaml:3: sharing: unknown key") == 1 && log.count("config.yaml:4: flags.migStrategy") == 1
	})
	if s.Healthy(shared) != 4 {
		t.Errorf("%d replicas after a bad file", s.Healthy(shared))
	}

	// A good one is applied where nobody holds anything.
	m.write("flags: {migStrategy: mixed}")
	s.Eventually("what is held stays, and nothing else", func() bool { return s.Capacity(shared) == 3 && s.Capacity(gpu) == 0 })
	s.api.Delete(s.pod("p1", "u1"))
	s.End("u1")
	s.Eventually("the free one is whole", func() bool { return s.Healthy(gpu) == 1 && s.Capacity(shared) == 2 })
	if log.count("flags.migStrategy has changed, which counts when the agent is started again") != 1 {
		t.Error("it is not said that the MIG strategy has to wait")
	}
	if n := log.count("config.yaml:3: sharing"); n != 1 {
		t.Errorf("the mistake was logged %d times", n)
	}
}

func TestRereading(t *testing.T) {
	s := newSite(t)
	s.Start()
	m := &configMap{t: t, folder: t.TempDir()}
	m.write(sliced(2))
	agent, log := configured(t, s, m)
	s.start(agent)
	s.Eventually("four replicas are there", func() bool { return s.Healthy(shared) == 4 })

	// The file is gone, and comes back as it was.
	path := filepath.Join(m.folder, "config.yaml")
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	s.Eventually("the loss is logged", func() bool { return log.count("no such file") == 1 })
	if err := os.Symlink("..data/config.yaml", path); err != nil {
		t.Fatal(err)
	}
	s.Eventually("its return is logged", func() bool { return log.count("again the one in use") == 1 })

	// MPS is refused while running, too, and what does not fit the node.
	m.write("sharing: {mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}}")
	s.Eventually("MPS is refused", func() bool { return log.count("by MPS is not there yet") == 1 })
	m.write("sharing: {timeSlicing: {resources: [{name: nvidia.com/gpu, devices: 7, replicas: 2}]}}")
	s.Eventually("seven devices are not there", func() bool { return log.count("it wants 7 devices") == 1 })
	if s.Healthy(shared) != 4 {
		t.Errorf("%d replicas", s.Healthy(shared))
	}
	m.write(sliced(3))
	s.Eventually("the next good one is used", func() bool { return s.Healthy(shared) == 6 })
}

// A file that is looked at while it is written is not the new configuration.
func TestHalfWrittenFileIsNotUsed(t *testing.T) {
	parse := func(text string) config.Config {
		c, _, err := config.Read(config.Sources{File: &config.File{Name: "config.yaml", Data: []byte(text)}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	log := &lines{}
	logger := slog.New(slog.NewTextHandler(log, nil))
	started := parse(sliced(2))
	offering, err := terms.New(started, logger)
	if err != nil {
		t.Fatal(err)
	}
	var found config.Config
	var problem error
	r := &rereader{
		read:  func() (config.Config, []string, error) { return found, nil, problem },
		terms: offering, inventory: inventory.New(nil, logger), logger: logger, started: started, used: started,
		ledger: ledger.New(ledger.Config{Kubelet: deviceplugin.NewPodResources(filepath.Join(t.TempDir(), "none")), Logger: logger}),
	}
	for i, step := range []struct {
		text    string
		problem error
		want    int // replicas in use, 0 for none
	}{
		{sliced(2), nil, 2}, {"", nil, 2}, {sliced(3), nil, 2}, {sliced(3), nil, 3}, {sliced(3), nil, 3},
		{"", errors.New("cut off"), 3}, {sliced(3), nil, 3}, {"", nil, 3}, {"", nil, 0},
	} {
		found, problem = parse(step.text), step.problem
		r.look(t.Context())
		replicas := 0
		for _, rule := range r.used.Sharing {
			replicas = rule.Parts[0].Replicas
		}
		if replicas != step.want {
			t.Errorf("look %d: %d replicas, want %d", i, replicas, step.want)
		}
	}
	if log.count("cut off") != 0 || log.count("a changed configuration is in use") != 2 {
		t.Errorf("the log is\n%s", log.Bytes())
	}
}

func TestMPSIsRefusedAtTheStart(t *testing.T) {
	s := newSite(t)
	m := &configMap{t: t, folder: t.TempDir()}
	m.write("sharing:\n  mps: {resources: [{name: nvidia.com/gpu, replicas: 2}]}\n")
	agent, _ := configured(t, s, m)
	err := New(agent).Run(t.Context())
	if want := "start the agent: config.yaml:2: sharing nvidia.com/gpu by MPS is not there yet; use timeSlicing, or take the entry out"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// One line for a container that has several replicas of a device.
func TestReportNamesEachHolderOnce(t *testing.T) {
	s := newSite(t)
	s.Start()
	m := &configMap{t: t, folder: t.TempDir()}
	m.write(sliced(2))
	agent, _ := configured(t, s, m)
	s.start(agent)
	s.Eventually("four replicas are there", func() bool { return s.Healthy(shared) == 4 })
	if _, _, err := s.Admit(t.Context(), s.pod("a", "u1"), shared, 4); err != nil {
		t.Fatal(err)
	}
	want := []local.Holder{{Namespace: "default", Pod: "a", UID: "u1", Container: "main"}}
	if diff := cmp.Diff(want, s.device("GPU-1").Holders); diff != "" {
		t.Error(diff)
	}
}
