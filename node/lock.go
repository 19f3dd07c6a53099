package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lock makes sure that this is the node's only agent, until the file that it
// returns is closed. The system lets go of the lock when the process ends, in
// whatever way.
func lock(folder string) (*os.File, error) {
	path := filepath.Join(folder, "agent.lock")
	file, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the agent's lock: %w", err)
	}
	err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		holder := readHolder(path)
		_ = file.Close()
		return nil, fmt.Errorf("another agent runs on this node already: %s holds %s", holder, path)
	}
	if err == nil {
		err = writeHolder(file)
	}
	if err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("take the agent's lock %s: %w", path, err)
	}
	return file, nil
}

// writeHolder says in the file who has the lock. The host's name is that of
// the container where the agent runs in one.
func writeHolder(file *os.File) error {
	host, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := file.Truncate(0); err != nil {
		return err
	}
	_, err = file.WriteAt(fmt.Appendf(nil, "pid %d on %s\n", os.Getpid(), host), 0)
	return err
}

func readHolder(path string) string {
	data, err := os.ReadFile(path)
	if holder := strings.TrimSpace(string(data)); err == nil && holder != "" {
		return holder
	}
	return "a process that has not yet said which it is"
}
