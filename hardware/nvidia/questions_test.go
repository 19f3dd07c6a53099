package nvidia

import (
	"testing"
	"time"
)

func TestQuestions(t *testing.T) {
	q := &questions{patience: 10 * time.Millisecond, out: map[string]chan struct{}{}}
	release := make(chan struct{})
	asked := make(chan bool, 10)
	stuck := func() {
		asked <- true
		<-release
	}
	quick := func() {}

	if silent := q.ask(map[string]func(){"stuck": stuck, "quick": quick}); len(silent) != 1 || !silent["stuck"] {
		t.Errorf("silent were %v", silent)
	}
	if silent := q.ask(map[string]func(){"stuck": stuck, "quick": quick}); len(silent) != 1 || !silent["stuck"] {
		t.Errorf("silent were %v when asked again", silent)
	}
	if len(asked) != 1 {
		t.Errorf("a call was made %d times while it was out", len(asked))
	}
	if !q.busy() || q.settle() {
		t.Error("nothing is out")
	}

	close(release)
	q.patience = 10 * time.Second
	if !q.settle() || q.busy() {
		t.Error("something is out")
	}
	if silent := q.ask(map[string]func(){"stuck": stuck}); len(silent) != 0 || len(asked) != 2 {
		t.Errorf("silent were %v after %d calls, when it had come back", silent, len(asked))
	}
}
