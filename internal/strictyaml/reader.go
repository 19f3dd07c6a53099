// Package strictyaml reads the YAML files that people write. It refuses what
// it does not know, and collects everything that is wrong with a file, each
// mistake with its line, so that one look is enough to mend it.
package strictyaml

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// Reader goes through one file and notes the mistakes in it. What its methods
// return where they note one is of no use, but safe to go on with.
type Reader struct {
	filename string
	mistakes []mistake
}

type mistake struct {
	line    int
	message string
}

// New returns a reader. The file's name stands in the mistakes.
func New(filename string) *Reader {
	return &Reader{filename: filename}
}

// At says where a node is, as file:line.
func (r *Reader) At(n *yaml.Node) string {
	return fmt.Sprintf("%s:%d", r.filename, n.Line)
}

// Wrong notes a mistake at a node.
func (r *Reader) Wrong(n *yaml.Node, format string, args ...any) {
	r.mistakes = append(r.mistakes, mistake{n.Line, fmt.Sprintf(format, args...)})
}

// Mistakes is how many have been noted so far.
func (r *Reader) Mistakes() int { return len(r.mistakes) }

// Err returns the mistakes in the order of the file, one "file:line: message"
// a line, or nil.
func (r *Reader) Err() error {
	sorted := slices.Clone(r.mistakes)
	slices.SortStableFunc(sorted, func(a, b mistake) int { return cmp.Compare(a.line, b.line) })
	var errs []error
	for _, m := range sorted {
		errs = append(errs, fmt.Errorf("%s:%d: %s", r.filename, m.line, m.message))
	}
	return errors.Join(errs...)
}
