package tabletest_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"sort"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/kernel/table/tabletest"
)

// kept opens a table that is kept at path.
func kept(t *testing.T, path string) *tabletest.Fake {
	t.Helper()
	f := tabletest.New()
	if err := f.Keep(path); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// anyRow is a row with a value of each kind.
func anyRow(r *rand.Rand, pk, sk string) item {
	return item{"pk": s(pk), "sk": s(sk), "place": s(fmt.Sprint("place", r.IntN(3))), "rank": s(fmt.Sprint(r.IntN(3))),
		"n": n(r.IntN(1000)), "b": &types.AttributeValueMemberB{Value: []byte{0, 10, byte(r.IntN(256))}},
		"yes":   &types.AttributeValueMemberBOOL{Value: r.IntN(2) == 0},
		"none":  &types.AttributeValueMemberNULL{Value: true},
		"list":  &types.AttributeValueMemberL{Value: []types.AttributeValue{s("line\nbreak"), s("ü \u2028"), n(-1)}},
		"map":   &types.AttributeValueMemberM{Value: item{"": s(""), "m": &types.AttributeValueMemberM{Value: item{}}}},
		"words": &types.AttributeValueMemberSS{Value: []string{"x", "y"}}}
}

// write writes one row, deletes one, or does both and checks a third in one transaction.
func write(t *testing.T, f *tabletest.Fake, r *rand.Rand) {
	t.Helper()
	key := func(i int) item { return item{"pk": s(fmt.Sprint("p", i%3)), "sk": s(fmt.Sprint("s", i))} }
	a, b, name := r.IntN(6), 6+r.IntN(6), aws.String("archivist")
	row := anyRow(r, fmt.Sprint("p", a%3), fmt.Sprint("s", a))
	var err error
	switch r.IntN(3) {
	case 0:
		_, err = f.PutItem(t.Context(), &dynamodb.PutItemInput{TableName: name, Item: row})
	case 1:
		_, err = f.DeleteItem(t.Context(), &dynamodb.DeleteItemInput{TableName: name, Key: key(a)})
	default:
		second := anyRow(r, fmt.Sprint("p", b%3), fmt.Sprint("s", b))
		_, err = f.TransactWriteItems(t.Context(), &dynamodb.TransactWriteItemsInput{
			TransactItems: []types.TransactWriteItem{{Put: &types.Put{TableName: name, Item: row}},
				{ConditionCheck: &types.ConditionCheck{TableName: name, Key: key(20),
					ConditionExpression: aws.String("attribute_not_exists(pk)")}},
				{Put: &types.Put{TableName: name, Item: second}}}})
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestKeepCutAtEachByte: of a journal that is cut at any byte, the transactions that are complete are there, each as a
// whole, and what is written afterwards is there the next time.
func TestKeepCutAtEachByte(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	f, r := kept(t, path), rand.New(rand.NewPCG(1, 2))
	sizes, rows := []int{0}, [][]item{nil}
	for range 4 {
		write(t, f, r)
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		sizes, rows = append(sizes, int(info.Size())), append(rows, f.All())
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	for n := range len(data) + 1 {
		cut := filepath.Join(folder, "cut")
		if err := os.WriteFile(cut, data[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		last := sort.SearchInts(sizes, n+1) - 1
		again := kept(t, cut)
		if got := again.All(); !reflect.DeepEqual(got, rows[last]) {
			t.Fatalf("of %d bytes: %v\nwant %v", n, got, rows[last])
		}
		if n%37 == 0 {
			write(t, again, r)
			if got := kept(t, cut).All(); !reflect.DeepEqual(got, again.All()) {
				t.Fatalf("of %d bytes, and one more write: %v\nwant %v", n, got, again.All())
			}
		}
		_ = again.Close()
	}
}

// TestKeepIndexes: rows that were kept are in the indexes.
func TestKeepIndexes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "table")
	row := item{"pk": s("a"), "sk": s("b"), "place": s("due"), "ranking": s("1")}
	_, err := kept(t, path).PutItem(t.Context(), &dynamodb.PutItemInput{Item: row})
	if err != nil {
		t.Fatal(err)
	}
	out, err := kept(t, path).Query(t.Context(), &dynamodb.QueryInput{IndexName: aws.String("work"),
		KeyConditions: map[string]types.Condition{"place": {ComparisonOperator: types.ComparisonOperatorEq,
			AttributeValueList: []types.AttributeValue{s("due")}}}})
	if err != nil || len(out.Items) != 1 {
		t.Errorf("the index has %v, %v", out, err)
	}
}

// TestKeepFails: a write that cannot be kept is refused, and is not in the table.
func TestKeepFails(t *testing.T) {
	f := kept(t, filepath.Join(t.TempDir(), "table"))
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := f.PutItem(t.Context(), &dynamodb.PutItemInput{Item: item{"pk": s("a"), "sk": s("b")}})
	if err == nil || len(f.All()) != 0 {
		t.Errorf("a write that cannot be kept: %v, %v", err, f.All())
	}
}
