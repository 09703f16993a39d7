package awserror_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"archivist/pkg/aws/awserror"
)

// TestKinds: what an error of AWS means follows from its code, and from whose fault it is.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		err             error
		denied, refused bool
	}{
		{&smithy.GenericAPIError{Code: "AccessDenied"}, true, true},
		{fmt.Errorf("called: %w", &smithy.GenericAPIError{Code: "KmsAccessDeniedException"}), true, true},
		{&smithy.GenericAPIError{Code: "SlowDown"}, false, false},
		{&smithy.GenericAPIError{Code: "NoSuchBucket"}, false, true},
		{&smithy.GenericAPIError{Code: "InternalError", Fault: smithy.FaultServer}, false, false},
		{errors.New("AccessDenied"), false, false},
	} {
		if got := awserror.Denied(c.err); got != c.denied {
			t.Errorf("%v: denied is %v", c.err, got)
		}
		if got := awserror.IsRefusal(c.err); got != c.refused {
			t.Errorf("%v: refused is %v", c.err, got)
		}
	}
	if got := awserror.KindOf("ResourceNotFoundException"); got != awserror.Missing {
		t.Errorf("a missing resource is of the kind %d", got)
	}
}
