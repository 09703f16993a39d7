package tabletest

import (
	"context"
	"sort"
	"strings"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/schema"
)

// Query reads a page of a partition of the table or of an index. It supports the form of key
// conditions that guregu/dynamo sends (KeyConditions). A partition that does not exist is
// empty.
func (f *Fake) Query(_ context.Context, in *dynamodb.QueryInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	if in.FilterExpression != nil || in.ProjectionExpression != nil ||
		in.KeyConditionExpression != nil ||
		in.Select != "" {
		return nil, invalid("tabletest: a query with a filter, a projection, an expression or a " +
			"select is not understood")
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	ix, parts, err := f.parts(in.IndexName)
	if err != nil {
		return nil, err
	}

	of, err := rangeCondition(in.KeyConditions, ix)
	if err != nil {
		return nil, err
	}

	s := parts[of.pk]
	if s == nil {
		return &dynamodb.QueryOutput{}, nil
	}
	return page(*s, ix, of, in), nil
}

// parts are the partitions of the table, or of an index as far as it lags. The index catches
// up to what Lag says before it is read, so a test decides how old the answer is.
func (f *Fake) parts(index *string) (schema.Index, map[string]*shelf, error) {
	if index == nil {
		return schema.Index{PK: schema.PK, SK: schema.SK}, f.rows, nil
	}

	lag := 0
	if f.Lag != nil {
		lag = f.Lag()
	}

	f.catchUp(lag)
	for _, known := range schema.Indexes {
		if known.Name == *index {
			return known, f.indexes[*index], nil
		}
	}
	return schema.Index{}, nil, invalid("The table does not have the specified index: %s", *index)
}

// selected are the rows that a query asks for: of a partition, those with range keys from one on, until one is beyond
// the end. All comparisons of range keys here select keys that follow each other.
type selected struct {
	pk, from string
	beyond   func(string) bool
}

// rangeCondition is what a query asks for.
func rangeCondition(conds map[string]types.Condition, ix schema.Index) (of selected, err error) {
	of.beyond = func(string) bool { return false }
	for name, c := range conds {
		var vs []string
		for _, v := range c.AttributeValueList {
			s, ok := v.(*types.AttributeValueMemberS)
			if !ok {
				return of, invalid("tabletest: key conditions compare strings only")
			}
			vs = append(vs, s.Value)
		}

		// One condition is for the partition, and at most one for the range key.
		switch {
		case name == ix.PK && c.ComparisonOperator == types.ComparisonOperatorEq:
			of.pk = vs[0]
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorBeginsWith:
			of.from = vs[0]
			of.beyond = func(s string) bool { return s > vs[0] && !strings.HasPrefix(s, vs[0]) }
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorBetween:
			if vs[0] > vs[1] {
				return of, invalid("The BETWEEN condition was provided a range where the lower " +
					"bound is greater than the upper bound")
			}
			of.from = vs[0]
			of.beyond = func(s string) bool { return s > vs[1] }
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorGe:
			of.from = vs[0]
		default:
			return of, invalid("tabletest: key condition %s %s is not supported", name,
				c.ComparisonOperator)
		}
	}
	return of, nil
}

// startOf is the key after which a page begins; "" = at the first row. For an index it is the
// order key of its entry, which may be gone by now.
func startOf(ix schema.Index, after Item) string {
	switch {
	case after == nil:
		return ""
	case ix.Name == "":
		return str(after, ix.SK)
	}
	return indexKey(after, ix)
}

// page is a page of the rows that are asked for. in gives the limit, the direction and the key after which it begins.
func page(s shelf, ix schema.Index, of selected, in *dynamodb.QueryInput) *dynamodb.QueryOutput {
	first, _ := s.find(of.from)
	end := sort.Search(len(s), func(i int) bool { return of.beyond(rangeKey(s[i].key, ix)) })
	descending := in.ScanIndexForward != nil && !*in.ScanIndexForward
	if start := startOf(ix, in.ExclusiveStartKey); start != "" {
		at, there := s.find(start)
		switch {
		case descending:
			end = min(end, at)
		case there:
			first = max(first, at+1)
		default:
			first = max(first, at)
		}
	}

	n := max(0, end-first)
	if in.Limit != nil {
		n = min(n, int(*in.Limit))
	}
	out := &dynamodb.QueryOutput{}
	for i := range n {
		e := s[first:][i]
		if descending {
			e = s[end-1-i]
		}
		out.Items = append(out.Items, e.row.item(projected(ix)...))
	}

	// DynamoDB returns a key whenever it stopped at the limit, even if nothing follows.
	if in.Limit != nil && n > 0 && n == int(*in.Limit) {
		last := out.Items[n-1]
		out.LastEvaluatedKey = Item{schema.PK: last[schema.PK], schema.SK: last[schema.SK],
			ix.PK: last[ix.PK],
			ix.SK: last[ix.SK]}
	}

	out.Count, out.ScannedCount = int32(n), int32(n)
	return out
}

// rangeKey is the range key of a row by what orders it in the table or in an index.
func rangeKey(key string, ix schema.Index) string {
	if ix.Name != "" {
		key, _, _ = strings.Cut(key, "\x00")
	}
	return key
}
