package tabletest

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
)

// Client passes every call through Do to the DynamoDB below it. Do may delay, repeat or
// refuse the call, or let it fail. A call whose response is lost is made by Do, which then
// returns an error.
type Client struct {
	dynamodbiface.DynamoDBAPI
	Do func(op string, call func() error) error
	// Refuse, if set, is called for each partition of a request, of the table or of an
	// index. The first error is the response.
	Refuse func(partition string) error
	// Order, if set, puts the keys of a batch into the order in which its rows are read: one by
	// one, as DynamoDB may do it. Without it a batch is read at one moment.
	Order func(keys []Item)
	// Ends: a call whose context has ended is refused, as the SDK does. In a simulation it would not play the same
	// way twice: which of two goroutines ends a context first is not decided by its seed.
	Ends bool
}

// through makes one call by Do, which may call it never, once or again. After an error of Do
// there is no response, even if the call had its effect.
func through[In, Out any](ctx context.Context, c *Client, op string, in In,
	f func(context.Context, In, ...func(*dynamodb.Options)) (Out, error)) (Out, error) {
	var out Out
	if err := ctx.Err(); c.Ends && err != nil {
		return out, err
	}

	err := c.Do(op, func() (err error) {
		if err := c.refused(in); err != nil {
			return err
		}
		out, err = f(ctx, in)
		return err
	})
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}

// refused is the first error that Refuse has for a partition of a request.
func (c *Client) refused(in any) error {
	if c.Refuse == nil {
		return nil
	}
	for _, p := range partitions(in) {
		if err := c.Refuse(p); err != nil {
			return err
		}
	}
	return nil
}

// partitions lists the partitions that a request touches.
func partitions(in any) (pks []string) {
	switch in := in.(type) {
	case *dynamodb.GetItemInput:
		return []string{str(in.Key, schema.PK)}
	case *dynamodb.PutItemInput:
		return []string{str(in.Item, schema.PK)}
	case *dynamodb.UpdateItemInput:
		return []string{str(in.Key, schema.PK)}
	case *dynamodb.DeleteItemInput:
		return []string{str(in.Key, schema.PK)}
	case *dynamodb.QueryInput:
		return queried(in)
	case *dynamodb.BatchGetItemInput:
		return batched(in.RequestItems)
	case *dynamodb.TransactWriteItemsInput:
		for _, w := range in.TransactItems {
			switch {
			case w.Put != nil:
				pks = append(pks, str(w.Put.Item, schema.PK))
			case w.Update != nil:
				pks = append(pks, str(w.Update.Key, schema.PK))
			case w.Delete != nil:
				pks = append(pks, str(w.Delete.Key, schema.PK))
			case w.ConditionCheck != nil:
				pks = append(pks, str(w.ConditionCheck.Key, schema.PK))
			}
		}
	}
	return pks
}

// Kind names what a request does, for a count of requests: its operation, and the kind of the rows, which is what the
// name of their partition begins with, e.g. "Query list/jobs".
func Kind(operation string, in any) string {
	index := ""
	if q, is := in.(*dynamodb.QueryInput); is && q.IndexName != nil {
		index = *q.IndexName + "/"
	}
	kinds := map[string]bool{}
	for _, p := range partitions(in) {
		kind, _, _ := strings.Cut(p, "#")
		kinds[index+kind] = true
	}
	return operation + " " + strings.Join(slices.Sorted(maps.Keys(kinds)), "+")
}

// ReadUnits is how many read units DynamoDB bills for a request: one for each 4 KB that are read consistently, half of
// it otherwise. A row of its own, also one that is missing, costs at least one; a page of rows is one sum. out is the
// answer.
func ReadUnits(in, out any) (units float64) {
	of := func(bytes int) float64 { return max(1, float64((bytes+4095)/4096)) }
	switch out := out.(type) {
	case *dynamodb.GetItemOutput:
		return of(itemSize(out.Item))
	case *dynamodb.BatchGetItemOutput:
		for name, asked := range in.(*dynamodb.BatchGetItemInput).RequestItems {
			units += float64(len(asked.Keys) - len(out.Responses[name]))
			for _, it := range out.Responses[name] {
				units += of(itemSize(it))
			}
		}
	case *dynamodb.QueryOutput:
		units = of(bytesOf(out.Items))
		if c := in.(*dynamodb.QueryInput).ConsistentRead; c == nil || !*c {
			units /= 2
		}
	case *dynamodb.ScanOutput:
		units = of(bytesOf(out.Items))
		if c := in.(*dynamodb.ScanInput).ConsistentRead; c == nil || !*c {
			units /= 2
		}
	}
	return units
}

// bytesOf is the size of rows.
func bytesOf(rows []Item) (n int) {
	for _, it := range rows {
		n += itemSize(it)
	}
	return n
}

// queried are the values that the key conditions of a query ask for equality with: its
// partition.
func queried(in *dynamodb.QueryInput) (pks []string) {
	for _, c := range in.KeyConditions {
		if c.ComparisonOperator == types.ComparisonOperatorEq {
			for _, v := range c.AttributeValueList {
				pks = append(pks, str(Item{"": v}, ""))
			}
		}
	}
	return pks
}

// GetItem is passed through Do.
func (c *Client) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(ctx, c, "GetItem", in, c.DynamoDBAPI.GetItem)
}

// PutItem is passed through Do.
func (c *Client) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(ctx, c, "PutItem", in, c.DynamoDBAPI.PutItem)
}

// UpdateItem is passed through Do.
func (c *Client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return through(ctx, c, "UpdateItem", in, c.DynamoDBAPI.UpdateItem)
}

// DeleteItem is passed through Do.
func (c *Client) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return through(ctx, c, "DeleteItem", in, c.DynamoDBAPI.DeleteItem)
}

// Query is passed through Do.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(ctx, c, "Query", in, c.DynamoDBAPI.Query)
}

// Scan is passed through Do.
func (c *Client) Scan(ctx context.Context, in *dynamodb.ScanInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.ScanOutput, error) {
	return through(ctx, c, "Scan", in, c.DynamoDBAPI.Scan)
}

// TransactWriteItems is passed through Do.
func (c *Client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(ctx, c, "TransactWriteItems", in, c.DynamoDBAPI.TransactWriteItems)
}

// Throttled is DynamoDB's refusal of a request that came too fast.
func Throttled() error {
	return &types.ProvisionedThroughputExceededException{Message: aws.String("throttled")}
}

// Conflicted is DynamoDB's refusal of a transaction that conflicts with another one. Nothing
// of the transaction was written, and it may succeed when it is sent again.
func Conflicted() error {
	return &types.TransactionCanceledException{Message: aws.String("conflict"),
		CancellationReasons: []types.CancellationReason{{Code: aws.String("TransactionConflict")}}}
}

// Unmet is DynamoDB's refusal of a transaction whose first condition did not hold.
func Unmet() error {
	return &types.TransactionCanceledException{Message: aws.String("condition"),
		CancellationReasons: []types.CancellationReason{{Code: aws.String("ConditionalCheckFailed")}}}
}

// Mixed is a transaction's refusal for its conditions as DynamoDB gives it when others write
// the same rows: rows whose condition held may be reported as conflicts. Any other error is
// returned unchanged. pick decides, row by row. It changes err.
func Mixed(err error, pick func() bool) error {
	var cancelled *types.TransactionCanceledException
	if !errors.As(err, &cancelled) {
		return err
	}
	for i, r := range cancelled.CancellationReasons {
		if *r.Code == "None" && pick() {
			cancelled.CancellationReasons[i].Code = aws.String("TransactionConflict")
		}
	}
	return err
}

// BatchGetItem is passed through Do. With Order, each row is a call of its own, so that other
// calls can come between them.
func (c *Client) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	_ ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	get := c.DynamoDBAPI.BatchGetItem
	if c.Order == nil {
		return through(ctx, c, "BatchGetItem", in, get)
	}

	all := &dynamodb.BatchGetItemOutput{Responses: map[string][]Item{}}
	for name, of := range in.RequestItems {
		keys := slices.Clone(of.Keys)
		c.Order(keys)
		for _, k := range keys {
			of.Keys = []Item{k}
			out, err := through(ctx, c, "BatchGetItem", &dynamodb.BatchGetItemInput{
				RequestItems: map[string]types.KeysAndAttributes{name: of}}, get)
			if err != nil {
				return nil, err
			}
			all.Responses[name] = append(all.Responses[name], out.Responses[name]...)
		}
	}
	return all, nil
}

// Through returns the system's table over client. Its calls pass through do, and it does not wait
// between its tries.
func Through(client dynamodbiface.DynamoDBAPI,
	do func(op string, call func() error) error) *table.Table {
	t := Table(&Client{DynamoDBAPI: client, Do: do})
	t.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	return t
}
