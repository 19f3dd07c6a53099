package machines

import (
	"embed"
	"fmt"
	"os"
	"path"
	"strings"
)

//go:embed *.yaml
var recorded embed.FS

const suffix = ".yaml"

// Names returns the names of the machines that Kilter brings along, sorted.
func Names() []string {
	entries, err := recorded.ReadDir(".")
	if err != nil {
		panic("machines: the root of an embedded file system can not be read: " + err.Error())
	}
	var names []string
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), suffix))
	}
	return names
}

// Load returns a machine by the name of one that Kilter brings along, or by
// the path of a file: what has a slash or ends in .yaml is a path.
func Load(nameOrPath string) (Machine, error) {
	if strings.Contains(nameOrPath, "/") || strings.HasSuffix(nameOrPath, suffix) {
		data, err := os.ReadFile(nameOrPath)
		if err != nil {
			return Machine{}, fmt.Errorf("read the machine: %w", err)
		}
		return Parse(nameOrPath, data)
	}
	data, err := recorded.ReadFile(nameOrPath + suffix)
	if err != nil {
		return Machine{}, fmt.Errorf("there is no machine %q: it is one of %s, or the path of a %s file",
			nameOrPath, strings.Join(Names(), ", "), suffix)
	}
	return Parse(nameOrPath+suffix, data)
}

func nameOf(filename string) string {
	return strings.TrimSuffix(path.Base(filename), suffix)
}
