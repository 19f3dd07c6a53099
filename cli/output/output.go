// Package output prints values for machines, the same way in every command.
package output

import (
	"encoding/json"
	"fmt"
	"io"

	"sigs.k8s.io/yaml"
)

// Help is the text of the flag that chooses the format.
const Help = "json or yaml instead of a table"

// Write prints a value in the format that was asked for.
func Write(out io.Writer, format string, value any) error {
	switch format {
	case "json":
		encoder := json.NewEncoder(out)
		encoder.SetIndent("", "  ")
		return encoder.Encode(value)
	case "yaml":
		data, err := yaml.Marshal(value)
		if err != nil {
			return err
		}
		_, err = out.Write(data)
		return err
	default:
		return fmt.Errorf("unknown output %q: json and yaml are known", format)
	}
}
