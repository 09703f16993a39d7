package table

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
)

// Raw is a row of any kind, as it is stored. Its revision and form are only known after
// Decode.
type Raw struct {
	Key
	Item Item
}

// Decode reads the row into a struct that embeds Head. A row of a newer release is an
// Unavailable with ErrNewer. An upcast changes the Item.
func (r Raw) Decode(row any) error { return decode(r.Item, row) }

// Scan reads the next rows of the table, of all kinds, from a cursor ("" at the beginning),
// and returns the cursor of the next page, "" at the end. With an index it reads that: only
// rows at a place of it, with the attributes that it projects, and it may lag. The order of
// the partitions is not known. A scan reads every row there is, so nothing that waits for an
// answer may use it. The rows of a partition come together, in the order of their sort keys.
// A page may have fewer rows than limit before the end: DynamoDB reads at most 1 MB at once.
// Rows that are written during the scan may or may not be seen. A cursor of another index is
// an Invalid.
func (t *Table) Scan(ctx context.Context, index string, limit int,
	cursor string) (page []Raw, next string, err error) {
	err = t.retry(ctx, "scan", func(ctx context.Context) error {
		scan := t.Rows.Scan().SearchLimit(limit).Consistent(index == "")
		if index != "" {
			scan.Index(index)
		}

		if cursor != "" {
			from, err := decodeCursor(cursor, indexKeys[index])
			if err != nil {
				return err
			}
			scan.StartFrom(from)
		}

		var items []Item
		last, err := scan.AllWithLastEvaluatedKey(ctx, &items)
		if err != nil {
			return err
		}

		next = encodeCursor(last)
		page, err = raw(items)
		return err
	})
	return page, next, err
}

// CursorAt is the cursor of a scan of the table that continues after a row. The row need not
// exist.
func CursorAt(k Key) string {
	return encodeCursor(dynamo.PagingKey{"pk": &types.AttributeValueMemberS{Value: k.PK},
		"sk": &types.AttributeValueMemberS{Value: k.SK}})
}

// Raw reads one row of any kind consistently. A missing row is a NotFound.
func (t *Table) Raw(ctx context.Context, k Key) (Raw, error) {
	r := Raw{Key: k}
	err := t.retry(ctx, "read "+k.String(), func(ctx context.Context) (err error) {
		r.Item, err = t.item(ctx, k)
		return err
	})
	return r, err
}

// raw are items with their keys.
func raw(items []Item) ([]Raw, error) {
	page := make([]Raw, len(items))
	for i, it := range items {
		var h Head
		if err := dynamo.UnmarshalItem(Item{"pk": it["pk"], "sk": it["sk"]}, &h); err != nil {
			return nil, err
		}
		page[i] = Raw{Key: h.Key(), Item: it}
	}
	return page, nil
}
