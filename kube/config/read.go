package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Sources are where a configuration comes from. Each may be missing.
type Sources struct {
	// Flags and Env look up what was set by a name, Env as os.LookupEnv does.
	// A variable that is set to nothing counts as not set.
	Flags, Env func(name string) (value string, set bool)
	// File is the configuration file.
	File *File
}

// File is a file that has been read, with the name that people know it by.
type File struct {
	Name string
	Data []byte
}

// The names of the setting that says which file to read.
var pathFlags, pathEnv = []string{"config-file"}, []string{"CONFIG_FILE"}

// Path is the configuration file that flags and environment point to, or
// empty. Reading it is for the caller.
func (s Sources) Path() string {
	for _, n := range []names{{lookup: s.Flags, all: pathFlags}, {lookup: s.Env, all: pathEnv}} {
		if _, value, set := n.first(); set {
			return value
		}
	}
	return ""
}

// Read puts the sources together: a flag wins over the environment, and that
// over the file. The error has a line for every mistake in any of them. The
// warnings say what is set and not acted on, one line each. It is a pure
// function of its sources.
func Read(s Sources) (config Config, warnings []string, err error) {
	r := &reading{config: defaults(), said: map[string]said{}}
	if s.File != nil {
		r.file(*s.File)
	}
	for _, setting := range settings {
		r.named(setting, names{s.Env, setting.Env, "environment variable "})
	}
	for _, setting := range settings {
		r.named(setting, names{s.Flags, setting.Flags, "flag --"})
	}
	if err := errors.Join(r.errs...); err != nil {
		return Config{}, nil, err
	}
	if r.config.DevRoot == "" {
		r.config.DevRoot = r.config.DriverRoot
	}
	return r.config, append(r.warnings, r.unheeded()...), nil
}

// reading is what has been read so far.
type reading struct {
	config   Config
	said     map[string]said // the strongest word on each setting, by its name
	warnings []string
	errs     []error
}

// said is a value and where it was set.
type said struct {
	where string
	value []string
}

// names are the names of a setting in one source.
type names struct {
	lookup func(string) (string, bool)
	all    []string
	kind   string // what such a name is called
}

// first returns the first name that is set to something.
func (n names) first() (name, value string, set bool) {
	if n.lookup == nil {
		return "", "", false
	}
	for _, name := range n.all {
		if value, set := n.lookup(name); set && value != "" {
			return name, value, true
		}
	}
	return "", "", false
}

// named reads a setting from a source that knows it by names.
func (r *reading) named(s Setting, n names) {
	name, written, set := n.first()
	if !set || s.apply == nil {
		return
	}
	where := n.kind + name
	for _, other := range n.all {
		if value, set := n.lookup(other); set && value != "" && value != written {
			r.warnings = append(r.warnings, fmt.Sprintf("%s%s is the same setting as %s, which is set otherwise and wins", n.kind, other, where))
		}
	}
	value, err := s.parse(written)
	if err == nil {
		err = s.apply(&r.config, value)
	}
	if err != nil {
		r.errs = append(r.errs, fmt.Errorf("%s: %w", where, err))
		return
	}
	r.said[s.name()] = said{where, value}
}

// parse takes a value apart that is written as one text.
func (s Setting) parse(written string) ([]string, error) {
	switch s.shape {
	case truth:
		value, err := strconv.ParseBool(written)
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", written)
		}
		return []string{strconv.FormatBool(value)}, nil
	case words:
		value := []string{}
		for item := range strings.SplitSeq(written, ",") {
			if item = strings.TrimSpace(item); item != "" {
				value = append(value, item)
			}
		}
		return value, nil
	default:
		return []string{written}, nil
	}
}

// unheeded says which settings are set and not acted on, once each.
func (r *reading) unheeded() []string {
	var lines []string
	for _, s := range settings {
		said, set := r.said[s.name()]
		if !set || s.Status == Acted || slices.Contains(s.like, strings.Join(said.value, ",")) {
			continue
		}
		lines = append(lines, unheeded(said.where, s))
	}
	for _, section := range sections {
		s, _ := settingAt(section.status)
		if said, set := r.said[section.key]; set && s.Status != Acted {
			lines = append(lines, unheeded(said.where, s))
		}
	}
	return lines
}

func unheeded(where string, s Setting) string {
	line := where + " is not acted on: " + s.Note
	if s.Status == Pending {
		line = where + " is read, but not acted on yet: " + s.Until
	}
	return strings.ReplaceAll(line, "`", "")
}
