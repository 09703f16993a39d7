// Package invoke invokes functions on AWS Lambda.
//
//	functions := &invoke.Functions{Client: lambda.NewFromConfig(cfg)}
//	err := functions.Send(ctx, name, payload) // the function runs later
//	err = functions.Call(ctx, arn, in, &out)  // waits for the answer
package invoke

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"

	"archivist/pkg/fault"
)

// Functions are those that the caller may invoke.
type Functions struct{ Client *lambda.Client }

// Send invokes a function asynchronously: Lambda keeps the payload, which is sent as JSON, and
// runs the function soon.
func (f *Functions) Send(ctx context.Context, function string, payload any) error {
	_, err := f.invoke(ctx, function, types.InvocationTypeEvent, payload)
	return err
}

// Call invokes a function with in as JSON, and decodes its answer into out. An error of the
// function itself is an Unavailable that says what the function said.
func (f *Functions) Call(ctx context.Context, function string, in, out any) error {
	answer, err := f.invoke(ctx, function, types.InvocationTypeRequestResponse, in)
	if err != nil {
		return err
	}
	if answer.FunctionError != nil {
		return fault.New(fault.Unavailable, "the function %s failed: %s", function, reason(answer.Payload))
	}
	if err := json.Unmarshal(answer.Payload, out); err != nil {
		return fault.New(fault.Invalid, "the function %s answered what is not expected: %v", function, err)
	}
	return nil
}

func (f *Functions) invoke(ctx context.Context, function string, how types.InvocationType, payload any) (
	*lambda.InvokeOutput, error) {
	data, err := json.Marshal(payload)
	if err != nil {
		return nil, err
	}
	out, err := f.Client.Invoke(ctx, &lambda.InvokeInput{FunctionName: &function, InvocationType: how, Payload: data})
	if err != nil {
		return nil, fmt.Errorf("invoke: %s: %w", function, err)
	}
	return out, nil
}

// mostReason limits what is kept of a function's error, in bytes: it can have a stack trace.
const mostReason = 1000

// reason is what the error of a function says ("Understanding retry behavior in Lambda").
func reason(payload []byte) string {
	var said struct {
		Type    string `json:"errorType"`
		Message string `json:"errorMessage"`
	}
	text := string(payload)
	if json.Unmarshal(payload, &said) == nil && said.Message != "" {
		text = said.Type + ": " + said.Message
	}
	return text[:min(len(text), mostReason)]
}
