package doctor

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/search"
	"archivist/pkg/views/statistics"
)

// shown checks that an object is listed and found as its row says, once the consumers that keep the lists and
// the index have passed its newest event. The rows of both follow from the object alone, so they can be made
// again at any time.
func (x *rowCheck) shown(ctx context.Context, o *inventory.Object) error {
	passed, err := x.passed(ctx, browse.Name, o)
	if err != nil {
		return err
	}

	if passed {
		lists := browse.Store{Table: x.Queue.Table, NewID: x.Queue.NewID}
		wrong, err := lists.Wrong(ctx, o)
		if err != nil {
			return err
		}
		if wrong != "" {
			repair := func(ctx context.Context) error { return lists.Repair(ctx, o.ARK) }
			x.add("browse-entry", "", repair, "%s", wrong)
		}
	}
	return errors.Join(x.indexed(ctx, o), x.followed(ctx, o))
}

// followed checks that components find the object as it is: without its item no component checks or copies it.
func (x *rowCheck) followed(ctx context.Context, o *inventory.Object) error {
	passed, err := x.passed(ctx, component.FollowerName, o)
	if err != nil || !passed {
		return err
	}

	s, id := x.components(), component.IDOf(envelope.Ref{Type: event.Object.String(), ID: o.ARK})
	wrong, err := s.Behind(ctx, id, o.Number)
	if fault.Is(err, fault.Invalid) {
		return nil // the check of the item says so
	}

	if wrong != "" {
		x.add("item-object", "", func(ctx context.Context) error {
			_, err := s.Sync(ctx, id)
			return err
		}, "%s", wrong)
	}
	return err
}

// readIndex reads which states of the objects of a page the search index has. An index that cannot be read is
// one finding of the run.
func (p *page) readIndex(ctx context.Context, rows []table.Raw) error {
	var arks []string
	for _, r := range rows {
		if ark, is := strings.CutPrefix(r.PK, "OBJECT#"); is && r.SK == "OBJECT" {
			arks = append(arks, ark)
		}
	}

	if p.Search.Index == nil || p.cursor.Unindexed {
		return nil
	}

	for some := range slices.Chunk(arks, search.MaxARKs) {
		has, err := p.Search.Index.Modified(ctx, some)
		if err != nil && ctx.Err() != nil {
			return err
		}

		if err != nil {
			p.cursor.Unindexed = true
			return p.report(ctx, []problem{{Finding: queue.Finding{Invariant: "search-index", Subject: search.Name,
				Evidence: "the search index could not be read, so it was not compared with the objects: " + err.Error(),
				Command:  "archivist consumer show " + search.Name}}})
		}
		maps.Copy(p.modified, has)
	}
	return nil
}

// indexed checks that the search index has the object as it is now.
func (x *rowCheck) indexed(ctx context.Context, o *inventory.Object) error {
	if x.Search.Index == nil || x.cursor.Unindexed || x.modified[o.ARK] == o.Modified {
		return nil
	}

	passed, err := x.passed(ctx, search.Name, o)
	if err != nil || !passed {
		return err
	}

	has, err := x.Search.Index.Modified(ctx, []string{o.ARK})
	if err != nil || has[o.ARK] == o.Modified {
		return err
	}

	x.add("search-document", "", func(ctx context.Context) error {
		change := []search.Change{{ARK: o.ARK, Version: o.Number}}
		return x.Search.Index.Update(ctx, change, x.Search.Read)
	}, "the search index has %s, it was changed at %s", indexedAt(has[o.ARK]), stamp(o.Modified))
	return nil
}

// indexedAt says which state of an object the search index has, by the time at which that was changed; 0 is none.
func indexedAt(modified int64) string {
	if modified == 0 {
		return "nothing of it"
	}
	return "it as it was at " + stamp(modified)
}

// stamp is a time in milliseconds, for people.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

// passed reports whether a consumer has passed the newest event of an object: what it keeps of the object then
// is as the object's row says. The cursor is read before what the consumer keeps.
func (x *rowCheck) passed(ctx context.Context, consumer string, o *inventory.Object) (bool, error) {
	all, err := x.consumers(ctx)
	if err != nil || !all[consumer].exists {
		return false, err
	}

	var e event.Row
	k := event.Key(subjectOf(event.Object, o.ARK), o.Number)
	if x.before.Key != k || x.before.Decode(&e) != nil || e.Seq == 0 {
		found, err := x.read(ctx, k, &e)
		if err != nil || !found || e.Seq == 0 {
			return false, err
		}
	}

	// What is kept of a page can only be behind.
	at := cursorKey(consumer, e.Partition)
	if seq, known := x.cursors.Load(at); known && seq.(int64) >= e.Seq {
		return true, nil
	}

	var cur consumerCursor
	_, err = x.read(ctx, at, &cur)
	x.cursors.Store(at, cur.Seq)
	return cur.Seq >= e.Seq, err
}

// checkEntry checks that the object of an entry of a list has it there: else the object would be listed by
// what it is not any more.
func checkEntry(ctx context.Context, x *rowCheck) error {
	k, is := browse.PlaceOf(x.Raw)
	if !is {
		return nil // its object lacks it then
	}

	if browse.Names(x.pairs[k], x.Key) {
		return nil
	}

	place, err := x.Queue.Table.Raw(ctx, k)
	if err != nil && !fault.Is(err, fault.NotFound) || err == nil && browse.Names(place, x.Key) {
		return err
	}

	var h table.Head
	if x.decode(&h) {
		_, x.subject, _ = strings.Cut(k.PK, "#")
		repair := func(ctx context.Context) error {
			return x.commit(ctx, func(tx *table.Tx) { tx.Remove(&h) })
		}
		x.add("browse-surplus", "", repair, "the entry %s is not one of its object", x.Key)
	}
	return nil
}

func (d Doctor) statistics() statistics.Store { return statistics.Store{Table: d.Queue.Table} }

// compareStatistics compares the counts of each partition of the log with its events, at the end of all rows. The
// recounts are then dropped from the cursor.
func (p *page) compareStatistics(ctx context.Context) error {
	for _, name := range slices.Sorted(maps.Keys(p.cursor.Statistics)) {
		wrong, err := p.statistics().Compare(ctx, name, p.cursor.Statistics[name], p.Queue.NewID)
		if err != nil {
			return err
		}

		if wrong == nil {
			continue
		}

		one := problem{Finding: queue.Finding{Invariant: "statistics-counts", Subject: "partition:" + name,
			Evidence: wrong.What}, repair: wrong.Repair}
		if wrong.Repair == nil {
			one.Command = restoreRow
		}
		if err := p.report(ctx, []problem{one}); err != nil {
			return err
		}
	}

	p.cursor.Statistics = nil
	return nil
}

// checkDay checks that the total of a day's partition is there: without it nothing is compared. The days of a log
// follow each other, so the first is enough.
func checkDay(ctx context.Context, x *rowCheck) error {
	if x.before.PK == x.PK {
		return nil
	}

	total := statistics.TotalOf(x.Key)
	missing, err := x.missing(ctx, total)
	if missing {
		x.add("statistics-counts", restoreRow, nil, "days are counted, but there is no row %s", total)
	}
	return err
}
