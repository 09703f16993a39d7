package queue

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Find selects jobs or batches, and a page of their list. A field that is empty selects all.
type Find struct {
	// Collections are those whose jobs or batches are entry: a list of all is merged of their lists.
	Collections []string
	State       string
	Submitter   string // exactly
	LocalID     string // exactly one of its local ids
	ARK         string // in canonical form
	Message     string // a part of it, in any case of letters
	// After and Before limit when it was created, in milliseconds since 1970: from After on, and before Before.
	After, Before int64
	Cursor        string
	// Until is when the search ends at the latest. The page is short then, and its cursor goes on from there.
	Until time.Time
}

// FindPage is the number of items of a page of a list that is found. A page has fewer only if it is the last one, or
// if the search ended before: it took too long, or had read too many rows.
const FindPage = 50

// mostFound is the number of rows that the search for one page reads at most.
const mostFound = 100_000

// entry is a row as the index "list" shows it.
type entry struct {
	table.Head
	ID         string            `dynamo:"id"`
	State      ingest.State      `dynamo:"job_state"`
	BatchState ingest.BatchState `dynamo:"batch_state"`
}

// The two kinds of cursors: a place in the lists of the collections, and the id of a job.
var (
	placed = regexp.MustCompile(`^[0-9]{13}\.[0-9A-Za-z-]+$`)
	jobID  = regexp.MustCompile(`^[0-9A-Za-z]+-[0-9]+$`)
)

// cursorAt is the cursor after a place in the index "list". It needs no escapes in a URL.
func cursorAt(place string) string { return strings.Replace(place, "#", ".", 1) }

// badPlace is the error for a cursor that is not one of this list.
func badPlace(cursor string) error {
	return fault.New(fault.Invalid, "invalid cursor %q; use that of the page before, or leave it out to begin again",
		ingest.Cut(cursor, 100))
}

// search is the search for one page.
type search[T any] struct {
	q *Queue
	Find
	partition string // the partitions of the index "list", without the collection
	key       func(id string) table.Key
	state     func(entry) string
	wanted    func(*T) bool

	left  []*listing // the lists that have not ended
	read  int        // rows
	ended bool       // the search, not the list
}

// listing is what is left of the list of a collection: what was read of it, and the query for what follows.
type listing struct {
	query table.Query
	found []entry
	last  bool // nothing follows
}

// merged finds the page in the lists of the collections: each is in the order of its places, which are unique, and so
// are all together.
func (s *search[T]) merged(ctx context.Context) (page Page[T], err error) {
	if s.Cursor != "" && !placed.MatchString(s.Cursor) {
		return page, badPlace(s.Cursor)
	}

	at := strings.Replace(s.Cursor, ".", "#", 1)
	s.open(at)
	for {
		some, last, err := s.next(ctx, at, FindPage-len(page.Items))
		if err != nil {
			return page, err
		}
		rows, err := s.rows(ctx, some)
		if err != nil {
			return page, err
		}

		for i, row := range rows {
			if row == nil || !s.wanted(row) {
				continue
			}
			page.Items = append(page.Items, *row)
			if len(page.Items) == FindPage {
				if i+1 < len(some) || s.more() {
					page.Cursor = cursorAt(some[i].ListSK)
				}
				return page, nil
			}
		}

		at = last
		switch {
		case s.ended:
			page.Cursor = cursorAt(at)
			return page, nil
		case !s.more():
			return page, nil
		}
	}
}

// open makes the lists of the collections, from after a place on.
func (s *search[T]) open(after string) {
	to := ":" // greater than every digit
	if s.Before > 0 {
		to = fmt.Sprintf("%013d", s.Before)
	}
	if after != "" && after < to {
		to = after
	}

	// A list of many collections takes few of each.
	first := max(10, min(FindPage+1, 2*FindPage/max(1, len(s.Collections))))
	for _, name := range s.Collections {
		s.left = append(s.left, &listing{query: table.Query{Index: "list", PK: s.partition + name,
			From: fmt.Sprintf("%013d", s.After), To: to, Desc: true, Limit: first}})
	}
}

// more reports whether the lists have more.
func (s *search[T]) more() bool {
	s.left = slices.DeleteFunc(s.left, func(l *listing) bool { return l.last && len(l.found) == 0 })
	return len(s.left) > 0
}

// next returns the next entries, of which some may be wanted, and the place of the last that was looked at; at, if
// there was none. If rows are not needed to tell, it returns no more than a page still has room for.
func (s *search[T]) next(ctx context.Context, at string, room int) (some []entry, last string, err error) {
	most := room
	if s.byRow() {
		most = table.MaxGets
	}

	for last = at; len(some) < most && s.more(); {
		missing, err := s.fill(ctx)
		if err != nil || s.ended {
			return some, last, err
		}
		if missing || !s.more() {
			continue
		}

		from := slices.MaxFunc(s.left, func(a, b *listing) int {
			return strings.Compare(a.head(), b.head())
		})
		next := from.found[0]
		from.found, last = from.found[1:], next.ListSK
		if s.State == "" || s.State == s.state(next) {
			some = append(some, next)
		}
	}
	return some, last, nil
}

// head is the place of the first entry of a list that was read.
func (l *listing) head() string { return l.found[0].ListSK }

// mostListed is the number of entries of a list that are read at once.
const mostListed = 1000

// fill reads what follows of each list of which nothing is left, or ends the search if it has taken too long. It
// reports whether a list still has nothing, and has not ended.
func (s *search[T]) fill(ctx context.Context) (missing bool, err error) {
	var empty []*listing
	for _, l := range s.left {
		if len(l.found) == 0 {
			empty = append(empty, l)
		}
	}
	if len(empty) == 0 {
		return false, nil
	}

	if s.read > 0 && (s.read >= mostFound || !s.q.Now().Before(s.Until)) {
		s.ended = true
		return false, nil
	}

	err = together(ctx, len(empty), func(ctx context.Context, i int) error {
		return empty[i].fill(ctx, s.q.Table)
	})
	for _, l := range empty {
		s.read += len(l.found) + 1
		missing = missing || len(l.found) == 0 && !l.last
	}
	return missing, err
}

// fill reads what follows of a list, more each time.
func (l *listing) fill(ctx context.Context, t *table.Table) error {
	next, err := t.Page(ctx, l.query, &l.found)
	if err != nil {
		return err
	}
	l.query.Cursor, l.last = next, next == ""
	l.query.Limit = min(4*l.query.Limit, mostListed)
	// A range includes its ends.
	l.found = slices.DeleteFunc(l.found, func(e entry) bool { return e.ListSK == l.query.To })
	return nil
}

// rows reads the rows of entries, in their order. One is nil that was removed meanwhile.
func (s *search[T]) rows(ctx context.Context, some []entry) ([]*T, error) {
	ids := make([]string, len(some))
	for i, e := range some {
		ids[i] = e.ID
	}
	return readRows[T](ctx, s.q.Table, ids, s.key)
}

// readRows reads rows in the order of ids. One is nil that is not there.
func readRows[T any](ctx context.Context, t *table.Table, ids []string,
	key func(string) table.Key) ([]*T, error) {
	keys := make([]table.Key, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}
	found, err := t.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	rows := make([]*T, len(ids))
	for i, k := range keys {
		raw, there := found[k]
		if !there {
			continue
		}
		rows[i] = new(T)
		if err := raw.Decode(rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// job reports whether a job is wanted. The index only finds it.
func (f *Find) job(j *ingest.Job) bool {
	return (f.State == "" || f.State == string(j.State)) &&
		slices.Contains(f.Collections, j.Collection) &&
		f.common(j.Submitter, j.Primary, j.LocalIDs, j.Message, j.Created)
}

// batch is job for a batch.
func (f *Find) batch(b *ingest.Batch) bool {
	return (f.State == "" || f.State == string(b.State)) &&
		slices.Contains(f.Collections, b.Collection) &&
		f.common(b.Submitter, b.Primary, b.LocalIDs, b.Message, b.Created)
}

func (f *Find) common(submitter, ark string, localIDs []string, message string, created int64) bool {
	return (f.Submitter == "" || f.Submitter == submitter) && (f.ARK == "" || f.ARK == ark) &&
		(f.LocalID == "" || slices.Contains(localIDs, f.LocalID)) &&
		strings.Contains(strings.ToLower(message), strings.ToLower(f.Message)) &&
		created >= f.After && (f.Before == 0 || created < f.Before)
}

// byRow reports whether only the rows tell what is wanted.
func (f *Find) byRow() bool { return f.Submitter+f.ARK+f.LocalID+f.Message != "" }
