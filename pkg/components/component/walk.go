package component

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// walk is a place in the list of all items, which is in parts: Shard counts those that are done,
// Cursor is the table's in the next one.
type walk struct {
	Shard  int    `json:"s"`
	Cursor string `json:"c,omitempty"`
}

// advance goes to the next page; after is its cursor, "" at the end of the part.
func (w *walk) advance(after string) {
	w.Cursor = after
	if after == "" {
		w.Shard++
	}
}

// String is the place as a cursor, "" at the end.
func (w *walk) String() string {
	if w.Shard >= shards {
		return ""
	}
	return encodeCursor(w)
}

// parseWalk reads a cursor; "" is the beginning. Another text is an Invalid.
func parseWalk(cursor string) (w walk, err error) {
	err = decodeCursor(cursor, &w)
	return w, err
}

// encodeCursor makes a cursor of a place: JSON in base64 that can be part of a URL.
func encodeCursor(place any) string {
	data, _ := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeCursor reads a cursor of encodeCursor; "" leaves the place as it is.
func decodeCursor(cursor string, place any) error {
	if cursor == "" {
		return nil
	}

	invalid := fault.New(fault.Invalid,
		"invalid cursor; use that of the page before, or leave it out to begin again")

	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return invalid
	}

	if json.Unmarshal(data, place) != nil {
		return invalid
	}
	return nil
}

// listed is the row of an item from a list. A damaged one is in the list, too, so that one item
// does not end a walk through all.
type listed struct {
	itemRow
	id string

	// damaged: what is known of the item cannot be read.
	damaged bool

	// lost: nor can its places.
	lost bool
}

// rows reads the rows of items, consistently, in the order of ids. Those that are not there are
// left out; one that cannot be read is in the list, and says so.
func (s *Store) rows(ctx context.Context, ids []string) (rows []listed, err error) {
	keys := make([]table.Key, len(ids))
	for i, id := range ids {
		keys[i] = itemSubject(id).Key()
	}

	found, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, err
	}

	for i, id := range ids {
		raw, ok := found[keys[i]]
		if !ok {
			continue
		}
		r := listed{id: id}
		r.lost = raw.Decode(&r.itemRow) != nil
		r.damaged = r.lost || json.Unmarshal([]byte(r.Text), &r.it) != nil
		rows = append(rows, r)
	}
	return rows, nil
}

// items lists the ids of a page of a part of all items, by their order. The index lags: an item
// that was made a moment ago may be missing.
func (s *Store) items(ctx context.Context, shard uint32, cursor string,
	limit int) (ids []string, next string,
	err error) {
	var page []table.Head
	next, err = s.Table.Page(ctx, table.Query{
		Index:  "list",
		PK:     shelf(shard),
		Limit:  limit,
		Cursor: cursor,
	}, &page)
	if err != nil {
		return nil, next, err
	}

	for i := range page {
		ids = append(ids, page[i].ListSK)
	}
	return ids, next, nil
}
