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
	"strings"
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

// Change is one row's part of a write; nil means that the row does not exist. The items must not be changed.
type Change struct{ Before, After Item }

// Fake is the table. It is safe for concurrent use.
type Fake struct {
	dynamodbiface.DynamoDBAPI // nil: the calls that are not supported fail

	// Lag, if set, returns at every index read how many writes the index is behind, 2,000 at most.
	Lag func() int
	// Watch, if set, gets every committed write, complete and in order. It is called with the
	// table locked, so it must not use the table.
	Watch func([]Change)

	mu      sync.Mutex
	rows    map[string]*shelf
	indexes map[string]map[string]*shelf
	log     []delta // writes that the indexes do not have yet
	journal *journal.Journal
	buffer  []byte              // in which a row is packed
	hashed  map[string][]string // the partitions of the table ("") and its indexes, in the order of a scan
}

// EveryWrite, if set, gets every committed write of every Fake. A test binary sets it before
// its tests. It is called with the table locked, by any goroutine.
var EveryWrite func(Change)

// New returns an empty table.
func New() *Fake {
	f := &Fake{rows: map[string]*shelf{}, indexes: map[string]map[string]*shelf{},
		hashed: map[string][]string{}}
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
type shelf []entry

// entry is a row at its place in a partition of the table or of an index. key orders it there.
type entry struct {
	key string
	row packed
}

// find is the place of a key, and whether it is there.
func (s shelf) find(key string) (int, bool) {
	return slices.BinarySearchFunc(s, key, func(e entry, key string) int {
		return strings.Compare(e.key, key)
	})
}

func (s *shelf) put(key string, row packed) {
	i, there := s.find(key)
	if there {
		(*s)[i].row = row
		return
	}
	*s = slices.Insert(*s, i, entry{key, row})
}

func (s *shelf) remove(key string) {
	i, there := s.find(key)
	switch {
	case !there:
	case i < len(*s)/2: // what waits in an index is removed from its begin, of a million too
		copy((*s)[1:i+1], (*s)[:i])
		(*s)[0] = entry{}
		*s = (*s)[1:]
	default:
		*s = slices.Delete(*s, i, i+1)
	}
}

// shelfOf is the partition of that name, which is made if it is not there.
func shelfOf(m map[string]*shelf, k string) *shelf {
	if m[k] == nil {
		m[k] = &shelf{}
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

// get is a copy of a row, nil if it does not exist.
func (f *Fake) get(k table.Key) Item {
	s := f.rows[k.PK]
	if s == nil {
		return nil
	}
	i, there := s.find(k.SK)
	if !there {
		return nil
	}
	return (*s)[i].row.item()
}

// write puts or, with a nil After, removes a row, without any condition. Before is the row that it replaces. The caller
// holds the lock.
func (f *Fake) write(k table.Key, c Change) {
	var row packed
	if c.After == nil {
		shelfOf(f.rows, k.PK).remove(k.SK)
	} else {
		f.buffer = appendItem(f.buffer[:0], c.After)
		row = packed(f.buffer)
		shelfOf(f.rows, k.PK).put(k.SK, row)
	}

	var d delta
	for i, ix := range schema.Indexes {
		if p := str(c.Before, ix.PK); p != "" {
			d = append(d, move{index: i, partition: p, key: indexKey(c.Before, ix)})
		}
		if p := str(c.After, ix.PK); p != "" {
			d = append(d, move{index: i, partition: p, key: indexKey(c.After, ix), row: row})
		}
	}
	f.log = append(f.log, d)
	if len(f.log) > 2*mostLag {
		f.catchUp(mostLag)
	}
}

// delta is what a write changes in the indexes.
type delta []move

// move puts a row into an index or, with no row, removes it.
type move struct {
	index          int // of schema.Indexes
	partition, key string
	row            packed
}

// mostLag is how many writes an index can be behind, whatever Lag says.
const mostLag = 2000

// committed tells the watchers of the writes of one commit.
func (f *Fake) committed(cs []Change) {
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
	for _, d := range f.log[:n] {
		for _, m := range d {
			s := shelfOf(f.indexes[schema.Indexes[m.index].Name], m.partition)
			if m.row == "" {
				s.remove(m.key)
			} else {
				s.put(m.key, m.row)
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

// projected are the attributes that an index has of a row: its keys, those of the index, and what is included. Of the
// table itself it is none, which stands for all.
func projected(ix schema.Index) []string {
	if ix.Name == "" {
		return nil
	}
	return append([]string{schema.PK, schema.SK, ix.PK, ix.SK}, ix.Include...)
}

// All returns a copy of every row, in key order. It is a state between two commits.
func (f *Fake) All() []Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []Item
	for _, pk := range slices.Sorted(maps.Keys(f.rows)) {
		for _, e := range *f.rows[pk] {
			out = append(out, e.row.item())
		}
	}
	return out
}

// Row returns one row, nil if it does not exist.
func (f *Fake) Row(k table.Key) Item {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.get(k)
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
	return &dynamodb.GetItemOutput{Item: f.get(k)}, nil
}

// DescribeTable is called if a page was cut off by the end of its context. It only fails.
func (f *Fake) DescribeTable(ctx context.Context, _ *dynamodb.DescribeTableInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DescribeTableOutput, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return nil, invalid("tabletest: DescribeTable is not supported")
}
