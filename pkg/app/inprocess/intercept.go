package inprocess

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"

	"archivist/pkg/kernel/table/tabletest"
)

// Where everything is.
const (
	region  = "us-east-1"
	account = "000000000000"
)

// arn is an ARN of a service in the account.
func arn(service, resource string) string {
	return "arn:aws:" + service + ":" + region + ":" + account + ":" + resource
}

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
	row(o, t.DescribeTable)
}

// config is the configuration of AWS clients of a process, nil outside of all functions. An
// operation ends in the SDK's first step, after its input was checked: its twin answers. Only
// requests to S3 are made, because signed URLs are requests too; they are answered in this
// process.
//
// The order of what can happen to a call: its process has died already; it dies before the
// call; the call has its effect, and the process dies before the answer. In all three the
// caller gets errDead.
func (s *System) config(p *process) aws.Config {
	intercept := func(ctx context.Context, in middleware.InitializeInput,
		next middleware.InitializeHandler) (
		out middleware.InitializeOutput, _ middleware.Metadata, err error) {
		// This also refuses goroutines that go on after their invocation was ended.
		if err := p.check(); err != nil {
			return out, middleware.Metadata{}, err
		}

		before, after := s.points.meet(p, middleware.GetOperationName(ctx))
		if before {
			p.end()
			return out, middleware.Metadata{}, errDead
		}

		if after {
			defer func() {
				p.end()
				out, err = middleware.InitializeOutput{}, errDead
			}()
		}

		if middleware.GetServiceID(ctx) == s3.ServiceID {
			return next.HandleInitialize(ctx, in)
		}

		do := s.operations[reflect.TypeOf(in.Parameters)]
		if do == nil {
			return out, middleware.Metadata{}, &smithy.GenericAPIError{Code: "UnsupportedOperation",
				Message: fmt.Sprintf("%s %s is not supported in the process",
					middleware.GetServiceID(ctx),
					middleware.GetOperationName(ctx))}
		}

		out.Result, err = do(ctx, in.Parameters)
		return out, middleware.Metadata{}, err
	}

	add := func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("inprocess", intercept),
			middleware.After)
	}
	return aws.Config{
		Region:       region,
		BaseEndpoint: &s.endpoint,
		HTTPClient:   requests{s.buckets, p},
		Credentials:  credentials.NewStaticCredentialsProvider("process", "process", ""),
		APIOptions:   []func(*middleware.Stack) error{add},
	}
}
