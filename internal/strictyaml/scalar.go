package strictyaml

import (
	"regexp"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

var printable = regexp.MustCompile(`^[^\pC]+$`)

// Text returns a value as it is written: 9.0 need not be quoted. It is empty,
// and a mistake noted, where it is no text of one line.
func (r *Reader) Text(n *yaml.Node, what string) string {
	switch tag := n.ShortTag(); {
	case n.Kind != yaml.ScalarNode, tag != "!!str" && tag != "!!int" && tag != "!!float":
		r.Wrong(n, "%s: wanted a text, found %s", what, Describe(n))
	case !printable.MatchString(n.Value) || strings.TrimSpace(n.Value) == "":
		r.Wrong(n, "%s: wanted a text of one line, found %q", what, n.Value)
	default:
		return n.Value
	}
	return ""
}

// TextAt is Text for the value of a key, which may be missing.
func (r *Reader) TextAt(m Mapping, key string) string {
	if !m.Has(key) {
		return ""
	}
	return r.Text(m.Values[key], m.What+": "+key)
}

// FormAt is a TextAt that matches a pattern, or notes what it should be.
func (r *Reader) FormAt(m Mapping, key string, pattern *regexp.Regexp, wanted string) string {
	text := r.TextAt(m, key)
	if text != "" && !pattern.MatchString(text) {
		r.Wrong(m.Values[key], "%s: %s: %q is not %s", m.What, key, text, wanted)
	}
	return text
}

// Number returns a whole number in the given range, or least.
func (r *Reader) Number(n *yaml.Node, what string, least, most int) int {
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!int" {
		r.Wrong(n, "%s: wanted a whole number, found %s", what, Describe(n))
		return least
	}
	value, err := strconv.Atoi(n.Value)
	if err != nil || value < least || value > most {
		r.Wrong(n, "%s: %s is not a number from %d to %d", what, n.Value, least, most)
		return least
	}
	return value
}

// YAML had more words for true and false before its version 1.2, and files
// that Kubernetes' own readers take may have them.
var bools = map[string]bool{
	"true": true, "yes": true, "on": true,
	"false": false, "no": false, "off": false,
}

// Bool returns true or false, which is not written in quotes.
func (r *Reader) Bool(n *yaml.Node, what string) bool {
	value, known := bools[strings.ToLower(n.Value)]
	plain := n.Style == 0 || n.ShortTag() == "!!bool"
	if n.Kind != yaml.ScalarNode || !known || !plain {
		r.Wrong(n, "%s: wanted true or false, found %s", what, Describe(n))
		return false
	}
	return value
}

// IsNull reports whether nothing, or null, is written.
func IsNull(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null"
}

// Describe says for people what a node is.
func Describe(n *yaml.Node) string {
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
