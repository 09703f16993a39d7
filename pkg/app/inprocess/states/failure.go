package states

import (
	"errors"
	"slices"

	"github.com/aws/smithy-go"
)

// Error names of Step Functions (Developer Guide, "Handling errors in Step Functions workflows").
const (
	anyError         = "States.ALL"
	taskFailed       = "States.TaskFailed"
	timedOut         = "States.Timeout"
	runtimeFailure   = "States.Runtime"
	dataLimit        = "States.DataLimitExceeded"
	intrinsicFailure = "States.IntrinsicFailure"
)

// failure is why a state failed: its error output. It is an error of the machine, which
// retriers and catchers can match; other errors end the execution without one.
type failure struct{ name, cause string }

func (f *failure) Error() string { return f.name + ": " + f.cause }

// output is what a catcher passes on.
func (f *failure) output() any { return map[string]any{"Error": f.name, "Cause": f.cause} }

// matches reports whether error names of a retrier or catcher cover the failure. Source:
// Developer Guide, "Handling errors in Step Functions workflows": States.Runtime is never caught;
// States.ALL does not cover States.DataLimitExceeded; States.TaskFailed covers all but
// States.Timeout.
func (f *failure) matches(names []string) bool {
	switch f.name {
	case runtimeFailure:
		return false
	case dataLimit:
		return slices.Contains(names, dataLimit)
	}
	return slices.Contains(names, f.name) || slices.Contains(names, anyError) ||
		f.name != timedOut && slices.Contains(names, taskFailed)
}

// refused is the failure of a call that a service did not accept. Its name is that of the
// service's exception; unknown is the name for an error that is none of the service. So a
// definition can match e.g. Lambda.TooManyRequestsException.
func refused(service, unknown string, err error) *failure {
	var api smithy.APIError
	if errors.As(err, &api) {
		return &failure{service + "." + api.ErrorCode(), api.ErrorMessage()}
	}
	return &failure{service + "." + unknown, err.Error()}
}
