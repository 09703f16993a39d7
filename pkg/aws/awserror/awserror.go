// Package awserror groups the errors of AWS by what a person has to do: grant a permission, wait,
// or correct the deployment.
//
// The codes are compared, not the types of the SDK: each service has types of its own for the
// same thing, and some codes have none.
package awserror

import (
	"errors"
	"slices"

	"github.com/aws/smithy-go"
)

// Refused is the metric that counts calls which AWS refused because a permission is missing.
const Refused = "Refused"

// Kind is what an error code of AWS means for a person. It is about the call, not about the
// caller's data.
type Kind int

// Kinds of error codes.
const (
	Other        Kind = iota
	NoPermission      // a permission, a key or its use is missing: a person has to grant it
	Throttled         // too many calls for now: a later try may succeed
	Missing           // what the call is about does not exist: the deployment is wrong
)

// codes are those of the services that the system uses, as their API references list them.
var codes = map[Kind][]string{
	NoPermission: {
		"AccessDenied", "AccessDeniedException", "Forbidden", "UnauthorizedOperation",
		"NotAuthorized",
		"AllAccessDisabled", "KMS.AccessDeniedException", "KMS.DisabledException",
		"KmsAccessDenied", "KmsDisabled",
		"KmsAccessDeniedException", "KmsInvalidState", "KmsInvalidStateException",
		"InvalidAccessKeyId",
		"SignatureDoesNotMatch", "ExpiredToken", "ExpiredTokenException",
		"UnrecognizedClientException",
	},
	Throttled: {
		"ProvisionedThroughputExceededException", "ThrottlingException", "Throttling",
		"RequestLimitExceeded",
		"SlowDown", "TooManyRequestsException", "KMS.ThrottlingException", "KmsThrottled",
		"KmsThrottlingException",
		"TransactionConflictException", "ThrottlingError", "ProvisionedThroughputExceeded",
		"TransactionConflict",
	},
	Missing: {"NoSuchBucket", "ResourceNotFoundException", "TableNotFoundException"},
}

// KindOf is the kind of an error code. A code that is not listed is Other.
func KindOf(code string) Kind {
	for kind, of := range codes {
		if slices.Contains(of, code) {
			return kind
		}
	}
	return Other
}

// Denied reports whether an error means that a permission is missing. An error that is not
// AWS's is not.
func Denied(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && KindOf(api.ErrorCode()) == NoPermission
}

// IsRefusal reports whether AWS refused a call, so that the next try is likely to fail too.
// Errors of the service itself (5xx), throttling and broken connections are none.
func IsRefusal(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && KindOf(api.ErrorCode()) != Throttled &&
		api.ErrorFault() != smithy.FaultServer
}
