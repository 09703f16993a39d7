package table

import (
	"context"
	"time"

	"archivist/pkg/kernel/fault"
)

// mostAgain bounds how often a change is decided again because another was first. Each failed try means that somebody
// else has changed the same rows, so many are needed only while many change them at once.
const mostAgain = 20

// apart is how much longer a change may wait before each further try, else many that meet at one row would meet there
// again and again. The second try is made at once.
const apart = 10 * time.Millisecond

// Again makes a change, and makes it again as long as another one was first: try returns a Stale then, and is to read
// all rows anew when it is called again. If others keep being first, the error is an Unavailable that names what is
// changed; what was not committed has no effect. Other errors end it, and so does the end of ctx.
func (t *Table) Again(ctx context.Context, what string, try func() error) error {
	return t.AgainUnless(ctx, what, func(error) bool { return false }, try)
}

// AgainUnless is Again for a change that some Stale ends, such as that of a lease which has passed to another.
func (t *Table) AgainUnless(ctx context.Context, what string, ends func(error) bool, try func() error) error {
	for n := range mostAgain {
		err := try()
		if !fault.Is(err, fault.Stale) || ends(err) {
			return err
		}
		if err := t.Wait(ctx, time.Duration(t.Jitter()*float64(apart)*float64(n))); err != nil {
			return err
		}
	}
	return Busy(what)
}

// Busy is the error of a change that others have been faster than again and again. It has changed nothing.
func Busy(what string) error {
	return fault.New(fault.Unavailable, "%s keeps changing; try again in a moment", what)
}
