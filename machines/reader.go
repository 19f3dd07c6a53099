package machines

import (
	"cmp"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// reader goes through a YAML document and collects all that is wrong with it,
// each with its line.
type reader struct {
	filename string
	mistakes []mistake
}

type mistake struct {
	line    int
	message string
}

func (r *reader) wrong(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{n.Line, fmt.Sprintf(format, args...)})
}

// err returns the mistakes in the order of the file.
func (r *reader) err() error {
	slices.SortStableFunc(r.mistakes, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, m := range r.mistakes {
		errs = append(errs, fmt.Errorf("%s:%d: %s", r.filename, m.line, m.message))
	}
	return errors.Join(errs...)
}

// mapping is a YAML mapping whose keys are known ones.
type mapping struct {
	node   *yaml.Node
	what   string
	values map[string]*yaml.Node
}

// has reports whether the key is there; that it is missing where it must not
// be was said when the mapping was read.
func (m mapping) has(key string) bool { return m.values[key] != nil }

// mapping reads a node that has all of the required keys, perhaps some of the
// optional ones, and no other. What it returns holds what could be read.
func (r *reader) mapping(n *yaml.Node, what string, required, optional []string) mapping {
	m := mapping{node: n, what: what, values: map[string]*yaml.Node{}}
	known := slices.Concat(required, optional)
	for key, value := range r.pairs(n, what) {
		if !slices.Contains(known, key.Value) {
			r.wrong(key, "%s: unknown key %q; the keys are %s", what, key.Value, strings.Join(known, ", "))
			continue
		}
		m.values[key.Value] = value
	}
	if n.Kind == yaml.MappingNode {
		for _, key := range required {
			if !m.has(key) {
				r.wrong(n, "%s: the key %q is missing", what, key)
			}
		}
	}
	return m
}

// pairs yields the keys and values of a mapping. A key that occurs again is a
// mistake and is not yielded.
func (r *reader) pairs(n *yaml.Node, what string) func(yield func(key, value *yaml.Node) bool) {
	return func(yield func(key, value *yaml.Node) bool) {
		if n.Kind != yaml.MappingNode {
			r.wrong(n, "%s: wanted keys and values, found %s", what, describe(n))
			return
		}
		seen := map[string]bool{}
		for i := 0; i+1 < len(n.Content); i += 2 {
			key, value := n.Content[i], n.Content[i+1]
			switch {
			case key.Kind != yaml.ScalarNode:
				r.wrong(key, "%s: a key is a word, found %s", what, describe(key))
			case seen[key.Value]:
				r.wrong(key, "%s: %q is there twice", what, key.Value)
			default:
				seen[key.Value] = true
				if !yield(key, value) {
					return
				}
			}
		}
	}
}

// list returns the items of a sequence with at least one of them.
func (r *reader) list(n *yaml.Node, what string) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		r.wrong(n, "%s: wanted a list, found %s", what, describe(n))
		return nil
	}
	if len(n.Content) == 0 {
		r.wrong(n, "%s: the list is empty", what)
	}
	return n.Content
}

var printable = regexp.MustCompile(`^[^\pC]+$`)

// text returns the value of a key as it is written: 9.0 need not be quoted.
// It is empty, and a mistake noted, where it is no text of one line.
func (r *reader) text(m mapping, key string) string {
	n := m.values[key]
	if n == nil {
		return ""
	}
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode, tag != "!!str" && tag != "!!int" && tag != "!!float":
		r.wrong(n, "%s: %s: wanted a text, found %s", m.what, key, describe(n))
	case !printable.MatchString(n.Value) || strings.TrimSpace(n.Value) == "":
		r.wrong(n, "%s: %s: wanted a text of one line, found %q", m.what, key, n.Value)
	default:
		return n.Value
	}
	return ""
}

// form returns a text that matches a pattern, or notes what it should be.
func (r *reader) form(m mapping, key string, pattern *regexp.Regexp, wanted string) string {
	text := r.text(m, key)
	if text != "" && !pattern.MatchString(text) {
		r.wrong(m.values[key], "%s: %s: %q is not %s", m.what, key, text, wanted)
	}
	return text
}

// number returns a whole number in the given range, or least.
func (r *reader) number(n *yaml.Node, what string, least, most int) int {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		r.wrong(n, "%s: wanted a whole number, found %s", what, describe(n))
		return least
	}
	value, err := strconv.Atoi(n.Value)
	if err != nil || value < least || value > most {
		r.wrong(n, "%s: %s is not a number from %d to %d", what, n.Value, least, most)
		return least
	}
	return value
}

func describe(n *yaml.Node) string {
	switch {
	case n.Kind == yaml.MappingNode:
		return "keys and values"
	case n.Kind == yaml.SequenceNode:
		return "a list"
	case n.Kind == yaml.AliasNode:
		return "the alias *" + n.Value + ", which is not supported"
	case n.ShortTag() == "!!null":
		return "nothing"
	default:
		return strconv.Quote(n.Value)
	}
}
