package history

import (
	"context"
	"errors"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// Rules are the rules of the permanent record of objects.
func Rules(passed *consumer.Checked) check.Rules {
	rule := func(ctx context.Context, x *check.Row) error { return checkRecord(ctx, x, passed) }
	kinds := []check.Kind{{PK: "HISTORY"}}
	for _, of := range []event.Type{event.Object, event.Version, event.Item} { // those of the consumer's filter
		k := check.Events(of, rule)
		k.Needs = recordOf
		kinds = append(kinds, k)
	}
	return check.Rules{Kinds: kinds}
}

// recordOf is where the record of an object has the event of a row, if it has it.
func recordOf(r table.Raw) []table.Key {
	var row event.Row
	if r.Decode(&row) != nil {
		return nil
	}

	e, err := row.Envelope()
	if err != nil || e.Seq == 0 {
		return nil
	}

	k, kept, err := KeyOf(e)
	if err != nil || !kept {
		return nil
	}
	return []table.Key{k}
}

// checkRecord checks that the record of an object has an event of the object, its versions or its items that the
// consumer of the record has passed. One that is missing is recorded: the row follows from the event alone.
func checkRecord(ctx context.Context, x *check.Row, consumers *consumer.Checked) error {
	keys := recordOf(x.Raw)
	if len(keys) == 0 || x.Paired(keys[0], &table.Head{}) {
		return nil
	}

	var row event.Row
	err := x.Decode(&row)
	if err != nil {
		return err
	}

	// The cursor first: what it has passed then is recorded.
	passed, err := consumers.Passed(ctx, Name, row.Partition, row.Seq)
	if err != nil || !passed {
		return err
	}

	missing, err := x.Missing(ctx, keys[0])
	if err != nil || !missing {
		return err
	}

	e, err := row.Envelope()
	x.Add("record-event", check.Repair, func(ctx context.Context) error {
		b := consumer.Batch{Consumer: Name, Events: []consumer.Item{{Event: e}}}
		failed, err := Recorder{Table: x.Table, NewID: x.NewID}.Handle(ctx, b)
		if err == nil && len(failed) > 0 {
			err = errors.New(failed[0].Reason)
		}
		return err
	}, "the record of the object does not have the event %s (%s)", e.ID, e.Type)
	return err
}
