package component

import (
	"context"
	"encoding/base64"
	"encoding/json"

	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// walk is a place in the list of all items, which is in parts.
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

// parseWalk reads a cursor; "" is the beginning.
func parseWalk(cursor string) (w walk, err error) { return w, decodeCursor(cursor, &w) }

// encodeCursor makes a cursor of a place.
func encodeCursor(place any) string {
	data, _ := json.Marshal(place)
	return base64.RawURLEncoding.EncodeToString(data)
}

// decodeCursor reads a cursor of encodeCursor; "" leaves the place as it is.
func decodeCursor(cursor string, place any) error {
	if cursor == "" {
		return nil
	}
	data, err := base64.RawURLEncoding.DecodeString(cursor)
	if err == nil {
		err = json.Unmarshal(data, place)
	}
	if err != nil {
		return fault.New(fault.Invalid, "invalid cursor; use that of the page before, or leave it out to begin again")
	}
	return nil
}

// listed is the row of an item from a list.
type listed struct {
	itemRow
	id      string
	damaged bool // what is known of the item cannot be read
	lost    bool // nor can its places
}

// rows reads the rows of items, consistently. Those that are not there are left out.
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
