package consumer

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// MaxConsumers is how many there can be: the filters of all are evaluated for every event. Several
// that are made in the same moment can exceed it by some, which does no harm.
const MaxConsumers = 200

// Apply makes a consumer, or changes its definition; the same definition again changes nothing.
// What it accepts can run: the filter compiles, and the target is one of those that are permitted.
// A definition's Start and Paused hold for a new consumer only. The same request again returns the
// consumer as it is.
//
// An Invalid names the field that is not accepted. A Conflict means that the consumer is being
// deleted, that there are too many, that its order key cannot change while events wait under it, or
// that the request was done before and the consumer deleted since. An Unavailable means that others
// keep changing it.
func (s *Store) Apply(ctx context.Context, d Definition, by By) (c Consumer, err error) {
	if err := s.check(&d); err != nil {
		return Consumer{}, err
	}

	err = s.Table.Again(ctx, "consumer "+d.Name, func() error {
		r, err := s.row(ctx, d.Name)
		if err == nil {
			c, err = s.apply(ctx, r, d, by)
		}
		return err
	})
	return c, err
}

// apply makes one try of Apply, on the row as it was read. A Stale means that another change was
// first. The cursors of a new consumer are placed before its row is written: nobody reads them
// until then, and what an interrupted call has left is placed again.
func (s *Store) apply(ctx context.Context, r row, d Definition, by By) (Consumer, error) {
	repeated, err := r.Requests.Done(by)
	switch {
	case err != nil:
		return Consumer{}, err
	case repeated && r.State == active: // others may have changed it meanwhile
		return r.consumer()
	case repeated:
		return Consumer{}, registry.Gone("consumer " + r.Name)
	case r.State == deleting:
		return Consumer{},
			fault.New(fault.Conflict, "consumer %s is being deleted; try again in a moment", r.Name)
	case r.State == active:
		return s.redefine(ctx, r, d, by)
	}

	if err := s.room(ctx); err != nil {
		return Consumer{}, err
	}

	now := s.Now().UnixMilli()
	if err := s.placeCursors(ctx, d, now); err != nil {
		return Consumer{}, err
	}

	r.State, r.Created, r.Changed = active, now, now
	r.Resets, r.Rebuild = nil, "" // of a deleted one
	// Targets can tell definitions apart by the version, so a new consumer goes on counting after a
	// deleted one.
	d.Version = 1
	if r.Text != "" { // a deleted one of this name was before
		old, err := r.consumer()
		if err != nil {
			return Consumer{}, err
		}
		d.Version = old.Version + 1
	}
	return s.save(ctx, r, d, "consumer.created", by)
}

// redefine changes the definition of a consumer. Runs that are at work notice the new version, and
// end after their step.
func (s *Store) redefine(ctx context.Context, r row, d Definition, by By) (Consumer, error) {
	old, err := r.consumer()
	if err != nil {
		return old, err
	}

	d.Version, d.Paused = old.Version, old.Paused
	if same(d, old.Definition) {
		return old, registry.Note(ctx, s.Table, s.NewID(), &r, &r.Requests, by)
	}

	if d.Order != old.Order {
		if err := s.mayReorder(ctx, old); err != nil {
			return old, err
		}
	}

	d.Version++
	r.Changed = s.Now().UnixMilli()
	return s.save(ctx, r, d, "consumer.changed", by)
}

// same compares two definitions by what would be stored of them.
func same(a, b Definition) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// mayReorder refuses another order key while events wait under the present one: under the new key,
// later events of the same subject would not find what they must wait behind.
func (s *Store) mayReorder(ctx context.Context, c Consumer) error {
	cursors, err := s.cursors(ctx, c.Name)
	if err != nil {
		return err
	}

	for _, cur := range cursors {
		if n := cur.Parked + cur.Pending; n > 0 {
			return fault.New(fault.Conflict,
				"order: %d events of consumer %s are parked or wait in the partition %s "+
					"under the order key %s; redrive or discard them first", n, c.Name,
				cur.partition(), c.Order)
		}
	}
	return nil
}

// room refuses one consumer too many.
func (s *Store) room(ctx context.Context) error {
	list, err := s.List(ctx)
	if err != nil {
		return err
	}

	if len(list) >= MaxConsumers {
		return fault.New(fault.Conflict,
			"there are %d consumers, and can be no more; delete one first", len(list))
	}
	return nil
}

// check is all that is checked of a definition before it is accepted, with its defaults set. A
// target must be among those of the deployment, whose permissions to call are granted there: any
// other would fail at its first event.
func (s *Store) check(d *Definition) error {
	if err := d.Check(); err != nil {
		return err
	}

	if err := checkFilter(d.Filter); err != nil {
		return err
	}

	switch t := d.Target; {
	case t.Handler != "" && !slices.Contains(s.Handlers, t.Handler):
		return fault.New(fault.Invalid, "target.handler: there is no handler %q; there are: %s",
			definition.Clip(t.Handler, 60),
			strings.Join(s.Handlers, ", "))
	case t.Handler == "" && !slices.Contains(s.Targets, t.Lambda+t.Queue):
		return fault.New(fault.Invalid,
			"target: %q is not among the consumerTargets of this deployment; add it there "+
				"and deploy, so that the permission to call it is granted",
			definition.Clip(t.Lambda+t.Queue, 200))
	}
	return nil
}
