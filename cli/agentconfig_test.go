package cli

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/pflag"

	"github.com/kilter-dev/kilter/hardware"
	"github.com/kilter-dev/kilter/kube/config"
	"github.com/kilter-dev/kilter/machines"
)

// said are the settings of a command line and an environment.
func said(t *testing.T, env map[string]string, args ...string) settings {
	t.Helper()
	s := settings{pflag.NewFlagSet("agent", pflag.ContinueOnError), func(name string) (string, bool) {
		value, set := env[name]
		return value, set
	}}
	s.register()
	s.flags.String("device-plugin-folder", "/default", "")
	if err := s.flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return s
}

func fileWith(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlagsWinOverEnvironmentAndThatOverTheFile(t *testing.T) {
	path := fileWith(t, "flags: {migStrategy: single, nvidiaDriverRoot: /file, nvidiaDevRoot: /file, plugin: {sharedDevicesAllocationPolicy: packed}}")
	s := said(t, map[string]string{
		"CONFIG_FILE": path, "MIG_STRATEGY": "mixed", "NVIDIA_DRIVER_ROOT": "/env",
		"DP_DISABLE_HEALTHCHECKS": "xids", "DP_ENABLE_HEALTHCHECKS": "79", "KUBELET_SOCKET": "/k/kubelet.sock",
	}, "--driver-root=/flag", "--pass-device-specs")
	f := &agentFlags{}
	var log bytes.Buffer
	c, err := f.configure(s, slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil {
		t.Fatal(err)
	}
	want := DriverOptions{MIGStrategy: "mixed", DriverRoot: "/flag", DevRoot: "/file", DisableHealthChecks: "xids", EnableHealthChecks: "79"}
	if diff := cmp.Diff(want, driverOptions(c)); diff != "" {
		t.Error(diff)
	}
	if c.AllocationPolicy != config.Packed || f.config.Offering == nil || f.config.Reread == nil || f.config.DevicePluginFolder != "/k" {
		t.Errorf("%+v\n%+v", c, f.config)
	}
	if log.Len() > 0 {
		t.Errorf("warnings about what is acted on, or is so anyway: %s", &log)
	}
}

func TestWithoutSettingsNothingIsConfigured(t *testing.T) {
	f := &agentFlags{}
	var log bytes.Buffer
	c, err := f.configure(said(t, nil), slog.New(slog.NewTextHandler(&log, nil)))
	if err != nil || f.config.Offering != nil || f.config.Reread != nil || f.config.DevicePluginFolder != "" || log.Len() > 0 {
		t.Errorf("%v: %+v %s", err, f.config, &log)
	}
	if diff := cmp.Diff(DriverOptions{MIGStrategy: "none"}, driverOptions(c)); diff != "" {
		t.Error(diff)
	}
	if root := driverOptions(config.Config{DriverRoot: "/"}).DriverRoot; root != "" {
		t.Errorf("the driver root %q, which NVIDIA's charts always say, keeps the other places from being searched", root)
	}
}

func TestSettingsThatAreNotActedOnAreWarnedOf(t *testing.T) {
	var log bytes.Buffer
	f := &agentFlags{}
	if _, err := f.configure(said(t, nil, "--gds-enabled", "--mps-root=/mps", "--device-plugin-folder=/own", "--kubelet-socket=/k/kubelet.sock"), slog.New(slog.NewTextHandler(&log, nil))); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"flag --gds-enabled is read, but not acted on yet", "flag --mps-root is read, but not acted on yet"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("%q is not in the log: %s", want, &log)
		}
	}
	if f.config.DevicePluginFolder != "" {
		t.Errorf("the agent's own flag does not win: %s", f.config.DevicePluginFolder)
	}
}

func TestMistakesInTheConfiguration(t *testing.T) {
	bad := fileWith(t, "version: v1\nsharing:\n  timeslicing: {}\n")
	for name, test := range map[string]struct {
		env  map[string]string
		args []string
		want string
	}{
		"no such file":   {nil, []string{"--config-file=/nowhere/config.yaml"}, "read the configuration: open /nowhere/config.yaml"},
		"a bad file":     {nil, []string{"--config-file", bad}, bad + `:3: sharing: unknown key "timeslicing"`},
		"a bad variable": {map[string]string{"MIG_STRATEGY": "double"}, nil, `environment variable MIG_STRATEGY: "double" is not known`},
		"a bad flag":     {nil, []string{"--mig-strategy=double"}, `flag --mig-strategy: "double" is not known`},
		"another socket": {map[string]string{"KUBELET_SOCKET": "/k/other.sock"}, nil, "Kubernetes calls it kubelet.sock"},
	} {
		f := &agentFlags{}
		if _, err := f.configure(said(t, test.env, test.args...), slog.New(slog.DiscardHandler)); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The whole way: a configuration with MPS ends the agent with one sentence.
func TestAgentRefusesMPS(t *testing.T) {
	path := fileWith(t, "sharing:\n  mps:\n    resources: [{name: nvidia.com/gpu, replicas: 2}]\n")
	root := New(Drivers{Simulate: func(machines.Machine, string, string, *slog.Logger) (hardware.Driver, error) { return named{}, nil }})
	root.SetArgs([]string{"agent", "--node=n", "--simulate=h100x8", "--state-folder=" + t.TempDir(), "--config-file=" + path})
	err := root.Execute()
	if want := "start the agent: " + path + ":3: sharing nvidia.com/gpu by MPS is not there yet; use timeSlicing, or take the entry out"; err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// named is a driver that is never asked for more than its name.
type named struct{ hardware.Driver }

func (named) Name() string { return "named" }

// What is acted on is shown in the help, each setting once.
func TestHelpShowsWhatIsActedOn(t *testing.T) {
	s := said(t, nil)
	for name, hidden := range map[string]bool{
		"config-file": false, "mig-strategy": false, "driver-root": false, "nvidia-driver-root": true,
		"shared-devices-allocation-policy": false, "pass-device-specs": true, "mps-root": true, "gds-enabled": true,
	} {
		if flag := s.flags.Lookup(name); flag == nil || flag.Hidden != hidden {
			t.Errorf("--%s: %+v", name, flag)
		}
	}
}
