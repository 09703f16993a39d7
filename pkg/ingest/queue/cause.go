package queue

import (
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"

	"archivist/pkg/aws/awserror"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// resource is an error that names what refused, e.g. "the bucket archivist-work".
type resource interface {
	error
	Resource() string
}

// CauseOf explains for people why a try failed: which service refused, with which code, and
// what to do. An error that is not from AWS stays unchanged. The text is stored on rows, and shown
// to depositors.
func CauseOf(err error) string {
	var api smithy.APIError
	var op *smithy.OperationError
	var network net.Error
	switch {
	case errors.Is(err, errTimeUp):
		return "the function ran out of time" + during(err) +
			". It will be tried again; if it happens each time, raise the time-out of the function"
	case fault.Is(err, fault.NotFound): // of S3: its message says what is missing, without S3's text
		return err.Error()
	case errors.As(err, &api):
		return subject(err) + " " + explainCode(api, operation(err))
	case errors.As(err, &op) && errors.As(err, &network):
		return fmt.Sprintf("%s did not answer %s: %v. It will be tried again",
			subject(err), op.Operation(), rootOf(err))
	}
	return err.Error()
}

// explainCode explains an error of AWS by its code.
func explainCode(api smithy.APIError, operation string) string {
	code := api.ErrorCode()
	// Of a transaction, the code is always that it was cancelled; the reasons have the one that
	// counts.
	var cancelled *types.TransactionCanceledException
	if errors.As(api, &cancelled) {
		for _, r := range cancelled.CancellationReasons {
			if c := aws.ToString(r.Code); c != "" && c != "None" {
				code = c
				break
			}
		}
	}

	what := operation + ": " + code
	if operation == "" {
		what = code
	}

	switch kind := awserror.KindOf(code); {
	case kind == awserror.NoPermission:
		return "refused " + what + ". Check the permissions of the function that made the call"
	case kind == awserror.Throttled:
		return "is throttled: " + what +
			". It will be tried again; if it lasts, check the metrics and quotas of that service"
	case kind == awserror.Missing:
		return "does not exist: " + what + ". Check the deployment"
	case api.ErrorFault() == smithy.FaultServer || code == "InternalError" ||
		code == "ServiceUnavailable":
		return "failed: " + what + ". It will be tried again"
	}
	return "refused " + what + ": " + api.ErrorMessage()
}

// subject is what an error is about: the resource that it names, or else the service.
func subject(err error) string {
	var named resource
	if errors.As(err, &named) {
		return named.Resource()
	}
	var op *smithy.OperationError
	if errors.As(err, &op) && op.Service() != "DynamoDB" {
		return op.Service()
	}
	return "the table"
}

// operation is the name of AWS's operation that failed, "" if none did.
func operation(err error) string {
	var op *smithy.OperationError
	if errors.As(err, &op) {
		return op.Operation()
	}
	return ""
}

// rootOf is the innermost cause.
func rootOf(err error) error {
	for {
		inner := errors.Unwrap(err)
		if inner == nil {
			return err
		}
		err = inner
	}
}

// errTimeUp ends a step just before its function's time-out, so that the worker can still
// record what it was doing.
var errTimeUp = errors.New("the function ran out of time")

// timeUpError is the error of a step whose time ran out.
type timeUpError struct{ err error }

// Error is the text of the step's error.
func (e *timeUpError) Error() string { return e.err.Error() }

// Unwrap returns errTimeUp and the step's error.
func (e *timeUpError) Unwrap() []error { return []error{errTimeUp, e.err} }

// during returns what a step was doing when its time ran out.
func during(err error) string {
	var e *timeUpError
	if !errors.As(err, &e) {
		return ""
	}

	var op *smithy.OperationError
	if errors.As(e.err, &op) {
		return fmt.Sprintf(" while %s was asked for %s", subject(e.err), op.Operation())
	}

	if fault.Of(e.err) != "" {
		return ": " + e.err.Error()
	}
	return ""
}

// endedSilently is the message for a worker that ended before it could report why.
func endedSilently(stage ingest.Stage) string {
	return fmt.Sprintf("the worker ended without an answer: it was killed, or ran out of memory or time. "+
		"The log of the function %s says which", stage.Name)
}

// triedTooOften is why an item fails after its last try: the last known cause.
func triedTooOften(s ingest.Stage, tries int, last, then string) string {
	if last == "" {
		last = endedSilently(s)
	}
	return fmt.Sprintf("%s was tried %d times without success: %s %s", s.Name, tries,
		sentence(last), then)
}

// sentence ends a text with a period.
func sentence(text string) string {
	text = strings.TrimSpace(text)
	if text == "" || strings.HasSuffix(text, ".") || strings.HasSuffix(text, "…") {
		return text
	}
	return text + "."
}
