package strictyaml

import (
	"testing"

	"go.yaml.in/yaml/v3"
)

func read(t *testing.T, text string) (*Reader, *yaml.Node) {
	t.Helper()
	r := New("f.yaml")
	root := r.Document([]byte(text), "thing")
	if root == nil {
		t.Fatalf("%q: %v", text, r.Err())
	}
	return r, root
}

func TestDocument(t *testing.T) {
	for text, want := range map[string]string{
		"":              "",
		"# nothing":     "",
		"a: 1":          "",
		"a: 1\n---\nb:": "f.yaml:2: a second document begins here; a file holds one thing",
		"a: [1\nb: 2":   "f.yaml:2: not valid YAML: did not find expected ',' or ']'",
		"\n\t: 1":       "f.yaml:2: not valid YAML: found character that cannot start any token",
	} {
		r := New("f.yaml")
		r.Document([]byte(text), "thing")
		check(t, text, r, want)
	}
}

func TestBool(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "True": true, "yes": true, "on": true, "false": false, "No": false, "OFF": false} {
		r, root := read(t, text)
		if got := r.Bool(root, "it"); got != want || r.Err() != nil {
			t.Errorf("%s is %v, %v", text, got, r.Err())
		}
	}
	for text, found := range map[string]string{
		`"true"`: `"true"`, "!!str yes": `"yes"`, "!!bool maybe": `"maybe"`, "1": `"1"`, "~": "nothing", "[true]": "a list", "{a: 1}": "keys and values",
	} {
		r, root := read(t, text)
		r.Bool(root, "it")
		check(t, text, r, "f.yaml:1: it: wanted true or false, found "+found)
	}
}

func TestKeys(t *testing.T) {
	for text, want := range map[string]string{
		"{need: 1, may: 2}": "",
		"need: 1\nMay: 2":   `f.yaml:2: it: unknown key "May"; it is written may`,
		"need: 1\nother: 2": `f.yaml:2: it: unknown key "other"; the keys are need, may`,
		"may: 1":            `f.yaml:1: it: the key "need" is missing`,
		"need: 1\nneed: 2":  `f.yaml:2: it: "need" is there twice`,
		"need: 1\n[1]: 2":   "f.yaml:2: it: a key is a word, found a list",
		"[need]":            "f.yaml:1: it: wanted keys and values, found a list",
		"b: 1\nneed: 1\na: 1": `f.yaml:1: it: unknown key "b"; the keys are need, may
f.yaml:3: it: unknown key "a"; the keys are need, may`,
	} {
		r, root := read(t, text)
		r.Mapping(root, "it", []string{"need"}, []string{"may"})
		check(t, text, r, want)
	}
}

func TestScalars(t *testing.T) {
	for _, test := range []struct {
		text string
		read func(*Reader, *yaml.Node)
		want string
	}{
		{"9.0", func(r *Reader, n *yaml.Node) { r.Text(n, "it") }, ""},
		{"true", func(r *Reader, n *yaml.Node) { r.Text(n, "it") }, `f.yaml:1: it: wanted a text, found "true"`},
		{"*a", func(r *Reader, n *yaml.Node) { r.Text(&yaml.Node{Kind: yaml.AliasNode, Line: 1, Value: "a"}, "it") }, "f.yaml:1: it: wanted a text, found the alias *a, which is not supported"},
		{`"a\nb"`, func(r *Reader, n *yaml.Node) { r.Text(n, "it") }, `f.yaml:1: it: wanted a text of one line, found "a\nb"`},
		{"7", func(r *Reader, n *yaml.Node) { r.Number(n, "it", 1, 7) }, ""},
		{"8", func(r *Reader, n *yaml.Node) { r.Number(n, "it", 1, 7) }, "f.yaml:1: it: 8 is not a number from 1 to 7"},
		{"1.5", func(r *Reader, n *yaml.Node) { r.Number(n, "it", 1, 7) }, `f.yaml:1: it: wanted a whole number, found "1.5"`},
		{"[]", func(r *Reader, n *yaml.Node) { r.List(n, "it") }, "f.yaml:1: it: the list is empty"},
		{"a", func(r *Reader, n *yaml.Node) { r.List(n, "it") }, `f.yaml:1: it: wanted a list, found "a"`},
	} {
		r, root := New("f.yaml"), &yaml.Node{}
		if test.text != "*a" {
			r, root = read(t, test.text)
		}
		test.read(r, root)
		check(t, test.text, r, test.want)
	}
}

func check(t *testing.T, text string, r *Reader, want string) {
	t.Helper()
	got := ""
	if err := r.Err(); err != nil {
		got = err.Error()
	}
	if got != want {
		t.Errorf("%q:\n got %s\nwant %s", text, got, want)
	}
}
