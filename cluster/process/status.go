package process

import (
	"encoding/json"
	"os"
	"time"
)

// State is where a process stands.
type State string

const (
	// Waiting for the processes that it stands on.
	Waiting State = "Waiting"
	// Starting means that it runs and does not answer yet.
	Starting State = "Starting"
	// Ready means that it runs and has answered.
	Ready State = "Ready"
	// Failed means that it died and will be started again.
	Failed State = "Failed"
	// Stopped means that it was told to stop and has.
	Stopped State = "Stopped"
)

// Status is how one process is.
type Status struct {
	Name     string    `json:"name"`
	State    State     `json:"state"`
	PID      int       `json:"pid,omitempty"`
	Restarts int       `json:"restarts"`
	Since    time.Time `json:"since"`
	LastExit string    `json:"lastExit,omitempty"`
}

// ReadStatus reads what the supervisor last wrote to the file.
func ReadStatus(file string) ([]Status, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var statuses []Status
	return statuses, json.Unmarshal(data, &statuses)
}

// WriteFile replaces a file as a whole, so that a reader never sees half.
func WriteFile(file string, data []byte, mode os.FileMode) error {
	temporary := file + ".new"
	if err := os.WriteFile(temporary, data, mode); err != nil {
		return err
	}
	return os.Rename(temporary, file)
}
