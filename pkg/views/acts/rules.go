package acts

import (
	"context"
	"sync"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/table"
)

// subjects are the types of the subjects of acts: those of the consumer's filter.
var subjects = []event.Type{event.Job, event.Batch, event.Operation, event.Object, event.Collection, event.Queue,
	event.Token, event.Component, event.ResearchProject, event.Consumer, event.Upload, event.Item, event.Episode,
	event.Clip, event.Archive, event.Revision, event.Task}

// Rules are the rules of the lists of acts.
func Rules(passed *consumer.Checked) check.Rules {
	rule := func(ctx context.Context, x *check.Row) error { return checkAct(ctx, x, passed) }
	kinds := []check.Kind{{PK: "ACTS"}, {PK: "ACTSOF"}}
	for _, of := range subjects {
		k := check.Events(of, rule)
		k.Needs = rowsOf
		kinds = append(kinds, k)
	}
	return check.Rules{Kinds: kinds}
}

// rowsOf are where the lists have the event of a row, none if they do not have it.
func rowsOf(r table.Raw) []table.Key {
	_, a, is := actAt(r)
	if !is {
		return nil
	}
	return a.keys()
}

// selected is the filter of the consumer.
var selected = sync.OnceValues(func() (*filter.Filter, error) { return filter.Compile(selection) })

// actAt is the event of a row, and the act that it tells of; is is false if it is none that the
// lists have.
func actAt(r table.Raw) (e envelope.Event, a Act, is bool) {
	var row event.Row
	if r.Decode(&row) != nil {
		return e, a, false
	}
	e, err := row.Envelope()
	f, wrong := selected()
	if err != nil || wrong != nil || e.Seq == 0 || !f.Match(e) {
		return e, a, false
	}
	a, is = Of(e)
	return e, a, is
}

// checkAct checks that the lists have an act that their consumer has passed. One that is missing
// is recorded: its rows follow from the event alone.
func checkAct(ctx context.Context, x *check.Row, consumers *consumer.Checked) error {
	e, a, is := actAt(x.Raw)
	if !is {
		return nil
	}
	for _, k := range a.keys() {
		if x.Paired(k, &table.Head{}) {
			continue
		}

		// The cursor first: what it has passed then is recorded.
		passed, err := consumers.Passed(ctx, Name, e.Partition, e.Seq)
		if err != nil || !passed {
			return err
		}

		missing, err := x.Missing(ctx, k)
		if err != nil {
			return err
		}
		if missing {
			x.Add("act", check.Repair, func(ctx context.Context) error {
				return Recorder{Table: x.Table, NewID: x.NewID}.record(ctx, a)
			}, "the list %s of what people did does not have the event %s (%s)", k.PK, e.ID, e.Type)
			return nil
		}
	}
	return nil
}
