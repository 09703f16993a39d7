package consumer

// next says how a run goes on after a step.
type next int

const (
	again    next = iota // there may be more to do
	idle                 // there was nothing to do; the lease is still held
	released             // the lease was given back with the last write
)

// after says what becomes of the lease after a write.
type after int

const (
	hold after = iota // it is kept, and the flag is cleared: the log is read again
	// finish gives it back, unless the row was changed meanwhile: then there may be more to do.
	finish
	leave // it is given back, and the flag stays
)

// next is how the run goes on after such a write.
func (a after) next() next {
	if a == hold {
		return again
	}
	return released
}
