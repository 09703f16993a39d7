// Package restored says how far restores of the table are, and what a restored table still lacks before the system
// can work on it.
//
//	r := &restored.Reader{Client: dynamodb.NewFromConfig(cfg), Table: "archivist-table", Now: time.Now}
//	found, err := r.All(ctx)
//	one, err := r.One(ctx, "archivist-restored")
//
// DynamoDB restores into a new table, and says of it whether the restore is under way, which moment it is of, and of
// which table; it does not say how much is done. ("RestoreSummary" in the API Reference of Amazon DynamoDB: the source
// may be left out.) Time to live, stream, recovery and protection are not restored ("Restoring a table to a point in
// time" in the Developer Guide). Only tables of the account and region of the client are seen.
package restored

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/schema"
)

// Bounds of a look.
const (
	MostTables = 500              // that are described
	Longest    = 10 * time.Second // for all requests together
	together   = 16               // requests at once
	fresh      = 15 * time.Second // a look is not repeated for so long: a page may ask each two seconds
)

// Table is a table that was restored, or one in the making.
type Table struct {
	Name   string
	Status string // as DynamoDB has it: CREATING while it is restored
	InUse  bool   // the system works on it
	Source string // the name of the table that it is a copy of; "" = not told
	// Moment is the time of which its rows are; zero = it was not restored.
	Moment    time.Time
	Restoring bool
	Created   time.Time // when the restore was begun
	// Items and Bytes are what DynamoDB counts about every six hours: 0 says little of a new table.
	Items, Bytes int64
	Stream       string // its ARN; "" = it has none
	Lacks        []Lack // nil while it is not active
}

// Restores is what is known of the restores of a table.
type Restores struct {
	Tables []Table // the newest first
	Looked int     // how many tables were described
	More   bool    // the account has more, which were not looked at
	// Unread is how many could not be described, and Err why not.
	Unread int
	Err    error
}

// Reader reads what DynamoDB says of tables. Its methods may be called concurrently.
type Reader struct {
	Client Client
	Table  string // the one that the system works on
	Now    func() time.Time

	mu    sync.Mutex
	known Restores
	until time.Time // it is as good as read
}

// All finds the tables that were restored from the one in use, or from the one of which that is a copy. An error is
// that of the list of tables: nothing is known then.
func (r *Reader) All(ctx context.Context) (Restores, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.Now().Before(r.until) {
		return r.known, nil
	}
	limited, cancel := context.WithTimeout(ctx, Longest)
	defer cancel()
	found, err := r.all(limited)
	if err == nil && ctx.Err() == nil { // else it lacks what its caller did not wait for
		r.known, r.until = found, r.Now().Add(fresh)
	}
	return found, err
}

func (r *Reader) all(ctx context.Context) (out Restores, err error) {
	names, more, err := r.names(ctx)
	if err != nil {
		return out, err
	}
	out.More, out.Looked = more, len(names)
	described := make([]*types.TableDescription, len(names))
	failed := make([]error, len(names))
	each(len(names), func(i int) { described[i], failed[i] = r.describe(ctx, names[i]) })
	for _, err := range failed {
		if err != nil {
			out.Unread++
			out.Err = err // of many it is the same in nearly all cases
		}
	}
	ours := r.family(described)
	for _, d := range described {
		if d != nil && d.RestoreSummary != nil && belongs(d, ours) {
			out.Tables = append(out.Tables, r.shown(d))
		}
	}
	slices.SortStableFunc(out.Tables, func(a, b Table) int { return b.Created.Compare(a.Created) })
	each(len(out.Tables), func(i int) {
		t := &out.Tables[i]
		t.Lacks = lacks(ctx, r.Client, describedAs(described, t.Name))
	})
	return out, nil
}

// describedAs is the table of that name.
func describedAs(all []*types.TableDescription, name string) *types.TableDescription {
	return all[slices.IndexFunc(all, func(d *types.TableDescription) bool {
		return d != nil && aws.ToString(d.TableName) == name
	})]
}

// One is what is known of a table, also of one that was made empty (docs/restore.md, part B). A table that has nothing
// to do with the system is a Conflict.
func (r *Reader) One(ctx context.Context, name string) (Table, error) {
	ctx, cancel := context.WithTimeout(ctx, Longest)
	defer cancel()
	d, err := r.describe(ctx, name)
	switch {
	case err != nil:
		return Table{}, err
	case d == nil:
		return Table{}, fault.New(fault.NotFound,
			"there is no table %s in the account and region of the deployment", name)
	}
	used, err := r.describe(ctx, r.Table)
	if err != nil {
		return Table{}, err
	}
	if !belongs(d, r.family([]*types.TableDescription{used})) && !alike(d) {
		return Table{}, fault.New(fault.Conflict,
			"the table %s was not restored from %s, which is in use, and has other keys or indexes",
			name, r.Table)
	}
	out := r.shown(d)
	out.Lacks = lacks(ctx, r.Client, d)
	return out, nil
}

// names lists the tables of the account and region, at most MostTables: the one in use is first, so that it is
// looked at in any case.
func (r *Reader) names(ctx context.Context) (names []string, more bool, err error) {
	names = []string{r.Table}
	pages := dynamodb.NewListTablesPaginator(r.Client, &dynamodb.ListTablesInput{})
	for pages.HasMorePages() && len(names) <= MostTables {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, false, err
		}
		for _, name := range page.TableNames {
			if name != r.Table {
				names = append(names, name)
			}
		}
	}
	more = pages.HasMorePages() || len(names) > MostTables
	return names[:min(len(names), MostTables)], more, nil
}

// describe is what DynamoDB says of a table, nil if there is none: it may have been deleted since it was listed.
func (r *Reader) describe(ctx context.Context, name string) (*types.TableDescription, error) {
	out, err := r.Client.DescribeTable(ctx, &dynamodb.DescribeTableInput{TableName: &name})
	var none *types.ResourceNotFoundException
	switch {
	case errors.As(err, &none):
		return nil, nil
	case err != nil:
		return nil, err
	}
	return out.Table, nil
}

// family are the names of the table in use and of the one that it is a copy of.
func (r *Reader) family(described []*types.TableDescription) []string {
	names := []string{r.Table}
	for _, d := range described {
		if d != nil && aws.ToString(d.TableName) == r.Table && sourceOf(d) != "" {
			names = append(names, sourceOf(d))
		}
	}
	return names
}

// belongs reports whether a table is in use, or was restored from one of these. Where DynamoDB does not tell the
// source, a restored table with the same keys and indexes is taken for one.
func belongs(d *types.TableDescription, ours []string) bool {
	if aws.ToString(d.TableName) == ours[0] {
		return true
	}
	if d.RestoreSummary == nil {
		return false
	}
	if from := sourceOf(d); from != "" {
		return slices.Contains(ours, from)
	}
	return alike(d)
}

// sourceOf is the name of the table that a table is a copy of, "" if that is not told. The ARN of a backup of
// DynamoDB has it, too.
func sourceOf(d *types.TableDescription) string {
	s := d.RestoreSummary
	if s == nil {
		return ""
	}
	for _, arn := range []*string{s.SourceTableArn, s.SourceBackupArn} {
		if _, rest, is := strings.Cut(aws.ToString(arn), ":table/"); is {
			name, _, _ := strings.Cut(rest, "/")
			return name
		}
	}
	return ""
}

// alike reports whether a table has the keys and the indexes of ours.
func alike(d *types.TableDescription) bool {
	if !sameKeys(d.KeySchema, schema.PK, schema.SK) {
		return false
	}
	for _, ix := range schema.Indexes {
		if indexOf(d, ix.Name) == nil {
			return false
		}
	}
	return true
}

// shown is a table without what it lacks.
func (r *Reader) shown(d *types.TableDescription) Table {
	t := Table{Name: aws.ToString(d.TableName), Status: string(d.TableStatus), Source: sourceOf(d),
		Created: aws.ToTime(d.CreationDateTime), Items: aws.ToInt64(d.ItemCount),
		Bytes: aws.ToInt64(d.TableSizeBytes), Stream: streamOf(d)}
	t.InUse = t.Name == r.Table
	if s := d.RestoreSummary; s != nil {
		t.Moment, t.Restoring = aws.ToTime(s.RestoreDateTime), aws.ToBool(s.RestoreInProgress)
	}
	return t
}

// each calls f for 0 to n-1, some at once, and waits for all.
func each(n int, f func(i int)) {
	var all sync.WaitGroup
	slots := make(chan struct{}, together)
	for i := range n {
		slots <- struct{}{}
		all.Go(func() {
			defer func() { <-slots }()
			f(i)
		})
	}
	all.Wait()
}
