// Package table keeps every row of the system in one DynamoDB table: rows carry a
// revision, a change is one transaction conditioned on the revisions that it read, and a
// commit whose answer was lost is settled by reading.
//
// A row is a struct that embeds Head. A change reads rows, composes a transaction and
// commits it once:
//
//	var shelf Shelf
//	err := t.Get(ctx, table.Key{PK: "SHELF#maps", SK: "ROW"}, &shelf)
//	shelf.Books++
//	tx := t.Begin(id) // unique to this change
//	tx.Save(&shelf)   // on the condition that it was not written since
//	err = tx.Commit(ctx)
//
// A Stale means that another change was first: read again, and decide again. Throttling,
// conflicts and lost answers are retried here, and only here. Queries of an index only find
// candidates; rows for a decision are read with Get. In tests, package tabletest is DynamoDB in a
// process.
//
// What holds for whoever uses it: each write raises the row's revision (but Amend, which says
// so), and has a condition; no write is conditioned on what an index said; a call ends within
// about 50 seconds, whatever DynamoDB does (see budget).
package table

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
)

// Table is the one table. Wait and Jitter may be replaced by a simulation. It may be used
// concurrently.
type Table struct {
	Rows   dynamo.Table
	DB     *dynamo.DB
	Wait   func(ctx context.Context, d time.Duration) error // sleeps unless ctx ends
	Jitter func() float64                                   // uniform in [0,1)
}

// New returns the table of that name. The client below db must not retry by itself: see
// budget.
func New(db *dynamo.DB, name string) *Table {
	return &Table{Rows: db.Table(name), DB: db, Wait: backoff.Sleep, Jitter: rand.Float64}
}

// Get reads one row consistently into row. A missing row is a NotFound. row is a pointer to a
// struct that embeds Head, or to one of some of its attributes. Other errors are an
// Unavailable, after the retries, or tell that the row cannot be decoded.
func (t *Table) Get(ctx context.Context, k Key, row any) error {
	return t.retry(ctx, "read "+k.String(),
		func(ctx context.Context) error { return t.get(ctx, k, row) })
}

// get is one try of Get.
func (t *Table) get(ctx context.Context, k Key, row any) error {
	item, err := t.item(ctx, k)
	if err != nil {
		return err
	}
	return decode(item, row)
}

// item reads a row as it is stored.
func (t *Table) item(ctx context.Context, k Key) (item Item, err error) {
	err = t.Rows.Get("pk", k.PK).Range("sk", dynamo.Equal, k.SK).Consistent(true).One(ctx, &item)
	if errors.Is(err, dynamo.ErrNotFound) {
		err = fault.New(fault.NotFound, "no row %s", k)
	}
	return item, err
}

// Query selects rows in key order. Zero values mean: the whole partition, the first page,
// ascending, 100 rows. From with a Prefix is ignored.
type Query struct {
	Index  string // "" the table itself (read consistently), "work" or "list"
	PK     string // partition: pk, place or shelf
	Prefix string // of sk, ranking or since
	From   string // least sk, ranking or since, included
	To     string // greatest sk, ranking or since, included; needs From
	Desc   bool
	Limit  int
	Cursor string // of the previous page
}

var indexKeys = map[string][2]string{"": {"pk", "sk"}, "work": {"place", "ranking"},
	"list": {"shelf", "since"}}

// Page reads one page of rows into out, a pointer to a slice, and returns the cursor of the
// next page, "" at the end. Index reads may lag: they find candidates and never decide. A
// page may have fewer rows than the limit, or none, and still have a next one. A cursor that
// is not one of this query is an Invalid. Rows of an index have only the attributes that it
// projects.
func (t *Table) Page(ctx context.Context, q Query, out any) (string, error) {
	keys, ok := indexKeys[q.Index]
	if !ok {
		return "", fmt.Errorf("table: no index %q", q.Index)
	}
	if q.To != "" && q.From > q.To { // nothing can be in it; DynamoDB answers with an error
		return "", decodeAll(nil, out, q.Index != "")
	}

	var next string
	err := t.retry(ctx, "query "+q.PK, func(ctx context.Context) error {
		get := t.Rows.Get(keys[0], q.PK).SearchLimit(max(1, cmp.Or(q.Limit, 100)))
		switch {
		case q.Prefix != "":
			get.Range(keys[1], dynamo.BeginsWith, q.Prefix)
		case q.To != "":
			get.Range(keys[1], dynamo.Between, q.From, q.To)
		case q.From != "":
			get.Range(keys[1], dynamo.GreaterOrEqual, q.From)
		}

		if q.Index == "" {
			get.Consistent(true)
		} else {
			get.Index(q.Index)
		}

		if q.Desc {
			get.Order(dynamo.Descending)
		}

		if q.Cursor != "" {
			from, err := q.start(keys)
			if err != nil {
				return err
			}
			get.StartFrom(from)
		}

		var items []Item
		last, err := get.AllWithLastEvaluatedKey(ctx, &items)
		next = encodeCursor(last)
		if err != nil {
			return err
		}
		return decodeAll(items, out, q.Index != "")
	})
	return next, err
}

// start is the key after which the page begins. A cursor of another list is an Invalid: with it,
// a page would be empty, or of the wrong rows.
func (q Query) start(keys [2]string) (dynamo.PagingKey, error) {
	key, err := decodeCursor(q.Cursor, keys)
	if err != nil {
		return nil, err
	}
	text := func(name string) string { return key[name].(*types.AttributeValueMemberS).Value }
	if text(keys[0]) != q.PK || !strings.HasPrefix(text(keys[1]), q.Prefix) {
		return nil, errCursor
	}
	return key, nil
}

var errCursor = fault.New(fault.Invalid,
	"invalid cursor; use that of the page before, or leave it out to begin again")

// encodeCursor is the key at which a page stopped, as a text for URLs: JSON in base64. It has
// no secret, and is not signed: start checks what comes back.
func encodeCursor(last dynamo.PagingKey) string {
	if len(last) == 0 {
		return ""
	}

	flat := map[string]string{}
	for name, v := range last {
		if s, ok := v.(*types.AttributeValueMemberS); ok {
			flat[name] = s.Value
		}
	}

	b, _ := json.Marshal(flat)
	return base64.RawURLEncoding.EncodeToString(b)
}

// decodeCursor accepts exactly the keys of the table and of the index, as texts that are not
// empty. Otherwise DynamoDB would refuse the request with an error that no caller can
// understand.
func decodeCursor(cursor string, keys [2]string) (dynamo.PagingKey, error) {
	b, err := base64.RawURLEncoding.DecodeString(cursor)
	if err != nil {
		return nil, errCursor
	}

	flat := map[string]string{}
	if json.Unmarshal(b, &flat) != nil {
		return nil, errCursor
	}

	key := dynamo.PagingKey{}
	for _, name := range []string{"pk", "sk", keys[0], keys[1]} {
		if flat[name] == "" {
			return nil, errCursor
		}
		key[name] = &types.AttributeValueMemberS{Value: flat[name]}
	}

	if len(key) != len(flat) {
		return nil, errCursor
	}
	return key, nil
}
