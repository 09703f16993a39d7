// Package tabletest is a DynamoDB in this process, for tests: the same
// conditions, limits and errors as the service, with indexes that lag. It
// supports only the requests of the system, and fails with a clear message on others.
//
// What a real table does and tests would miss is on purpose: reserved words, sizes of rows
// and transactions, no empty index keys, scans in the order of a hash, cursors at the end of
// a full page. Time-outs, throttling and lost responses are added by a Client around it. TTL
// deletes nothing here.
package tabletest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/guregu/dynamo/v2"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/kernel/journal"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
)

// Item is a row as DynamoDB keeps it.
type Item = map[string]types.AttributeValue

// Change is one row's part of a write; nil means that the row does not exist. The items are
// the table's own, and must not be changed.
type Change struct{ Before, After Item }

// Fake is the table. It is safe for concurrent use.
type Fake struct {
	dynamodbiface.DynamoDBAPI // nil: the calls that are not supported fail

	// Lag, if set, returns at every index read how many writes the index is behind.
	Lag func() int
	// Watch, if set, gets every committed write, complete and in order. It is called with the
	// table locked, so it must not use the table.
	Watch func([]Change)

	mu      sync.Mutex
	rows    map[string]*shelf
	indexes map[string]map[string]*shelf
	log     []Change // writes that the indexes do not have yet
	journal *journal.Journal
}

// EveryWrite, if set, gets every committed write of every Fake. A test binary sets it before
// its tests. It is called with the table locked, by any goroutine.
var EveryWrite func(Change)

// New returns an empty table.
func New() *Fake {
	f := &Fake{rows: map[string]*shelf{}, indexes: map[string]map[string]*shelf{}}
	for _, ix := range schema.Indexes {
		f.indexes[ix.Name] = map[string]*shelf{}
	}
	return f
}

// Table returns the fake as the system's table, through client, which wraps
// the fake or is the fake itself.
func Table(client dynamodbiface.DynamoDBAPI) *table.Table {
	return table.New(dynamo.NewFromIface(client), "archivist")
}

// shelf is a partition in order of its range key.
type shelf struct {
	order []string
	items map[string]Item
}

// put replaces the item as a whole; items are never changed in place, so readers may keep
// them.
func (s *shelf) put(k string, it Item) {
	if _, ok := s.items[k]; !ok {
		i, _ := slices.BinarySearch(s.order, k)
		s.order = slices.Insert(s.order, i, k)
	}
	s.items[k] = it
}

func (s *shelf) remove(k string) {
	if _, ok := s.items[k]; ok {
		i, _ := slices.BinarySearch(s.order, k)
		s.order = slices.Delete(s.order, i, i+1)
		delete(s.items, k)
	}
}

// shelfOf is the partition of that name, which is made if it is not there.
func shelfOf(m map[string]*shelf, k string) *shelf {
	if m[k] == nil {
		m[k] = &shelf{items: map[string]Item{}}
	}
	return m[k]
}

// str is an attribute that is a text, "" if it is missing or something else.
func str(it Item, name string) string {
	s, _ := it[name].(*types.AttributeValueMemberS)
	if s == nil {
		return ""
	}
	return s.Value
}

func (f *Fake) get(k table.Key) Item {
	if s := f.rows[k.PK]; s != nil {
		return s.items[k.SK]
	}
	return nil
}

// write puts or, with nil, removes a row, without any condition. The caller holds the lock.
func (f *Fake) write(k table.Key, it Item) Change {
	c := Change{Before: f.get(k), After: it}
	if it == nil {
		shelfOf(f.rows, k.PK).remove(k.SK)
	} else {
		shelfOf(f.rows, k.PK).put(k.SK, it)
	}
	return c
}

// committed tells the indexes and the watchers of the writes of one commit.
func (f *Fake) committed(cs []Change) {
	f.log = append(f.log, cs...)
	if f.Watch != nil {
		f.Watch(cs)
	}
	for _, c := range cs {
		if EveryWrite != nil {
			EveryWrite(c)
		}
	}
}

// catchUp applies all but the last lag writes to the indexes.
func (f *Fake) catchUp(lag int) {
	n := max(0, len(f.log)-lag)
	for _, c := range f.log[:n] {
		for _, ix := range schema.Indexes {
			parts := f.indexes[ix.Name]
			if p := str(c.Before, ix.PK); p != "" {
				shelfOf(parts, p).remove(indexKey(c.Before, ix))
			}
			if p := str(c.After, ix.PK); p != "" {
				shelfOf(parts, p).put(indexKey(c.After, ix), project(c.After, ix))
			}
		}
	}

	f.log = slices.Delete(f.log, 0, n)
}

// indexKey is the order of an item in an index: by its range key there, then by its own key,
// since range keys of an index need not be unique.
func indexKey(it Item, ix schema.Index) string {
	return str(it, ix.SK) + "\x00" + str(it, schema.PK) + "\x00" + str(it, schema.SK)
}

// project is what an index has of a row: its keys, those of the index, and what is included.
func project(it Item, ix schema.Index) Item {
	out := Item{}
	for _, n := range append([]string{schema.PK, schema.SK, ix.PK, ix.SK}, ix.Include...) {
		if v, ok := it[n]; ok {
			out[n] = v
		}
	}
	return out
}

// All returns a copy of every row, in key order. It is a state between two commits.
func (f *Fake) All() []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Item
	for _, pk := range slices.Sorted(maps.Keys(f.rows)) {
		for _, sk := range f.rows[pk].order {
			out = append(out, maps.Clone(f.rows[pk].items[sk]))
		}
	}
	return out
}

// Row returns one row, nil if it does not exist.
func (f *Fake) Row(k table.Key) Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return maps.Clone(f.get(k))
}

// invalid is DynamoDB's answer to a request that is wrong whatever the rows are. What only
// this fake lacks begins with "tabletest:".
func invalid(format string, args ...any) error {
	return &smithy.GenericAPIError{
		Code:    "ValidationException",
		Message: fmt.Sprintf(format, args...),
		Fault:   smithy.FaultClient,
	}
}

// keyOf is the key of an item, refused as DynamoDB does if a part of it is missing or empty.
func keyOf(it Item) (table.Key, error) {
	k := table.Key{PK: str(it, schema.PK), SK: str(it, schema.SK)}
	if k.PK == "" || k.SK == "" {
		return k, invalid("one of the key values is missing or empty")
	}
	return k, nil
}

// GetItem reads a row; the system reads consistently only.
func (f *Fake) GetItem(_ context.Context, in *dynamodb.GetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if in.ConsistentRead == nil || !*in.ConsistentRead || in.ProjectionExpression != nil {
		return nil, invalid("tabletest: a read that is not consistent, or projected, is not supported")
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	k, err := keyOf(in.Key)
	if err != nil {
		return nil, err
	}
	return &dynamodb.GetItemOutput{Item: maps.Clone(f.get(k))}, nil
}

// DescribeTable is called if a page was cut off by the end of its context. It only fails.
func (f *Fake) DescribeTable(ctx context.Context, _ *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, invalid("tabletest: DescribeTable is not supported")
}
