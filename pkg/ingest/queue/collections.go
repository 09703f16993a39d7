package queue

import (
	"context"
	"sync"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/nearest"
	"archivist/pkg/kernel/table"
)

// collectionName is the row of a collection's name. A collection exists by being named: the row is there before
// the first batch that names it, and stays.
//
//	COLLECTIONS  {name}
type collectionName struct {
	table.Head
	Since int64 `dynamo:"since_ms"` // when it was first named
}

func collectionKey(name string) table.Key { return table.Key{PK: "COLLECTIONS", SK: name} }

// Names are the collections whose rows are known to be there, so that a process looks for each once.
type Names struct{ known sync.Map }

// name puts a collection on the list of collections.
func (q *Queue) name(ctx context.Context, collection string) error {
	if _, known := q.names().Load(collection); known {
		return nil
	}

	row := collectionName{Head: head(collectionKey(collection)), Since: q.Now().UnixMilli()}
	err := q.Table.Get(ctx, row.Key(), &row)
	if fault.Is(err, fault.NotFound) {
		tx := q.Table.Begin("collection " + collection) // whoever writes the row makes the same change
		tx.Insert(&row)
		err = tx.Commit(ctx)
	}
	if err != nil && !fault.Is(err, fault.Stale) { // Stale: another process has put it there
		return err
	}

	q.names().Store(collection, true)
	return nil
}

// Used reports whether a collection was ever used: a submission has named it, or it has a profile. It reads at most
// three rows.
func (q *Queue) Used(ctx context.Context, collection string) (bool, error) {
	for _, key := range []table.Key{collectionKey(collection),
		event.Subject{Type: event.Collection, ID: collection}.Key()} {
		var row table.Head
		err := q.Table.Get(ctx, key, &row)
		if !fault.Is(err, fault.NotFound) {
			return err == nil, err
		}
	}
	return q.hasBatches(ctx, collection) // earlier versions did not note it
}

// Limits of the names that a misspelt one is compared with, and of those that are shown.
const (
	nearMisses   = 2 // characters
	nearShown    = 5
	nearCompared = 20 // pages of the list of collections
)

// Near are the collections whose names are nearly that of another one.
func (q *Queue) Near(ctx context.Context, name string) (near []string, err error) {
	for after, page := "", 0; page < nearCompared; page++ {
		names, err := q.Collections(ctx, after)
		if err != nil || len(names) == 0 {
			return near, err
		}
		near = append(near, nearest.Within(nearMisses, name, names)...)
		if len(near) >= nearShown {
			return near[:nearShown], nil
		}
		after = names[len(names)-1]
	}
	return near, nil
}

// warnOfName adds a warning if a collection was never used: its name may be misspelt. It is no reason to refuse,
// since a hold can begin before the first submission.
func (q *Queue) warnOfName(ctx context.Context, name string, warnings []string) ([]string, error) {
	used, err := q.Used(ctx, name)
	if used || err != nil {
		return warnings, err
	}
	near, err := q.Near(ctx, name)
	return append(warnings, ingest.Unused(name, near)+"; archivist collection list names those that there are"), err
}

// names is the memory of a process; without one each submission reads the row.
func (q *Queue) names() *sync.Map {
	if q.Names == nil {
		return new(sync.Map)
	}
	return &q.Names.known
}

// Collections lists the names of the collections that submissions have named, in their order, from the one
// after a name on.
func (q *Queue) Collections(ctx context.Context, after string) (names []string, err error) {
	// No name has a blank or a tilde; see collection.CheckName.
	query := table.Query{PK: collectionKey("").PK, From: after + " ", To: "~", Limit: CollectionsPage}

	var rows []collectionName
	if _, err := q.Table.Page(ctx, query, &rows); err != nil {
		return nil, err
	}
	for _, row := range rows {
		names = append(names, row.SK)
	}
	return names, nil
}

// CollectionsPage is the number of collections that are listed at once.
const CollectionsPage = 500
