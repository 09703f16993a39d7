package tabletest

import (
	"context"
	"maps"
	"slices"
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
		return nil, invalid("tabletest: a query with a filter, a projection, an expression or a select is not " +
			"understood")
	}

	f.mu.Lock()
	defer f.mu.Unlock()
	ix, parts, err := f.parts(in.IndexName)
	if err != nil {
		return nil, err
	}

	match, pk, from, err := rangeCondition(in.KeyConditions, ix)
	if err != nil {
		return nil, err
	}

	s := parts[pk]
	if s == nil {
		return &dynamodb.QueryOutput{}, nil
	}
	return page(s, ix, match, from, in), nil
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

// rangeCondition is what the range keys of a query match, all of them in order, from a key
// on. All comparisons of range keys here select keys that follow each other, so a page can
// begin by a binary search at from.
func rangeCondition(conds map[string]types.Condition,
	ix schema.Index) (match func(string) bool, pk, from string,
	err error) {
	match = func(string) bool { return true }
	for name, c := range conds {
		var vs []string
		for _, v := range c.AttributeValueList {
			s, ok := v.(*types.AttributeValueMemberS)
			if !ok {
				return nil, "", "", invalid("tabletest: key conditions compare strings only")
			}
			vs = append(vs, s.Value)
		}

		// One condition is for the partition, and at most one for the range key.
		switch {
		case name == ix.PK && c.ComparisonOperator == types.ComparisonOperatorEq:
			pk = vs[0]
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorBeginsWith:
			from = vs[0]
			match = func(s string) bool { return strings.HasPrefix(s, vs[0]) }
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorBetween:
			from = vs[0]
			match = func(s string) bool { return vs[0] <= s && s <= vs[1] }
		case name == ix.SK && c.ComparisonOperator == types.ComparisonOperatorGe:
			from = vs[0]
			match = func(s string) bool { return vs[0] <= s }
		default:
			return nil, "", "", invalid("tabletest: key condition %s %s is not supported", name,
				c.ComparisonOperator)
		}
	}
	return match, pk, from, nil
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

// page is a page of the rows that match: they follow each other, from a key on. in gives the
// limit, the direction and the key after which it begins.
func page(s *shelf, ix schema.Index, match func(string) bool, from string,
	in *dynamodb.QueryInput) *dynamodb.QueryOutput {
	start := startOf(ix, in.ExclusiveStartKey)
	done := func(k, start string) bool { return k <= start }

	// Ascending, all before from or the start is left out at once; descending, from the end.
	first, _ := slices.BinarySearch(s.order, max(from, start))
	order, ascending := s.order[first:], true
	if in.ScanIndexForward != nil && !*in.ScanIndexForward {
		order, ascending = slices.Clone(s.order), false
		slices.Reverse(order)
		done = func(k, start string) bool { return k >= start }
	}

	out := &dynamodb.QueryOutput{}
	for _, k := range order {
		it := s.items[k]
		passed := start != "" && done(k, start)
		if ascending && !passed && !match(str(it, ix.SK)) {
			break
		}

		if passed || !match(str(it, ix.SK)) {
			continue
		}

		if in.Limit != nil && len(out.Items) == int(*in.Limit) {
			break
		}

		out.Items = append(out.Items, maps.Clone(it))
	}

	// DynamoDB returns a key whenever it stopped at the limit, even if nothing follows.
	if in.Limit != nil && len(out.Items) == int(*in.Limit) {
		last := out.Items[len(out.Items)-1]
		out.LastEvaluatedKey = Item{schema.PK: last[schema.PK], schema.SK: last[schema.SK],
			ix.PK: last[ix.PK],
			ix.SK: last[ix.SK]}
	}

	out.Count, out.ScannedCount = int32(len(out.Items)), int32(len(out.Items))
	return out
}
