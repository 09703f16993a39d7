package inprocess

import (
	"context"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"archivist/pkg/kernel/table/tabletest"
)

// operations are what the twins of AWS's services do, by the types of the operations' inputs.
// The type of the input names service and operation, e.g. *sqs.SendMessageInput.
type operations map[reflect.Type]func(ctx context.Context, in any) (any, error)

// op adds an operation. A later one of the same input replaces it.
func op[In, Out any](o operations, do func(ctx context.Context, in *In) (*Out, error)) {
	o[reflect.TypeFor[*In]()] = func(ctx context.Context, in any) (any, error) {
		if err := ctx.Err(); err != nil {
			return nil, &aws.RequestCanceledError{Err: err} // as the SDK does
		}
		return do(ctx, in.(*In))
	}
}

// row adds an operation of DynamoDB.
func row[In, Out any](o operations,
	do func(context.Context, *In, ...func(*dynamodb.Options)) (*Out, error)) {
	op(o, func(ctx context.Context, in *In) (*Out, error) { return do(ctx, in) })
}

// handleTable adds the operations of DynamoDB.
func handleTable(o operations, t *tabletest.Fake) {
	row(o, t.GetItem)
	row(o, t.PutItem)
	row(o, t.UpdateItem)
	row(o, t.DeleteItem)
	row(o, t.Query)
	row(o, t.Scan)
	row(o, t.BatchGetItem)
	row(o, t.TransactWriteItems)
}
