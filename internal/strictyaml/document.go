package strictyaml

import (
	"bytes"
	"errors"
	"io"
	"regexp"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Document returns the root of the only document in a file that holds one of
// something. It is nil when the file is empty, which is for the caller to
// judge, and where it could not be read, which is noted.
func (r *Reader) Document(data []byte, something string) *yaml.Node {
	decoder := yaml.NewDecoder(bytes.NewReader(data))
	var document, another yaml.Node
	err := decoder.Decode(&document)
	if errors.Is(err, io.EOF) {
		return nil
	}
	if err == nil {
		if err = decoder.Decode(&another); errors.Is(err, io.EOF) {
			return document.Content[0]
		}
	}
	if err != nil {
		line, message := syntaxError(err)
		r.Wrong(&yaml.Node{Line: line}, "not valid YAML: %s", message)
		return nil
	}
	r.Wrong(&another, "a second document begins here; a file holds one %s", something)
	return nil
}

var syntaxForm = regexp.MustCompile(`^(?:yaml: )?(?:line ([0-9]+): )?(.*)`)

// What the library's parser, unlike its scanner, complains of: there it
// counts lines from zero.
var parserForm = regexp.MustCompile(`^did not find expected (<document start>|node content|key|'-' indicator|',' or)`)

// syntaxError takes an error of the library apart, "yaml: line 3: message".
// There is no line in it when it is the first.
func syntaxError(err error) (line int, message string) {
	parts := syntaxForm.FindStringSubmatch(err.Error())
	line, _ = strconv.Atoi(parts[1])
	if line > 0 && parserForm.MatchString(parts[2]) {
		line++
	}
	return max(line, 1), parts[2]
}
