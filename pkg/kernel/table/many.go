package table

import (
	"context"
	"errors"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// MaxGets is the number of rows of one request of Many. (Source: BatchGetItem in the API
// reference of Amazon DynamoDB.)
const MaxGets = 100

// errUnprocessed asks for another request: DynamoDB has returned a part of the rows.
var errUnprocessed = errors.New("table: some rows were not read")

// Many reads rows of any kind consistently, a hundred per request. Missing rows are left out.
// A key may be there more than once. The rows of one request are not read at one moment: each
// is consistent by itself. If any cannot be read, no rows are returned; a single one can
// never be larger than a response (16 MB), so a request always makes progress, and retries
// ask only for the rest.
func (t *Table) Many(ctx context.Context, keys []Key) (map[Key]Raw, error) {
	found := make(map[Key]Raw, len(keys))
	asked := map[Key]bool{}
	var wanted []Item
	for _, k := range keys {
		if !asked[k] {
			asked[k] = true
			wanted = append(wanted, Item{"pk": &types.AttributeValueMemberS{Value: k.PK},
				"sk": &types.AttributeValueMemberS{Value: k.SK}})
		}
	}

	for len(wanted) > 0 {
		some := wanted[:min(len(wanted), MaxGets)]
		wanted = wanted[len(some):]
		err := t.retry(ctx, "read rows", func(ctx context.Context) error {
			left, err := t.batch(ctx, some, found)
			if err != nil {
				return err
			}
			if len(left) > 0 {
				some = left
				return errUnprocessed
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return found, nil
}

// batch is one request of Many. It returns the keys that DynamoDB did not process. It adds
// the rows that it got to found.
func (t *Table) batch(ctx context.Context, keys []Item,
	found map[Key]Raw) (left []Item, err error) {
	name := t.Rows.Name()
	out, err := t.DB.Client().BatchGetItem(ctx, &dynamodb.BatchGetItemInput{
		RequestItems: map[string]types.KeysAndAttributes{name: {Keys: keys,
			ConsistentRead: aws.Bool(true)}}})
	if err != nil {
		return nil, err
	}

	rows, err := raw(out.Responses[name])
	for _, r := range rows {
		found[r.Key] = r
	}
	return out.UnprocessedKeys[name].Keys, err
}
