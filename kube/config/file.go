package config

import (
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/kilter-dev/kilter/internal/strictyaml"
)

// fileReader reads a configuration file.
type fileReader struct {
	*strictyaml.Reader
	into    *reading
	entries []entry // of sharing
}

// sections are the parts of the file that hold more than settings. Whether
// they are acted on is the same for all in them, and so said of one.
var sections = []struct {
	key    string
	status string // the key of a setting
	read   func(f *fileReader, n *yaml.Node, place string)
}{
	{"resources", "resources.gpus[].name", (*fileReader).resources},
	{"sharing.timeSlicing", "sharing.timeSlicing.resources[].replicas", func(f *fileReader, n *yaml.Node, place string) { f.sharing(n, place, TimeSlicing) }},
	{"sharing.mps", "sharing.mps.resources[].replicas", func(f *fileReader, n *yaml.Node, place string) { f.sharing(n, place, MPS) }},
}

func (r *reading) file(file File) {
	f := &fileReader{Reader: strictyaml.New(file.Name), into: r}
	// An empty file says nothing, which is allowed.
	if root := f.Document(file.Data, "configuration"); root != nil && !strictyaml.IsNull(root) {
		f.section(root, "")
		f.claims()
	}
	if err := f.Err(); err != nil {
		r.errs = append(r.errs, err)
	}
}

// section reads the keys below a place in the file. A key without a value says
// nothing.
func (f *fileReader) section(n *yaml.Node, place string) {
	what, prefix := place, place+"."
	if place == "" {
		what, prefix = "configuration", ""
	}
	known := keysBelow(place)
	for key, value := range f.Pairs(n, what) {
		if !slices.Contains(known, key.Value) {
			f.UnknownKey(key, what, known)
			continue
		}
		if !strictyaml.IsNull(value) {
			f.read(key, value, prefix+key.Value)
		}
	}
}

// read reads what stands at a known place.
func (f *fileReader) read(key, value *yaml.Node, place string) {
	for _, s := range sections {
		if s.key == place {
			f.into.said[place] = said{where: f.At(key) + ": " + place}
			s.read(f, value, place)
			return
		}
	}
	s, isSetting := settingAt(place)
	if !isSetting {
		f.section(value, place)
		return
	}
	before := f.Mistakes()
	written := f.value(s, value)
	if written == nil || f.Mistakes() > before {
		return
	}
	if err := s.apply(&f.into.config, written); err != nil {
		f.Wrong(value, "%s: %v", place, err)
		return
	}
	f.into.said[place] = said{f.At(key) + ": " + place, written}
}

// value returns the value of a setting; nil when it says nothing.
func (f *fileReader) value(s Setting, n *yaml.Node) []string {
	switch {
	case s.shape == truth:
		return []string{strconv.FormatBool(f.Bool(n, s.Key))}
	case s.shape == words && n.Kind == yaml.SequenceNode:
		value := []string{}
		for _, item := range n.Content {
			value = append(value, f.Text(item, s.Key))
		}
		return value
	case n.Kind == yaml.ScalarNode && n.Value == "":
		return nil
	default:
		return []string{f.Text(n, s.Key)}
	}
}

// has reports whether a key is there with a value.
func has(m strictyaml.Mapping, key string) bool {
	return m.Has(key) && !strictyaml.IsNull(m.Values[key])
}
