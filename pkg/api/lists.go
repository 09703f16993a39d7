package api

import (
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
)

// The limits of the search for a filtered page: matching items, and time, as a gateway
// waits only 29 seconds. The cursor of the response continues where the search ended.
const (
	enough    = 50
	searchFor = 10 * time.Second
	// rowsFor is the time of a search that no index shortens: it is short, so that whoever waits sees that it goes on.
	rowsFor = 700 * time.Millisecond
)

// list converts a page to its wire form. Items is never nil, so that an empty list is [] in JSON.
func list[T, R any](p queue.Page[R], f func(R) T) v1.List[T] {
	out := v1.List[T]{Items: make([]T, 0, len(p.Items)), Cursor: p.Cursor}
	for _, r := range p.Items {
		out.Items = append(out.Items, f(r))
	}
	return out
}

// inState is the filter of items in a state, nil for "".
func inState[T any](given string, state func(T) string) func(T) bool {
	if given == "" {
		return nil
	}
	return func(item T) bool { return state(item) == given }
}

// filtered reads pages, starting at a cursor, and keeps the items that are wanted. The filter is
// applied before the paging: an empty page means the end of the list, or that the search took too long.
// Without a filter it returns the page as it is. Every page is read whole, so a filtered page can
// have more than enough items, and the cursor of a page that has none is still to be followed.
func filtered[T any](a *API, read func(cursor string) (queue.Page[T], error), cursor string,
	wanted func(T) bool) (queue.Page[T], error) {
	until := a.Queue.Now().Add(searchFor)
	out := queue.Page[T]{Cursor: cursor}
	for {
		p, err := read(out.Cursor)
		if err != nil || wanted == nil {
			return p, err
		}

		for _, item := range p.Items {
			if wanted(item) {
				out.Items = append(out.Items, item)
			}
		}

		out.Cursor = p.Cursor
		if p.Cursor == "" || len(out.Items) >= enough || !a.Queue.Now().Before(until) {
			return out, nil
		}
	}
}

// filterBy returns the known state that a client named, ignoring case, "" for none. An unknown state is an Invalid
// that lists the known ones.
func filterBy(given string, known []string) (string, error) {
	if given == "" {
		return "", nil
	}
	for _, state := range known {
		if strings.EqualFold(state, given) {
			return state, nil
		}
	}
	return "", fault.New(fault.Invalid, "state: found %q; expected one of %s", given,
		strings.Join(known, ", "))
}

// badCursor is the error for a cursor that is not one of this list. It is an Invalid. The text is
// quoted, and bounded before it is sent (bounded).
func badCursor(found string) error {
	return fault.New(fault.Invalid,
		"invalid cursor %q; use that of the page before, or leave it out to begin again", found)
}

// each converts the items of a list. It is never nil.
func each[F, T any](from []F, convert func(F) T) []T {
	out := make([]T, 0, len(from))
	for _, f := range from {
		out = append(out, convert(f))
	}
	return out
}

// listOf is a list of one item without a next page, for examples.
func listOf[T any](one T) v1.List[T] { return v1.List[T]{Items: []T{one}} }
