// Package invoke invokes functions on AWS Lambda.
//
//	functions := &invoke.Functions{Client: lambda.NewFromConfig(cfg)}
//	err := functions.Send(ctx, name, payload) // the function runs later
//	err = functions.Call(ctx, arn, in, &out)  // waits for the answer
package invoke

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/kernel/fault"
)

// Functions are those that the caller may invoke. The role of the function decides which
// those are.
type Functions struct{ Client *lambda.Client }

// Send invokes a function asynchronously: Lambda keeps the payload, which is sent as JSON,
// and runs the function soon. nil means that Lambda has it, not that the function has run.
// The errors are those of Call; after an Unavailable it may have been taken.
func (f *Functions) Send(ctx context.Context, function string, payload any) error {
	_, err := f.invoke(ctx, function, "", types.InvocationTypeEvent, payload)
	return err
}

// MaxPayload is the largest payload of a call whose answer is waited for, in bytes ("Lambda
// quotas": 6 MB).
const MaxPayload = 6_000_000

// Call invokes a function with in as JSON, and decodes its answer into out. An error of the kind
// Unavailable or Denied means that the function cannot be called, or that its answer was lost;
// one without a kind is the function's own, and says what it said, or that it did not answer in
// time. Then it may still be running.
func (f *Functions) Call(ctx context.Context, function string, in, out any) error {
	answer, err := f.invoke(ctx, function, "", types.InvocationTypeRequestResponse, in)
	if err != nil {
		return err
	}

	if answer.FunctionError != nil {
		return fmt.Errorf("the function failed: %s", reason(answer.Payload))
	}

	if err := json.Unmarshal(answer.Payload, out); err != nil {
		return fmt.Errorf("the function's answer is not what is expected: %w", err)
	}
	return nil
}

// Relay calls a function for a tenant, and returns its answer as it is: the payload, and, if the function has failed,
// the document of its error. Lambda keeps the environments of a function with tenants apart ("Tenant isolation"); ""
// is for a function that has none. The errors are those of Call.
func (f *Functions) Relay(ctx context.Context, function, tenant string, payload json.RawMessage) (
	answer json.RawMessage, failed *Failed, err error) {
	out, err := f.invoke(ctx, function, tenant, types.InvocationTypeRequestResponse, payload)
	if err != nil {
		return nil, nil, err
	}

	if out.FunctionError != nil {
		failed = &Failed{Message: reason(out.Payload)}
		_ = json.Unmarshal(out.Payload, failed) // what is no document of an error is shown as it is
		return nil, failed, nil
	}
	return out.Payload, nil, nil
}

// Failed is the error of a function ("Understanding retry behavior in Lambda").
type Failed struct {
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
}

// once repeats a call whose answer is waited for only if the function was not called. The SDK by
// itself would also repeat one whose connection broke while the function runs: it would run twice
// at the same time.
type once struct{ aws.Retryer }

// IsErrorRetryable reports whether Lambda refused a call for a moment, or was not reached.
func (once) IsErrorRetryable(err error) bool {
	var busy *types.TooManyRequestsException
	var network *net.OpError
	return errors.As(err, &busy) || errors.As(err, &network) && network.Op == "dial"
}

// invoke makes the call. An error without a kind is one of the payload, or means that the
// time of ctx was over.
func (f *Functions) invoke(ctx context.Context, function, tenant string, how types.InvocationType,
	payload any) (*lambda.InvokeOutput, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}

	if len(data) > MaxPayload {
		return nil, fmt.Errorf("the call has %d bytes; Lambda takes %d", len(data), MaxPayload)
	}

	repeat := func(o *lambda.Options) {
		if how == types.InvocationTypeRequestResponse {
			o.Retryer = once{o.Retryer}
		}
	}

	in := &lambda.InvokeInput{FunctionName: &function, InvocationType: how, Payload: data}
	if tenant != "" {
		in.TenantId = &tenant
	}

	out, err := f.Client.Invoke(ctx, in, repeat)

	switch {
	case err == nil:
		return out, nil
	case errors.Is(err, context.DeadlineExceeded):
		return nil, errors.New("the function did not answer in time")
	case awserror.Denied(err):
		return nil, &fault.Error{
			Kind: fault.Denied,
			Msg:  "this deployment may not call the function: " + err.Error(),
			Err:  err,
		}
	}
	return nil, &fault.Error{
		Kind: fault.Unavailable,
		Msg:  "the function cannot be called: " + err.Error(),
		Err:  err,
	}
}

// mostReason limits what is kept of a function's error, in bytes: it can have a stack trace.
const mostReason = 1000

// reason is what the error of a function says ("Understanding retry behavior in Lambda"). A
// payload that is no error document is shown as it is.
func reason(payload []byte) string {
	var said Failed
	text := string(payload)
	if json.Unmarshal(payload, &said) == nil && said.Message != "" {
		text = said.Type + ": " + said.Message
	}
	return text[:min(len(text), mostReason)]
}
