package host

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// MissingFolders are those of the folders, and of the folders above them, that
// are not there, topmost first: what MakeFolders would make.
func MissingFolders(folders []string) []string {
	var missing []string
	for _, folder := range folders {
		var chain []string
		for ; folder != "/" && folder != "."; folder = filepath.Dir(folder) {
			if _, err := os.Stat(folder); !errors.Is(err, os.ErrNotExist) {
				break
			}
			chain = append([]string{folder}, chain...)
		}
		missing = append(missing, chain...)
	}
	return missing
}

// MakeFolders makes the folders that namespaces mount their own over.
func MakeFolders(folders []string) error {
	for _, folder := range folders {
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return fmt.Errorf("make the folder %s to mount on: %w", folder, err)
		}
	}
	return nil
}

// RemoveFolders removes what MakeFolders made, unless somebody has put
// something into it.
func RemoveFolders(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		_ = os.Remove(made[i])
	}
}
