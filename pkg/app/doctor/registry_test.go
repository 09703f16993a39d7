package doctor_test

import (
	"context"
	"slices"
	"testing"

	"archivist/pkg/kernel/fault"
)

// registry has ARKs that are left reserved.
type registry struct {
	left  []string
	fails error
}

func (r *registry) Left(_ context.Context, ark string) (bool, error) {
	return slices.Contains(r.left, ark), r.fails
}

func (r *registry) Free(_ context.Context, ark string) error {
	r.left = slices.DeleteFunc(r.left, func(one string) bool { return one == ark })
	return r.fails
}

// TestLeftReservation: an ARK that is reserved elsewhere for nothing is found and freed; a registry that cannot be
// asked is one finding for each ARK, and the rest is checked.
func TestLeftReservation(t *testing.T) {
	w := settled(t)
	ark := w.object
	r := &registry{left: []string{ark}}
	d := w.doctor()
	d.Registry = r
	for _, c := range []struct {
		fails    error
		repair   bool
		want     string
		repaired bool
	}{
		{fault.New(fault.Unavailable, "EZID is down"), true, "ark-registry", false},
		{nil, false, "ark-reserved", false},
		{nil, true, "ark-reserved", true},
		{nil, true, "", false},
	} {
		r.fails = c.fails
		found, err := d.All(t.Context(), c.repair)
		switch {
		case err != nil:
			t.Error(err)
		case c.want == "" && len(found) > 0:
			t.Errorf("found %+v", found)
		case c.want != "" && (len(found) != 1 || found[0].Invariant != c.want || found[0].Subject != ark ||
			found[0].Repaired != c.repaired || found[0].Command == ""):
			t.Errorf("want %s, found %+v", c.want, found)
		}
	}
}
