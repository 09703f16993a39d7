package queue

import (
	"context"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// glanced is how much of each place is read by whoever looks at the queue. How much more there is,
// the scheduler has counted, up to mostCounted.
const (
	glanced     = 100
	mostCounted = 10_000
)

// backlog is the row with what the scheduler has counted, where that is too much to be read by all
// who look. It is for people: nothing depends on it.
type backlog struct {
	table.Head
	At       int64            `dynamo:"at_ms"`
	Waiting  map[string]crowd `dynamo:"by_place,omitempty"`
	Oldest   string           `dynamo:"waits_longest,omitempty"` // job id
	Since    int64            `dynamo:"waits_since,omitempty"`
	Space    int64            `dynamo:"space_used"` // bytes that are granted
	Most     string           `dynamo:"holds_most,omitempty"`
	MostHeld int64            `dynamo:"most_held,omitempty"`
}

// crowd is how many wait at a place.
type crowd struct {
	Jobs int  `dynamo:"jobs"`
	More bool `dynamo:"more,omitempty"` // than that
}

var backlogKey = table.Key{PK: sweptKey.PK, SK: "BACKLOG"}

// waitingPlaces are the gates, and where what is on hold is.
var waitingPlaces = append(slices.Clone(gates), ingest.WorkHeld)

// keepBacklog keeps what waits, and how much space is granted, if that is more than whoever looks
// reads. So a queue with little in it writes nothing.
func (q *Queue) keepBacklog(ctx context.Context, oldest candidate, free ingest.Free,
	spaces int) error {
	is := backlog{Waiting: map[string]crowd{}, Space: free.Capacity - free.Space, Most: free.Most.Job,
		MostHeld: free.Most.Space}
	for _, place := range waitingPlaces {
		n, err := q.countTo(ctx, place, mostCounted+1)
		if err != nil {
			return err
		}
		if n > glanced {
			is.Waiting[place] = crowd{min(n, mostCounted), n > mostCounted}
		}
	}
	if len(is.Waiting) == 0 && spaces <= glanced {
		return nil
	}
	is.Oldest, is.Since, is.At = oldest.ID, oldest.Entered, q.Now().UnixMilli()
	return q.Table.Again(ctx, "what waits", func() error {
		row := backlog{Head: head(backlogKey)}
		if err := q.Table.Get(ctx, backlogKey, &row); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		is.Head = row.Head
		tx := q.Table.Begin(q.NewID())
		tx.InsertOrSave(&is)
		return tx.Commit(ctx)
	})
}

// countTo counts what waits at a place, up to a number.
func (q *Queue) countTo(ctx context.Context, place string, most int) (n int, err error) {
	for query := (table.Query{Index: "work", PK: place}); ; {
		query.Limit = min(most-n, countedMost)
		if n == 0 {
			query.Limit = glanced + 1 // mostly that is all
		}
		var page []struct{ table.Head }
		if query.Cursor, err = q.Table.Page(ctx, query, &page); err != nil {
			return n, err
		}
		n += len(page)
		if query.Cursor == "" || n >= most {
			return n, nil
		}
	}
}

// recent reports whether it was counted so lately that it can be shown.
func (b *backlog) recent(now time.Time) bool { return now.Sub(time.UnixMilli(b.At)) <= silentAfter }

// at is how many wait at a place of which so many were read, one more than glanced if there are
// more.
func (b *backlog) at(place string, read int) crowd {
	if read <= glanced {
		return crowd{Jobs: read}
	}
	if c := b.Waiting[place]; c.Jobs > glanced {
		return c
	}
	return crowd{glanced, true} // it was not counted since there are so many
}
