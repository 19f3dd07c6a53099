package conformance

import (
	"fmt"
	"runtime"
	"strings"
	"time"
)

// goroutines returns the stack of every goroutine by its number. A number is
// never used again.
func goroutines() map[string]string {
	buffer := make([]byte, 1<<16)
	for {
		n := runtime.Stack(buffer, true)
		if n < len(buffer) {
			buffer = buffer[:n]
			break
		}
		buffer = make([]byte, 2*len(buffer))
	}
	stacks := map[string]string{}
	for stack := range strings.SplitSeq(string(buffer), "\n\n") {
		number, _, _ := strings.Cut(strings.TrimPrefix(stack, "goroutine "), " ")
		stacks[number] = stack
	}
	return stacks
}

// noneSince waits until no goroutine runs that did not run before. The wait
// is for those that have done their work and are about to end.
func noneSince(before map[string]string, patience time.Duration) error {
	for deadline := time.Now().Add(patience); ; runtime.Gosched() {
		var left []string
		for number, stack := range goroutines() {
			if _, old := before[number]; !old {
				left = append(left, stack)
			}
		}
		if len(left) == 0 {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%d goroutines are left:\n%s", len(left), strings.Join(left, "\n\n"))
		}
	}
}
