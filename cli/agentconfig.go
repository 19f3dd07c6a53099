package cli

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kilter-dev/kilter/kube/config"
)

// settings are what NVIDIA's device plugin can be told, as the agent is told
// it: by flags, by environment variables and by a file.
type settings struct {
	flags *pflag.FlagSet
	env   func(name string) (string, bool)
}

// register adds a flag for each name of each setting. What is not acted on is
// taken too, so that a command line can stay as it is, but not shown.
func (s settings) register() {
	for _, setting := range config.Settings() {
		// As the other flags are described: no sentence, and without the
		// marks that would be taken for the name of the value.
		note := strings.TrimSuffix(strings.ReplaceAll(setting.Note, "`", ""), ".")
		note = strings.ToLower(note[:1]) + note[1:]
		for i, name := range setting.Flags {
			if setting.Bool {
				s.flags.Bool(name, false, note)
			} else {
				s.flags.String(name, "", note)
			}
			s.flags.Lookup(name).Hidden = i > 0 || setting.Status != config.Acted
		}
	}
}

func (s settings) sources() config.Sources {
	return config.Sources{Env: s.env, Flags: func(name string) (string, bool) {
		flag := s.flags.Lookup(name)
		if flag == nil || !flag.Changed {
			return "", false
		}
		return flag.Value.String(), true
	}}
}

// read reads the file, if one is named, and puts everything together.
func (s settings) read() (config.Config, []string, error) {
	sources := s.sources()
	if path := sources.Path(); path != "" {
		data, err := os.ReadFile(path)
		if err != nil {
			return config.Config{}, nil, fmt.Errorf("read the configuration: %w", err)
		}
		sources.File = &config.File{Name: path, Data: data}
	}
	return config.Read(sources)
}

// configure sets what follows from the settings, and returns them.
func (f *agentFlags) configure(s settings, logger *slog.Logger) (config.Config, error) {
	c, warnings, err := s.read()
	if err != nil {
		return config.Config{}, err
	}
	for _, warning := range warnings {
		logger.Warn(warning)
	}
	fromFile := s.sources().Path() != ""
	if fromFile || len(c.Names) > 0 || len(c.Sharing) > 0 {
		f.config.Offering = &c
	}
	if fromFile {
		f.config.Reread = s.read
	}
	if c.KubeletSocket != "" && !s.flags.Changed("device-plugin-folder") {
		folder, name := filepath.Split(c.KubeletSocket)
		if name != "kubelet.sock" {
			return config.Config{}, fmt.Errorf("the kubelet's socket %s: Kubernetes calls it kubelet.sock, in a folder that can be chosen", c.KubeletSocket)
		}
		f.config.DevicePluginFolder = filepath.Clean(folder)
	}
	return c, nil
}

// driverOptions are those of the settings that drivers take.
func driverOptions(c config.Config) DriverOptions {
	options := DriverOptions{
		MIGStrategy:         string(c.MIGStrategy),
		DriverRoot:          c.DriverRoot,
		DevRoot:             c.DevRoot,
		DisableHealthChecks: c.DisableHealthChecks,
		EnableHealthChecks:  c.EnableHealthChecks,
	}
	if filepath.Clean(options.DriverRoot) == "/" {
		// What NVIDIA's charts always say is no reason not to look in the
		// other usual places.
		options.DriverRoot = ""
	}
	return options
}
