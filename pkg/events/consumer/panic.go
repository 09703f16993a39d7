package consumer

import (
	"errors"
	"runtime/debug"

	"archivist/pkg/kernel/definition"
)

// maxStack is in bytes. The row of a parked event has the stack: see maxParkedReason.
const maxStack = 4000

// panicError is a panic of a handler. Its stack is kept in the row of the parked event, where a
// developer finds it.
type panicError struct{ text, stack string }

func (e *panicError) Error() string { return e.text }

// stack is that of the goroutine that panics, so it is called in the deferred function.
func stack() string { return definition.Clip(string(debug.Stack()), maxStack) }

func stackOf(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return p.stack
	}
	return ""
}
