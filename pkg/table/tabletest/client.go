package tabletest

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"
)

// Client passes every call to the DynamoDB below it through Do, which may
// delay, fail, repeat or refuse it.
type Client struct {
	dynamodbiface.DynamoDBAPI
	Do func(op string, call func() error) error
}

func through[In, Out any](c *Client, op string, in In, f func(In) (Out, error)) (Out, error) {
	var out Out
	err := c.Do(op, func() (err error) {
		out, err = f(in)
		return err
	})
	if err != nil {
		var none Out
		return none, err
	}
	return out, nil
}

// GetItem is passed through Do.
func (c *Client) GetItem(ctx context.Context, in *dynamodb.GetItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	return through(c, "GetItem", in, func(in *dynamodb.GetItemInput) (*dynamodb.GetItemOutput, error) {
		return c.DynamoDBAPI.GetItem(ctx, in)
	})
}

// PutItem is passed through Do.
func (c *Client) PutItem(ctx context.Context, in *dynamodb.PutItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	return through(c, "PutItem", in, func(in *dynamodb.PutItemInput) (*dynamodb.PutItemOutput, error) {
		return c.DynamoDBAPI.PutItem(ctx, in)
	})
}

// UpdateItem is passed through Do.
func (c *Client) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	return through(c, "UpdateItem", in, func(in *dynamodb.UpdateItemInput) (*dynamodb.UpdateItemOutput, error) {
		return c.DynamoDBAPI.UpdateItem(ctx, in)
	})
}

// DeleteItem is passed through Do.
func (c *Client) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput, _ ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	return through(c, "DeleteItem", in, func(in *dynamodb.DeleteItemInput) (*dynamodb.DeleteItemOutput, error) {
		return c.DynamoDBAPI.DeleteItem(ctx, in)
	})
}

// Query is passed through Do.
func (c *Client) Query(ctx context.Context, in *dynamodb.QueryInput, _ ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	return through(c, "Query", in, func(in *dynamodb.QueryInput) (*dynamodb.QueryOutput, error) { return c.DynamoDBAPI.Query(ctx, in) })
}

// TransactWriteItems is passed through Do.
func (c *Client) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput, _ ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	return through(c, "TransactWriteItems", in, func(in *dynamodb.TransactWriteItemsInput) (*dynamodb.TransactWriteItemsOutput, error) {
		return c.DynamoDBAPI.TransactWriteItems(ctx, in)
	})
}

// Throttled is DynamoDB's refusal of a request that came too fast.
func Throttled() error {
	return &types.ProvisionedThroughputExceededException{Message: aws.String("throttled")}
}

// Conflicted is DynamoDB's refusal of a transaction that met another one.
func Conflicted() error {
	return &types.TransactionCanceledException{Message: aws.String("conflict"),
		CancellationReasons: []types.CancellationReason{{Code: aws.String("TransactionConflict")}}}
}
