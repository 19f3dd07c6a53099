package nvidia

import "time"

// questions are calls into NVML, each of which may take forever: a GPU in
// trouble can keep the kernel's half of the driver from returning. A call can
// not be taken back, so one that is out is waited for, and the same is not
// asked a second time meanwhile.
type questions struct {
	patience time.Duration
	out      map[string]chan struct{} // closed when the call has returned
}

// ask runs all calls at the same time and returns the names of those that
// have not returned in time, with those that were still out from before.
func (q *questions) ask(calls map[string]func()) map[string]bool {
	silent := map[string]bool{}
	asked := map[string]chan struct{}{}
	for name, call := range calls {
		if q.isOut(name) {
			silent[name] = true
			continue
		}
		done := make(chan struct{})
		q.out[name], asked[name] = done, done
		go func() {
			defer close(done)
			call()
		}()
	}
	deadline := time.NewTimer(q.patience)
	defer deadline.Stop()
	late := false
	for name, done := range asked {
		if !late {
			select {
			case <-done:
			case <-deadline.C:
				late = true
			}
		}
		if q.isOut(name) {
			silent[name] = true
		}
	}
	return silent
}

// settle waits for all that is out, and reports whether it has come back.
func (q *questions) settle() bool {
	deadline := time.NewTimer(q.patience)
	defer deadline.Stop()
	for name, done := range q.out {
		select {
		case <-done:
			delete(q.out, name)
		case <-deadline.C:
			return false
		}
	}
	return true
}

// busy reports whether any call is out.
func (q *questions) busy() bool {
	for name := range q.out {
		if q.isOut(name) {
			return true
		}
	}
	return false
}

func (q *questions) isOut(name string) bool {
	done, ok := q.out[name]
	if !ok {
		return false
	}
	select {
	case <-done:
		delete(q.out, name)
		return false
	default:
		return true
	}
}
