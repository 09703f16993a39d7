package ezid

import (
	"context"

	"archivist/pkg/events/check"
	"archivist/pkg/kernel/fault"
)

// Checked is where ARKs are reserved for objects; a Registry is one.
type Checked interface {
	// Left reports whether an ARK is still reserved although nothing will be stored under it.
	Left(ctx context.Context, ark string) (bool, error)
	// Free gives up such a reservation.
	Free(ctx context.Context, ark string) error
}

// Rules are the rules of ARKs that are reserved at a registry; nil: the deployment has none.
func Rules(registry Checked) check.Rules {
	if registry == nil {
		return check.Rules{}
	}
	return check.Rules{Kinds: []check.Kind{{PK: "ARK", SK: "ARK", Rule: checker{registry}.checkReserved}}}
}

type checker struct{ Checked }

// checkReserved finds an ARK that is reserved at a registry, and that nothing will be stored under. A registry that
// cannot be asked is a finding, and the run goes on.
func (c checker) checkReserved(ctx context.Context, x *check.Row) error {
	ark := x.ID()
	x.Subject = ark
	left, err := c.Left(ctx, ark)
	switch {
	case fault.Is(err, fault.Unavailable), fault.Is(err, fault.Denied):
		x.Add("ark-registry", "archivist consumer show ezid", nil, "it could not be asked for: %v", err)
		return nil
	case left:
		x.Add("ark-reserved", "", func(ctx context.Context) error { return c.Free(ctx, ark) },
			"it is reserved at EZID, the job that reserved it is over, and nothing is stored under it")
	}
	return err
}
