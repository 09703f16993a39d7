package inventory

import (
	"context"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// EventRepair is the type of the event that a file of an object was restored.
const EventRepair = "object.repair"

// Happened puts an event of an object into a transaction that changes nothing else of it. An
// object that is not recorded is a NotFound. A Stale of tx means that the object was changed
// meanwhile: call Happened again, with a new transaction.
func (s Store) Happened(ctx context.Context, tx *table.Tx, ark string, e event.New) error {
	row, err := s.Object(ctx, ark)
	if err != nil {
		return err
	}
	// The row is saved with the number of its event, on the condition that it is as it was read: so
	// two events cannot get one number.
	row.Number++
	if e.Type == EventRepair {
		row.Repaired = max(row.Repaired+1, e.Time) // each repair is seen as one
	}
	e.Parents, e.Identifiers = row.parents(), row.identifiers()
	tx.Save(row)
	return event.Append(tx, subject(ark), row.Number, e)
}
