package tabletest

import (
	"cmp"
	"context"
	"hash/fnv"
	"iter"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"archivist/pkg/kernel/table/schema"
)

// Scan reads a page of the table or of an index. The partitions are in the order of a hash,
// as in DynamoDB: no reader may rely on the order of their names. Unlike Query, it has a next
// page only if there are more rows.
func (f *Fake) Scan(_ context.Context, in *dynamodb.ScanInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	consistent := in.ConsistentRead != nil && *in.ConsistentRead
	if in.FilterExpression != nil || in.ProjectionExpression != nil || in.Limit == nil ||
		consistent != (in.IndexName == nil) {
		return nil, invalid("tabletest: a scan with a filter, a projection or without a limit, and one of the table " +
			"that is not consistent, is not supported")
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	ix, parts, err := f.parts(in.IndexName)
	if err != nil {
		return nil, err
	}

	out := &dynamodb.ScanOutput{}
	for it := range f.scanned(parts, ix, in.ExclusiveStartKey) {
		if len(out.Items) == int(*in.Limit) {
			last := out.Items[len(out.Items)-1]
			out.LastEvaluatedKey = Item{schema.PK: last[schema.PK], schema.SK: last[schema.SK],
				ix.PK: last[ix.PK],
				ix.SK: last[ix.SK]}
			break
		}
		out.Items = append(out.Items, it)
	}
	return out, nil
}

// scanned gives the rows of all partitions that follow a key. The key need not exist any
// more.
func (f *Fake) scanned(parts map[string]*shelf, ix schema.Index, after Item) iter.Seq[Item] {
	names := f.hashed[ix.Name]
	if len(names) != len(parts) { // no partition is ever removed, only emptied
		names = slices.SortedFunc(maps.Keys(parts), byHash)
		f.hashed[ix.Name] = names
	}
	from, begun := 0, false
	if after != nil {
		from, begun = slices.BinarySearchFunc(names, str(after, ix.PK), byHash)
	}
	return func(yield func(Item) bool) {
		for i, pk := range names[from:] {
			for _, e := range *parts[pk] {
				follows := i > 0 || !begun || e.key > startOf(ix, after)
				if follows && !yield(e.row.item(projected(ix)...)) {
					return
				}
			}
		}
	}
}

// byHash orders names by a hash (FNV-1a), which is the same in each run.
func byHash(a, b string) int {
	hash := func(s string) uint64 { h := fnv.New64a(); h.Write([]byte(s)); return h.Sum64() }
	return cmp.Or(cmp.Compare(hash(a), hash(b)), cmp.Compare(a, b))
}
