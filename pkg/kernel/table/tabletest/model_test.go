package tabletest_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"
	"pgregory.net/rapid"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

type item = map[string]types.AttributeValue

func s(v string) types.AttributeValue { return &types.AttributeValueMemberS{Value: v} }
func n(v int) types.AttributeValue    { return &types.AttributeValueMemberN{Value: fmt.Sprint(v)} }

var conditions = []string{"", "attribute_exists(pk)", "attribute_not_exists(pk)", "rev = :n", "rev <> :n",
	"rev < :n OR attribute_not_exists(rev)",
	"(rev >= :n AND word = :s)", "attribute_exists(pk) AND (word <> :s OR rev > :n)", "rev <= :n"}

// drawWrite draws one action on one of few rows.
func drawWrite(t *rapid.T, name, row string) types.TransactWriteItem {
	key := item{"pk": s(row[:1]), "sk": s(row[1:])}
	cond := rapid.SampledFrom(conditions).Draw(t, "condition")
	values := item{}
	if contains(cond, ":n") {
		values[":n"] = n(rapid.IntRange(0, 3).Draw(t, "n"))
	}
	if contains(cond, ":s") {
		values[":s"] = s(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "s"))
	}
	var c *string
	if cond != "" {
		c = aws.String(cond)
	}
	if cond == "" && len(values) == 0 {
		values = nil
	}
	table := aws.String(name)
	old := types.ReturnValuesOnConditionCheckFailureNone
	switch rapid.IntRange(0, 3).Draw(t, "action") {
	case 0:
		it := item{"pk": key["pk"], "sk": key["sk"], "rev": n(rapid.IntRange(0, 3).Draw(t, "rev")),
			"word": s(rapid.SampledFrom([]string{"x", "y"}).Draw(t, "word"))}
		return types.TransactWriteItem{Put: &types.Put{TableName: table, Item: it, ConditionExpression: c,
			ExpressionAttributeValues: none(values), ReturnValuesOnConditionCheckFailure: old}}
	case 1:
		return types.TransactWriteItem{Delete: &types.Delete{TableName: table, Key: key, ConditionExpression: c,
			ExpressionAttributeValues: none(values)}}
	case 2:
		update := "ADD rev :one SET word = :new"
		all := item{":one": n(1), ":new": s("z")}
		switch rapid.IntRange(0, 2).Draw(t, "remove") {
		case 1:
			update, all = "ADD rev :one REMOVE word", item{":one": n(1)}
		case 2:
			update, all = "SET word = :new REMOVE rev, other", item{":new": s("z")}
		}
		for k, v := range values {
			all[k] = v
		}
		return types.TransactWriteItem{Update: &types.Update{TableName: table, Key: key,
			UpdateExpression: aws.String(update), ConditionExpression: c, ExpressionAttributeValues: all}}
	}
	if c == nil {
		c = aws.String("attribute_exists(pk)")
	}
	return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{TableName: table, Key: key,
		ConditionExpression: c, ExpressionAttributeValues: none(values)}}
}

func none(it item) item {
	if len(it) == 0 {
		return nil
	}
	return it
}

func contains(s, sub string) bool {
	for i := 0; i+len(sub) <= len(s); i++ {
		if s[i:i+len(sub)] == sub {
			return true
		}
	}
	return false
}

// outcome reduces an error to what a caller can see in it.
func outcome(err error) string {
	var cancelled *types.TransactionCanceledException
	if errors.As(err, &cancelled) {
		out := ""
		for _, r := range cancelled.CancellationReasons {
			out += aws.ToString(r.Code) + " "
		}
		return out
	}
	var failed *types.ConditionalCheckFailedException
	switch {
	case err == nil:
		return "ok"
	case errors.As(err, &failed):
		return "condition"
	}
	return "refused"
}

// batch reads some rows at once, in order of their keys.
func batch(ctx context.Context, t *rapid.T, db dynamodbiface.DynamoDBAPI, name string, keys []string) (out []item,
	refused bool) {
	var wanted []item
	for _, k := range keys {
		wanted = append(wanted, item{"pk": s(k[:1]), "sk": s(k[1:])})
	}
	got, err := db.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: map[string]types.KeysAndAttributes{
		name: {Keys: wanted, ConsistentRead: aws.Bool(true)}}})
	if err != nil {
		return nil, true
	}
	if len(got.UnprocessedKeys) > 0 {
		t.Fatalf("%d rows were not processed", len(got.UnprocessedKeys))
	}
	text := func(it item) string { return fmt.Sprint(describeItem(it)) }
	out = got.Responses[name]
	slices.SortFunc(out, func(a, b item) int { return strings.Compare(text(a), text(b)) })
	return out, false
}

func describeItem(it item) (out []string) {
	for _, name := range []string{"pk", "sk"} {
		out = append(out, it[name].(*types.AttributeValueMemberS).Value)
	}
	return out
}

func all(ctx context.Context, t *rapid.T, db dynamodbiface.DynamoDBAPI, name string) (out []item) {
	for _, pk := range []string{"a", "b"} {
		got, err := db.Query(ctx, &dynamodb.QueryInput{TableName: aws.String(name), ConsistentRead: aws.Bool(true),
			KeyConditions: map[string]types.Condition{
				"pk": {ComparisonOperator: types.ComparisonOperatorEq,
					AttributeValueList: []types.AttributeValue{s(pk)}}}})
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, got.Items...)
	}
	return out
}

// TestFakeIsLikeDynamoDB sends the same random writes to the fake and to the
// real thing and compares answers and rows.
func TestFakeIsLikeDynamoDB(t *testing.T) {
	endpoint := os.Getenv(tabletest.EndpointVariable)
	if endpoint == "" {
		t.Skip("no DynamoDB to compare with: set " + tabletest.EndpointVariable + " (make test does)")
	}
	ctx := context.Background()
	rapid.Check(t, func(rt *rapid.T) {
		open := func() (dynamodbiface.DynamoDBAPI, string) {
			tb := tabletest.Real(t, endpoint)
			return tb.DB.Client(), tb.Rows.Name()
		}
		real, name := open()
		fake := tabletest.New()
		for range rapid.IntRange(1, 12).Draw(rt, "writes") {
			in := &dynamodb.TransactWriteItemsInput{}
			// Rows differ: DynamoDB refuses a row that is named twice before it looks
			// at conditions, DynamoDB Local only after them.
			for _, row := range rapid.SliceOfNDistinct(rapid.SampledFrom([]string{"a1", "a2", "a3", "b1", "b2"}), 1, 3,
				rapid.ID).Draw(rt, "rows") {
				in.TransactItems = append(in.TransactItems, drawWrite(rt, name, row))
			}
			_, want := real.TransactWriteItems(ctx, in)
			_, got := fake.TransactWriteItems(ctx, in)
			if outcome(got) != outcome(want) {
				rt.Fatalf("%v: the fake says %q (%v), DynamoDB %q (%v)",
					describe(in), outcome(got), got, outcome(want), want)
			}
			if a, b := all(ctx, rt, fake, name), all(ctx, rt, real, name); !reflect.DeepEqual(a, b) {
				rt.Fatalf("%v: the fake has %v, DynamoDB %v", describe(in), a, b)
			}
			keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a1", "a2", "a3", "b1", "b2"}), 0, 3).Draw(rt, "read")
			a, noA := batch(ctx, rt, fake, name, keys)
			b, noB := batch(ctx, rt, real, name, keys)
			if noA != noB || len(a)+len(b) > 0 && !reflect.DeepEqual(a, b) {
				rt.Fatalf("%v: the fake has %v %v, DynamoDB %v %v", keys, a, noA, b, noB)
			}
		}
	})
}

func describe(in *dynamodb.TransactWriteItemsInput) (out []string) {
	for _, w := range in.TransactItems {
		switch {
		case w.Put != nil:
			out = append(out, fmt.Sprintf("put %v if %q", w.Put.Item, aws.ToString(w.Put.ConditionExpression)))
		case w.Delete != nil:
			out = append(out, fmt.Sprintf("delete %v if %q", w.Delete.Key, aws.ToString(w.Delete.ConditionExpression)))
		case w.Update != nil:
			out = append(out, fmt.Sprintf("update %v %q if %q", w.Update.Key, *w.Update.UpdateExpression,
				aws.ToString(w.Update.ConditionExpression)))
		default:
			out = append(out, fmt.Sprintf("check %v if %q", w.ConditionCheck.Key,
				aws.ToString(w.ConditionCheck.ConditionExpression)))
		}
	}
	return out
}

// TestIndexesLag: an index shows a write only after it caught up.
func TestIndexesLag(t *testing.T) {
	fake := tabletest.New()
	lag := 1
	fake.Lag = func() int { return lag }
	tb := tabletest.Table(fake)
	type row struct{ table.Head }
	tx := tb.Begin("1")
	tx.Insert(&row{table.Head{PK: "a", SK: "1", WorkPK: "gate", WorkSK: "1"}})
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []int{0, 1} {
		var got []row
		if _, err := tb.Page(t.Context(), table.Query{Index: "work", PK: "gate"}, &got); err != nil ||
			len(got) != want {
			t.Errorf("lag %d: got %d rows, %v", lag, len(got), err)
		}
		lag = 0
	}
}
