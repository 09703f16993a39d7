package inprocess

import (
	"context"
	"maps"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// handle adds the operations of Lambda.
func (s *System) handleLambda(o operations) {
	op(o, s.invoke)
	op(o, s.listFunctions)
	op(o, s.functionConfiguration)
	op(o, s.putConcurrency)
	op(o, s.deleteConcurrency)
	op(o, s.listMappings)
	op(o, s.updateMapping)
}

// invoke is Invoke. A function that has failed is no error, but FunctionError, with the error
// document as the payload.
func (s *System) invoke(ctx context.Context, in *lambda.InvokeInput) (*lambda.InvokeOutput, error) {
	if in.InvocationType == types.InvocationTypeEvent {
		return &lambda.InvokeOutput{StatusCode: 202}, s.functions.send(*in.FunctionName, in.Payload)
	}
	a, err := s.functions.invoke(ctx, *in.FunctionName, in.Payload)
	out := &lambda.InvokeOutput{StatusCode: 200, Payload: a.out}
	if a.failed != nil {
		out.FunctionError = aws.String("Unhandled")
	}
	return out, err
}

// listFunctions is ListFunctions, in the order of the names, on one page.
func (s *System) listFunctions(_ context.Context,
	_ *lambda.ListFunctionsInput) (*lambda.ListFunctionsOutput, error) {
	out := &lambda.ListFunctionsOutput{}
	s.functions.mu.Lock()
	defer s.functions.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(s.functions.all)) {
		f := s.functions.all[name]
		out.Functions = append(out.Functions, types.FunctionConfiguration{
			FunctionName: &f.name,
			FunctionArn:  aws.String(ARN(f.name)),
			Timeout:      aws.Int32(int32(f.timeout.Seconds())),
		})
	}
	return out, nil
}

// functionConfiguration is GetFunctionConfiguration, as far as tests and tools look at it.
func (s *System) functionConfiguration(_ context.Context,
	in *lambda.GetFunctionConfigurationInput) (
	*lambda.GetFunctionConfigurationOutput, error) {
	f, err := s.functions.named(*in.FunctionName)
	if err != nil {
		return nil, err
	}
	return &lambda.GetFunctionConfigurationOutput{
		FunctionName: &f.name,
		FunctionArn:  aws.String(ARN(f.name)),
		Timeout:      aws.Int32(int32(f.timeout.Seconds())),
		State:        types.StateActive,
		Environment:  &types.EnvironmentResponse{Variables: f.env},
	}, nil
}

// putConcurrency supports 0, which stops a function.
func (s *System) putConcurrency(_ context.Context, in *lambda.PutFunctionConcurrencyInput) (
	*lambda.PutFunctionConcurrencyOutput, error) {
	f, err := s.functions.named(*in.FunctionName)
	if err != nil {
		return nil, err
	}
	f.pause(*in.ReservedConcurrentExecutions == 0)
	return &lambda.PutFunctionConcurrencyOutput{ReservedConcurrentExecutions: in.ReservedConcurrentExecutions}, nil
}

// deleteConcurrency is DeleteFunctionConcurrency: the function runs again.
func (s *System) deleteConcurrency(_ context.Context, in *lambda.DeleteFunctionConcurrencyInput) (
	*lambda.DeleteFunctionConcurrencyOutput, error) {
	f, err := s.functions.named(*in.FunctionName)
	if err != nil {
		return nil, err
	}
	f.pause(false)
	return &lambda.DeleteFunctionConcurrencyOutput{}, nil
}

// listMappings is ListEventSourceMappings, without that of the table's stream.
func (s *System) listMappings(_ context.Context, in *lambda.ListEventSourceMappingsInput) (
	*lambda.ListEventSourceMappingsOutput, error) {
	out := &lambda.ListEventSourceMappingsOutput{}
	for _, m := range s.mappings {
		if in.FunctionName == nil || lastPart(*in.FunctionName) == m.function {
			out.EventSourceMappings = append(out.EventSourceMappings,
				types.EventSourceMappingConfiguration{
					UUID:           &m.id,
					EventSourceArn: aws.String(m.queue.arn()),
					FunctionArn:    aws.String(ARN(m.function)),
					State:          aws.String(m.state()),
					BatchSize:      aws.Int32(int32(m.batch)),
					ScalingConfig:  &types.ScalingConfig{MaximumConcurrency: aws.Int32(int32(m.at))},
				})
		}
	}
	return out, nil
}

// state is the state of the mapping, as Lambda names it.
func (m *mapping) state() string {
	if m.disabled.Load() {
		return "Disabled"
	}
	return "Enabled"
}

// updateMapping is UpdateEventSourceMapping, of which only Enabled is supported. Messages
// that were received already are delivered.
func (s *System) updateMapping(_ context.Context, in *lambda.UpdateEventSourceMappingInput) (
	*lambda.UpdateEventSourceMappingOutput, error) {
	i := slices.IndexFunc(s.mappings, func(m *mapping) bool { return m.id == *in.UUID })
	if i < 0 || in.Enabled == nil {
		return nil, &types.ResourceNotFoundException{Message: aws.String("there is no mapping " +
			*in.UUID)}
	}
	m := s.mappings[i]
	m.enable(*in.Enabled)
	return &lambda.UpdateEventSourceMappingOutput{UUID: &m.id, State: aws.String(m.state())}, nil
}
