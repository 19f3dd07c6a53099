package process

import (
	"context"
	"fmt"
	"os"
	"time"
)

const (
	// largestLog is how long a log may become before its beginning is put
	// aside; there is one file of what was put aside.
	largestLog   = 50 << 20
	logsLookedAt = time.Minute
)

// keepLogsSmall looks at the logs every now and then until ctx ends.
func (s *Supervisor) keepLogsSmall(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(logsLookedAt):
		}
		for _, spec := range s.Specs {
			if err := putAside(s.LogFile(spec.Name), largestLog); err != nil {
				s.Logger.Error("keep a log small", "process", spec.Name, "error", err)
			}
		}
	}
}

// putAside copies a log that has grown too long and empties it. The process
// goes on writing to the same file, at its end, wherever that is.
func putAside(path string, largest int64) error {
	info, err := os.Stat(path)
	if err != nil || info.Size() <= largest {
		return nil
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	if err := WriteFile(path+".1", data, 0o600); err != nil {
		return fmt.Errorf("put %s aside: %w", path, err)
	}
	return os.Truncate(path, 0)
}
