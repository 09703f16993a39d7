package component

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Happened is an event in the history of an item.
type Happened struct {
	envelope.Event

	// Name is that by which components know it: "Metadata_checked", or its type.
	Name string

	// Own: it is one of the item, not of its subject.
	Own bool

	// Revoked: it counts no longer.
	Revoked bool
}

// historyPage is how many events a page of a history has, at most.
const historyPage = 50

// History is what happened to an item and to its subject: in the order of time, and of the numbers
// in each. Those of the subject are first where the times are equal. next is the cursor of the next
// page, "" at the end: how many events of each were on the pages before, so that events that come
// meanwhile are at the end. An Invalid means that the id or the cursor is not one, a NotFound that
// there is no such item.
func (s *Store) History(ctx context.Context, id,
	cursor string) (page []Happened, next string, err error) {
	it, err := s.find(ctx, id)
	if err != nil {
		return nil, "", err
	}

	var at [2]int64 // numbers of the events that were on earlier pages
	if cursor != "" {
		_, _ = fmt.Sscanf(cursor, "%d-%d", &at[0], &at[1])
		if placeOf(at) != cursor || at[0] < 0 || at[1] < 0 {
			return nil, "", fault.New(fault.Invalid, "cursor: %q is not one of this list", cursor)
		}
	}

	of := []event.Subject{itemSubject(it.ID)}
	if subject, ok := subjectOf(it.ID); ok {
		of = append(of, subject)
	}

	var sequences [2][]event.Row
	for i, subject := range of {
		if sequences[i], err = s.eventsAfter(ctx, subject, at[i]); err != nil {
			return nil, "", err
		}
	}

	for len(page) < historyPage && len(sequences[0])+len(sequences[1]) > 0 {
		first := 0
		if earlier(sequences[1], sequences[0]) {
			first = 1
		}
		h, err := it.happened(sequences[first][0])
		if err != nil {
			return nil, "", err
		}
		page = append(page, h)
		at[first], sequences[first] = h.Version, sequences[first][1:]
	}

	if len(page) == historyPage {
		next = placeOf(at)
	}
	return page, next, nil
}

// placeOf is the cursor: the number of the last own event and that of the last event of the
// subject, "OWN-SUBJECT".
func placeOf(at [2]int64) string { return fmt.Sprintf("%d-%d", at[0], at[1]) }

// earlier reports whether the first event of a is before that of b, or at the same time.
func earlier(a, b []event.Row) bool {
	return len(a) > 0 && (len(b) == 0 || a[0].Time <= b[0].Time)
}

// eventsAfter reads a page's events of a subject after a number. A page of the table can have
// fewer: it ends at 1 MB.
func (s *Store) eventsAfter(ctx context.Context, subject event.Subject,
	after int64) (all []event.Row, err error) {
	q := table.Query{
		PK:    subject.Key().PK,
		From:  event.Key(subject, after+1).SK,
		To:    event.Key(subject, maxVersion).SK,
		Limit: historyPage,
	}
	for {
		var page []event.Row
		q.Cursor, err = s.Table.Page(ctx, q, &page)
		all = append(all, page...)
		if err != nil || q.Cursor == "" || len(all) >= historyPage {
			return all, err
		}
	}
}

// happened is an event in the history of the item. It is revoked if a later event has revoked its
// name or forgotten the item.
func (it *Item) happened(r event.Row) (Happened, error) {
	e, err := r.Envelope()
	if err != nil {
		return Happened{}, err
	}

	h := Happened{Event: e, Name: e.Type, Own: e.Subject.Type == event.Item.String()}
	if !h.Own {
		return h, nil
	}

	var named struct {
		Event string `json:"event"`
	}

	if strings.HasPrefix(e.Type, "component.") || e.Type == "item.event" {
		if err := json.Unmarshal(e.Detail, &named); err != nil {
			return h, err
		}
	}

	h.Name = cmp.Or(named.Event, h.Name)
	h.Revoked = named.Event != "" && e.Version < max(it.Revoked[named.Event], it.Cleared)
	return h, nil
}
