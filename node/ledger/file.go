package ledger

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// schema is the version of the file's form. A file of another version is
// treated like one that can not be read.
const schema = 1

// state is what the file holds.
type state struct {
	Schema int `json:"schema"`
	// BootID says in which run of the machine this was true.
	BootID string  `json:"bootID"`
	Holds  []Hold  `json:"holds"`
	Grants []Grant `json:"grants,omitempty"`
}

// errMalformed is a file that is there and can not be used.
var errMalformed = errors.New("malformed")

// readState reads the file; one that is not there is an empty state.
func readState(path string) (state, error) {
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return state{Schema: schema}, nil
	}
	if err != nil {
		return state{}, err
	}
	return parseState(data)
}

func parseState(data []byte) (state, error) {
	var s state
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&s); err != nil {
		return state{}, fmt.Errorf("%w: %w", errMalformed, err)
	}
	if s.Schema != schema {
		return state{}, fmt.Errorf("%w: schema %d, this agent knows %d", errMalformed, s.Schema, schema)
	}
	for _, hold := range s.Holds {
		if hold.Device == "" || hold.Resource == "" || hold.Holder.Namespace == "" || hold.Holder.Pod == "" {
			return state{}, fmt.Errorf("%w: a hold without device, resource or Pod", errMalformed)
		}
	}
	return s, nil
}

// writeState replaces the file in one step, so that a crash at any point
// leaves either the old or the new one.
func writeState(path string, s state) error {
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	// One name is enough, since one agent writes; what a crash left behind is
	// overwritten.
	temporary := path + ".new"
	if err := writeSynced(temporary, append(data, '\n')); err != nil {
		return err
	}
	if err := os.Rename(temporary, path); err != nil {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(data)
	if err == nil {
		err = file.Sync()
	}
	if closeErr := file.Close(); err == nil {
		err = closeErr
	}
	return err
}

// syncFolder makes the rename itself outlive a crash of the machine.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = folder.Close() }()
	return folder.Sync()
}
