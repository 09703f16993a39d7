package queue

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// FindPage is the number of items of a page of a list that is found. A page has fewer only if it is the last one, or
// if the search ended before: it took too long, or had read too many rows.
const FindPage = 50

// mostFound is the number of entries that the search for one page reads at most. A row counts as ten.
const mostFound = 100_000

// placed is a cursor: a place in the lists of the collections.
var placed = regexp.MustCompile(`^[0-9]{13}\.[0-9A-Za-z-]+$`)

// oldest begins the cursors of lists with the oldest first: so none of another order is taken.
const oldest = "oldest."

// cursorAt is the cursor after a place. It needs no escapes in a URL.
func (o order) cursorAt(place string) string {
	cursor := strings.Replace(place, "#", ".", 1)
	if o == oldestFirst {
		return oldest + cursor
	}
	return cursor
}

// placeAt is the place of a cursor, "" for none. A cursor that is not one of the order is an
// Invalid.
func (o order) placeAt(cursor string) (string, error) {
	rest, is := cursor, true
	if o == oldestFirst && cursor != "" {
		rest, is = strings.CutPrefix(cursor, oldest)
	}
	if cursor != "" && (!is || !placed.MatchString(rest)) {
		return "", badPlace(cursor)
	}
	return strings.Replace(rest, ".", "#", 1), nil
}

// badPlace is the error for a cursor that is not one of this list.
func badPlace(cursor string) error {
	return fault.New(fault.Invalid,
		"invalid cursor %q; use that of the page before with the same order, or leave it "+
			"out to begin again", ingest.Cut(cursor, 100))
}

// search is the search for one page.
type search[T any] struct {
	q *Queue
	Find
	of     string // namedJob or namedBatch
	index  string // the beginning of the names of the collections' lists in the index "list"
	key    func(id string) table.Key
	wanted func(*T) bool

	order order
	left  []*listing // the lists that have not ended
	read  int        // entries
	ended bool       // the search, not the list
	whole bool       // all is wanted, or nothing: see all
}

// most is the number of items of a page.
func (f *Find) most() int { return cmp.Or(f.Limit, FindPage) }

// merged finds the page in the lists that have all that may be wanted: each is in the order of its places, which are
// unique, and so are all together.
func (s *search[T]) merged(ctx context.Context) (page Page[T], err error) {
	if s.Oldest {
		s.order = oldestFirst
	}
	after, err := s.order.placeAt(s.Cursor)
	if err != nil {
		return page, err
	}

	lists, err := s.lists(ctx)
	if err != nil {
		return page, err
	}
	s.open(lists, after)
	for more, most := true, table.MaxGets; more; most = mostRows {
		if s.LocalID+s.ARK == "" { // the entries tell all: most of their rows are wanted
			most = s.most() - len(page.Items)
		}
		some, to, err := s.next(ctx, most)
		if err != nil {
			return page, err
		}
		if s.tooMany(some) {
			page.Cursor = s.order.cursorAt(some[len(some)-1].ListSK)
			return page, nil
		}
		rows, err := s.rows(ctx, some)
		if err != nil {
			return page, err
		}

		if s.filled(&page, some, rows) {
			return page, nil
		}
		if s.ended {
			page.Cursor = s.order.cursorAt(to)
			return page, nil
		}
		more = len(some) > 0
	}
	return page, nil
}

// counted counts the entries, up to the limit. One more is looked for: that tells exactly whether
// there are others, and then a part of a list that has as many as are read has enough of them.
func (s *search[T]) counted(ctx context.Context) (n int, more bool, err error) {
	lists, err := s.lists(ctx)
	if err != nil {
		return 0, false, err
	}
	most := s.most()
	s.Limit = most + 1
	s.open(lists, "")
	some, _, err := s.next(ctx, s.Limit)
	return min(len(some), most), len(some) > most || s.ended, err
}

// filled adds the rows that are wanted to a page, and reports whether it is full. some are the places of the rows.
func (s *search[T]) filled(page *Page[T], some []entry, rows []*T) bool {
	for i, row := range rows {
		if row == nil || !s.wanted(row) {
			continue
		}
		page.Items = append(page.Items, *row)
		if len(page.Items) == s.most() {
			if i+1 < len(some) || len(s.left) > 0 {
				page.Cursor = s.order.cursorAt(some[i].ListSK)
			}
			return true
		}
	}
	return false
}

// mostRows is the number of rows that are read at once where the first ones were not wanted.
const mostRows = 4 * table.MaxGets

// lists are the lists in which is what may be wanted.
func (s *search[T]) lists(ctx context.Context) ([]listing, error) {
	if l := s.named(); len(l) > 0 {
		return []listing{l}, nil
	}
	if s.Collections != nil && !passing(s.of, s.State) {
		return s.ofCollections(s.of, s.index, s.Collections), nil
	}

	whole, err := s.q.whole(ctx)
	if err != nil {
		return nil, err
	}
	if whole {
		return s.ofAll(s.of), nil
	}
	names := s.Collections
	if names == nil {
		names, err = s.Names(ctx)
	}
	return s.ofCollections(s.of, s.index, names), err
}

// open begins the lists after a place.
func (s *search[T]) open(lists []listing, after string) {
	from, to := fmt.Sprintf("%013d", s.After), ":" // greater than every digit
	if s.Before > 0 {
		to = fmt.Sprintf("%013d", s.Before)
	}
	begin := &to
	if s.order == oldestFirst {
		begin = &from
	}
	if after != "" && s.order.before(*begin, after) {
		*begin = after
	}

	// A list of many collections takes few of each.
	first := max(10, min(s.most()+1, 2*s.most()/max(1, len(lists))))
	for _, l := range lists {
		for _, p := range l {
			p.order, p.seen, p.query.From, p.query.To = s.order, *begin, from, to
			p.query.Desc, p.query.Limit = s.order == newestFirst, cmp.Or(p.first, first)
		}
		s.left = append(s.left, &l)
	}
}

// next returns the next entries, at most so many, of which some may be wanted. If the search has ended, all before the
// place was looked at.
func (s *search[T]) next(ctx context.Context, most int) (some []entry, place string, err error) {
	for len(some) < most {
		s.left = slices.DeleteFunc(s.left, func(l *listing) bool { return !l.settle() })
		if len(s.left) == 0 {
			return some, "", nil
		}

		from := slices.MinFunc(s.left, func(a, b *listing) int {
			return s.order.compare(a.at(), b.at())
		})
		if p := (*from)[0]; from.ready() {
			some = append(some, p.found[0])
			for _, p := range *from {
				p.found = p.found[1:]
			}
			continue
		}
		if s.over() && strings.Contains(from.at(), "#") {
			s.ended = true
			return some, from.at(), nil
		}
		if err := s.fill(ctx); err != nil {
			return some, "", err
		}
	}
	s.left = slices.DeleteFunc(s.left, func(l *listing) bool { return !l.settle() })
	return some, "", nil
}

// over reports whether the search has taken too long. It reads something first.
func (s *search[T]) over() bool {
	return s.read > 0 && (s.read >= mostFound || !s.q.Now().Before(s.Until))
}

// fill reads what follows of each strand of which nothing is left.
func (s *search[T]) fill(ctx context.Context) error {
	var empty []*strand
	for _, l := range s.left {
		to := l.first()
		for _, p := range *l {
			if len(p.found) == 0 {
				p.skip(to)
				empty = append(empty, p)
			}
		}
	}

	counts := make([]int, len(empty))
	err := together(ctx, len(empty), func(ctx context.Context, i int) (err error) {
		counts[i], err = empty[i].fill(ctx, s.q.Table)
		return err
	})
	for _, n := range counts {
		s.read += n + 1
	}
	return err
}

// rows reads the rows of entries, in their order. One is nil that was removed meanwhile.
func (s *search[T]) rows(ctx context.Context, some []entry) ([]*T, error) {
	ids := make([]string, len(some))
	for i, e := range some {
		ids[i] = e.ID
	}
	s.read += 10 * len(ids)
	return readRows[T](ctx, s.q.Table, ids, s.key)
}

// readRows reads rows in the order of ids. One is nil that is not there.
func readRows[T any](ctx context.Context, t *table.Table, ids []string,
	key func(string) table.Key) ([]*T, error) {
	keys := make([]table.Key, len(ids))
	for i, id := range ids {
		keys[i] = key(id)
	}

	rows := make([]*T, len(ids))
	parts := (len(ids) + table.MaxGets - 1) / table.MaxGets
	return rows, together(ctx, parts, func(ctx context.Context, part int) error {
		from := part * table.MaxGets
		some := keys[from:min(from+table.MaxGets, len(keys))]
		raw, err := t.Many(ctx, some)
		for i, k := range some {
			if err == nil {
				rows[from+i], err = found[T](raw, k)
			}
		}
		return err
	})
}
