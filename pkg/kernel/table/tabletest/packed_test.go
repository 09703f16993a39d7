package tabletest_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestRowsAreKept: a row is read as it was written, with values of each type. What a reader or the writer does with
// an item changes nothing in the table.
func TestRowsAreKept(t *testing.T) {
	made := func() item {
		return item{"pk": s("p"), "sk": s("k"), "place": s("here"), "ranking": s("1"), "empty": s(""),
			"long": s(strings.Repeat("ä", 1000)), "n": n(-17),
			"blob": &types.AttributeValueMemberB{Value: []byte{0, 255}},
			"yes":  &types.AttributeValueMemberBOOL{Value: true},
			"no":   &types.AttributeValueMemberBOOL{Value: false},
			"null": &types.AttributeValueMemberNULL{Value: true},
			"map": &types.AttributeValueMemberM{Value: item{"a": n(1),
				"b": &types.AttributeValueMemberM{Value: item{}}}},
			"list": &types.AttributeValueMemberL{Value: []types.AttributeValue{s("x"), n(2),
				&types.AttributeValueMemberL{Value: []types.AttributeValue{}}}},
			"texts":   &types.AttributeValueMemberSS{Value: []string{"a", ""}},
			"numbers": &types.AttributeValueMemberNS{Value: []string{"1", "2"}},
			"blobs":   &types.AttributeValueMemberBS{Value: [][]byte{{1}, {}}},
			"id":      s("i"), "coll": s("c")}
	}
	f := tabletest.New()
	in := made()
	if _, err := f.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("archivist"),
		Item: in}); err != nil {
		t.Fatal(err)
	}
	in["map"].(*types.AttributeValueMemberM).Value["a"] = n(9)
	for range 2 {
		got := f.Row(table.Key{PK: "p", SK: "k"})
		if !reflect.DeepEqual(got, made()) {
			t.Fatalf("%+v", got)
		}
		got["list"].(*types.AttributeValueMemberL).Value[0] = n(9)
		delete(got, "n")
	}

	out, err := f.Query(t.Context(), &dynamodb.QueryInput{IndexName: aws.String("work"),
		KeyConditions: map[string]types.Condition{"place": {ComparisonOperator: types.ComparisonOperatorEq,
			AttributeValueList: []types.AttributeValue{s("here")}}}})
	want := item{"pk": s("p"), "sk": s("k"), "place": s("here"), "ranking": s("1"), "id": s("i"), "coll": s("c")}
	if err != nil || len(out.Items) != 1 || !reflect.DeepEqual(out.Items[0], want) {
		t.Errorf("%+v, %v", out, err)
	}
}

// TestPagesOfADirection: pages of a range, in both directions and of each size, are those of the range.
func TestPagesOfADirection(t *testing.T) {
	f := tabletest.New()
	keys := []string{"a", "ab", "abc", "b", "ba", "c"}
	for _, k := range keys {
		if _, err := f.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: aws.String("archivist"),
			Item: item{"pk": s("p"), "sk": s(k)}}); err != nil {
			t.Fatal(err)
		}
	}
	of := func(op types.ComparisonOperator, values ...string) *types.Condition {
		c := &types.Condition{ComparisonOperator: op}
		for _, v := range values {
			c.AttributeValueList = append(c.AttributeValueList, s(v))
		}
		return c
	}
	for _, c := range []struct {
		of   *types.Condition
		want string
	}{
		{nil, "a ab abc b ba c"},
		{of(types.ComparisonOperatorBeginsWith, "ab"), "ab abc"},
		{of(types.ComparisonOperatorBeginsWith, "b"), "b ba"},
		{of(types.ComparisonOperatorBeginsWith, "bb"), ""},
		{of(types.ComparisonOperatorBetween, "aa", "b"), "ab abc b"},
		{of(types.ComparisonOperatorBetween, "d", "e"), ""},
		{of(types.ComparisonOperatorGe, "ba"), "ba c"},
	} {
		for _, up := range []bool{true, false} {
			for limit := int32(1); limit < 4; limit++ {
				var got []string
				in := &dynamodb.QueryInput{ScanIndexForward: &up, Limit: &limit,
					KeyConditions: map[string]types.Condition{"pk": *of(types.ComparisonOperatorEq, "p")}}
				if c.of != nil {
					in.KeyConditions["sk"] = *c.of
				}
				for {
					out, err := f.Query(t.Context(), in)
					if err != nil {
						t.Fatal(err)
					}
					for _, it := range out.Items {
						k := it["sk"].(*types.AttributeValueMemberS).Value
						if up {
							got = append(got, k)
						} else {
							got = append([]string{k}, got...)
						}
					}
					in.ExclusiveStartKey = out.LastEvaluatedKey
					if in.ExclusiveStartKey == nil {
						break
					}
				}
				if strings.Join(got, " ") != c.want {
					t.Errorf("%+v upwards %v by %d: %q, want %q", c.of, up, limit, got, c.want)
				}
			}
		}
	}
}
