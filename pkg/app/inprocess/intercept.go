package inprocess

import (
	"context"
	"fmt"
	"reflect"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"
	"github.com/aws/smithy-go/middleware"
)

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
		if err != nil { // it may be a nil of its type
			out.Result = nil
		}
		s.points.answered(p, middleware.GetOperationName(ctx), in.Parameters, out.Result)
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
