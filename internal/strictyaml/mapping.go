package strictyaml

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Mapping is a YAML mapping whose keys are known ones.
type Mapping struct {
	Node   *yaml.Node
	What   string
	Values map[string]*yaml.Node
}

// Has reports whether the key is there; that it is missing where it must not
// be was noted when the mapping was read.
func (m Mapping) Has(key string) bool { return m.Values[key] != nil }

// Mapping reads a node that has all of the required keys, perhaps some of the
// optional ones, and no other. What it returns holds what could be read.
func (r *Reader) Mapping(n *yaml.Node, what string, required, optional []string) Mapping {
	m := Mapping{Node: n, What: what, Values: map[string]*yaml.Node{}}
	known := slices.Concat(required, optional)
	for key, value := range r.Pairs(n, what) {
		if !slices.Contains(known, key.Value) {
			r.UnknownKey(key, what, known)
			continue
		}
		m.Values[key.Value] = value
	}
	if n.Kind == yaml.MappingNode {
		for _, key := range required {
			if !m.Has(key) {
				r.Wrong(n, "%s: the key %q is missing", what, key)
			}
		}
	}
	return m
}

// UnknownKey notes a key that is none of the known ones.
func (r *Reader) UnknownKey(key *yaml.Node, what string, known []string) {
	for _, k := range known {
		if strings.EqualFold(k, key.Value) {
			r.Wrong(key, "%s: unknown key %q; it is written %s", what, key.Value, k)
			return
		}
	}
	r.Wrong(key, "%s: unknown key %q; the keys are %s", what, key.Value, strings.Join(known, ", "))
}

// Pairs yields the keys and values of a mapping. A key that occurs again is a
// mistake and is not yielded.
func (r *Reader) Pairs(n *yaml.Node, what string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			r.Wrong(n, "%s: wanted keys and values, found %s", what, Describe(n))
			return
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch {
			case key.Kind != yaml.ScalarNode:
				r.Wrong(key, "%s: a key is a word, found %s", what, Describe(key))
			case seen[key.Value]:
				r.Wrong(key, "%s: %q is there twice", what, key.Value)
			default:
				seen[key.Value] = true
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// List returns the items of a sequence with at least one of them.
func (r *Reader) List(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.Wrong(n, "%s: wanted a list, found %s", what, Describe(n))
		return nil
	}
	if len(n.Content) == 0 {
		r.Wrong(n, "%s: the list is empty", what)
	}
	return n.Content
}
