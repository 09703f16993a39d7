package browse

import (
	"context"
	"slices"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Handle makes the entries of the objects right that the events are about. An object whose entries
// cannot be stored fails alone. An Invalid is a failure of that object's event; every other error is
// returned as Unavailable, so that the whole batch is tried again. Several events of an object in a
// batch cost one update, since an update reads the row and not the event.
func (s Store) Handle(ctx context.Context, b consumer.Batch) ([]consumer.Failure, error) {
	done := map[string]bool{}
	return consumer.Each(ctx, b, nil, func(ctx context.Context, it consumer.Item) error {
		if done[it.Subject.ID] {
			return nil
		}
		err := s.Update(ctx, it.Subject.ID)
		if err != nil && !fault.Is(err, fault.Invalid) {
			return fault.New(fault.Unavailable, "browse: %w", err)
		}
		done[it.Subject.ID] = err == nil
		return err
	})
}

// tries of an update that other runs may be making at the same time. Each try reads everything again.
const tries = 5

// Update makes an object's entries those of its row now. It can be repeated at any time. Conflicts that do not end
// mean that a row was lost, or restored: then all rows are read, and made right. A Stale means that others keep
// changing them.
func (s Store) Update(ctx context.Context, ark string) error {
	for range tries {
		err := s.update(ctx, ark)
		if !fault.Is(err, fault.Stale) {
			return err
		}
	}
	return s.Repair(ctx, ark)
}

// update reads what is listed before it reads the object. So a state that is older than what
// another run has listed meanwhile cannot be committed.
func (s Store) update(ctx context.Context, ark string) error {
	is, err := s.named(ctx, ark)
	if err != nil {
		return err
	}

	should, err := s.should(ctx, ark)
	if err != nil {
		return err
	}

	tx := s.Table.Begin(s.NewID())
	if !replace(tx, &is, should, ark) {
		return nil
	}
	return tx.Commit(ctx)
}

// replace puts the difference into a transaction. It reports whether there is one. is is changed to
// what it is after the commit. Only the difference is written, so an event that changes no title, date,
// creator or collection writes nothing.
//
// An entry is removed only if it is owned by this ARK: no entry of another object can be lost. The row
// is inserted, saved or removed on the condition of its revision; this is what makes a concurrent
// update Stale.
func replace(tx *table.Tx, is *place, should []Entry, ark string) bool {
	var keys []key
	for _, e := range should {
		keys = append(keys, keyOf(e))
	}

	if slices.Equal(keys, is.Entries) {
		return false
	}

	for i, e := range should {
		if !slices.Contains(is.Entries, keys[i]) {
			tx.Insert(&e)
		}
	}

	for _, k := range is.Entries {
		if !slices.Contains(keys, k) {
			tx.RemoveOwned(k.table(), ark)
		}
	}

	is.Entries = keys
	switch {
	case len(keys) == 0:
		tx.Remove(is)
	case is.Rev == 0:
		tx.Insert(is)
	default:
		tx.Save(is)
	}
	return true
}
