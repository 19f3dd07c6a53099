package config

import (
	"slices"
	"strings"
)

// Setting is one thing that can be set, and what becomes of it.
type Setting struct {
	// Key is its place in the file, such as flags.plugin.deviceIDStrategy;
	// empty when the file can not say it. Entries of lists are under "[]".
	Key string
	// Flags and Env are its names elsewhere, the strongest first.
	Flags, Env []string
	// Bool flags need no value.
	Bool bool

	// Status says whether Kilter acts on it, and Note, for people, what that
	// means, or why not. Until is what is so as long as it is pending.
	Status      Status
	Note, Until string

	// shape is how a value is written.
	shape shape
	// like are the values that Kilter behaves like anyway. They need no
	// warning where it does not act on the setting.
	like []string
	// apply checks a value and puts it into the configuration. It is nil for
	// what is read elsewhere.
	apply func(c *Config, value []string) error
}

// Status says whether Kilter acts on a setting.
type Status string

const (
	// Acted settings do what they say.
	Acted Status = "yes"
	// Pending settings are read and checked, and nothing acts on them yet.
	Pending Status = "not yet"
	// Declined settings have no place in Kilter; the note says why.
	Declined Status = "no"
)

// shape is how a value is written.
type shape int

const (
	word  shape = iota // one word
	words              // a word or a list of them
	truth              // true or false
	inner              // keys and values, or a list of such, with a reader of its own
)

// Settings returns everything that can be set, in the order of the file.
func Settings() []Setting {
	all := slices.Clone(settings)
	for i := range all {
		all[i].Bool = all[i].shape == truth
	}
	return all
}

// name is what a person calls the setting.
func (s Setting) name() string {
	switch {
	case s.Key != "":
		return s.Key
	case len(s.Env) > 0:
		return s.Env[0]
	default:
		return "--" + s.Flags[0]
	}
}

// settingAt finds the setting that has this place in the file.
func settingAt(key string) (Setting, bool) {
	i := slices.IndexFunc(settings, func(s Setting) bool { return s.Key == key })
	if i < 0 {
		return Setting{}, false
	}
	return settings[i], true
}

// keysBelow lists the keys that may stand below a place in the file.
func keysBelow(place string) []string {
	var keys []string
	for _, s := range settings {
		rest := s.Key
		if place != "" {
			var below bool
			if rest, below = strings.CutPrefix(s.Key, place+"."); !below {
				continue
			}
		}
		key, _, _ := strings.Cut(rest, ".")
		key = strings.TrimSuffix(key, "[]")
		if key != "" && !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	return keys
}
