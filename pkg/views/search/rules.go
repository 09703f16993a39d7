package search

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// Rules are the rules of what can be found. Without an index nothing is checked.
func (c Consumer) Rules(pg *check.Page, consumers *consumer.Checked) check.Rules {
	r := &rules{Consumer: c, consumers: consumers, modified: map[string]int64{}}
	all := check.Rules{Name: Name, Kinds: []check.Kind{{PK: "SEARCH"}}}
	if c.Index != nil {
		all.Kinds = append(all.Kinds, check.Subjects(event.Object, r.checkObject))
		all.State, all.Rows = &r.unread, r.readIndex
	}
	return all
}

// rules check the documents of objects.
type rules struct {
	Consumer
	consumers *consumer.Checked
	modified  map[string]int64 // when the objects of the page were changed as the index has them
	// unread is set once the index could not be read: that is one finding, and the run goes on.
	unread bool
}

// readIndex reads which states of the objects of a page the index has.
func (r *rules) readIndex(ctx context.Context, rows []table.Raw) ([]check.Problem, error) {
	var arks []string
	for _, row := range rows {
		if ark, is := strings.CutPrefix(row.PK, "OBJECT#"); is && row.SK == "OBJECT" && !r.unread {
			arks = append(arks, ark)
		}
	}

	for some := range slices.Chunk(arks, MaxARKs) {
		has, err := r.Index.Modified(ctx, some)
		if err != nil && ctx.Err() != nil {
			return nil, err
		}

		if err != nil {
			r.unread = true
			return []check.Problem{{Invariant: "search-index", Subject: Name,
				Evidence: "the search index could not be read, so it was not compared with the objects: " + err.Error(),
				Command:  "archivist consumer show " + Name}}, nil
		}
		maps.Copy(r.modified, has)
	}
	return nil, nil
}

// checkObject checks that the index has the object as it is now, once the consumer has passed its newest event. The
// document follows from the object alone, so it can be made again at any time.
func (r *rules) checkObject(ctx context.Context, x *check.Row) error {
	var o inventory.Object
	if r.unread || !x.Into(&o) || r.modified[o.ARK] == o.Modified {
		return nil
	}

	of := event.Subject{Type: event.Object, ID: o.ARK}
	passed, err := r.consumers.PassedNewest(ctx, x, Name, of, o.Number)
	if err != nil || !passed {
		return err
	}

	has, err := r.Index.Modified(ctx, []string{o.ARK})
	if err != nil || has[o.ARK] == o.Modified {
		return err
	}

	x.Subject = o.ARK
	x.Add("search-document", "", func(ctx context.Context) error {
		return r.Index.Update(ctx, []Change{{ARK: o.ARK, Version: o.Number}}, r.Read)
	}, "the search index has %s, it was changed at %s", indexedAt(has[o.ARK]), stamp(o.Modified))
	return nil
}

// indexedAt says which state of an object the index has, by the time at which that was changed; 0 is none.
func indexedAt(modified int64) string {
	if modified == 0 {
		return "nothing of it"
	}
	return "it as it was at " + stamp(modified)
}

// stamp is a time in milliseconds, for people.
func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }
