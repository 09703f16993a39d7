package boot

import (
	"errors"
	"testing"

	"github.com/aws/smithy-go"

	"archivist/pkg/fault"
)

// TestTaskRunner: the function needs the name of one bucket, and nothing else of the system.
func TestTaskRunner(t *testing.T) {
	f, err := TaskRunner(t.Context(), func(name string) string {
		if name != EnvWork {
			t.Errorf("it asks for %s", name)
		}
		return "work"
	})
	if err != nil || f.Run == nil || f.Log == nil {
		t.Errorf("%+v, %v", f, err)
	}
}

func TestSecretFault(t *testing.T) {
	for code, want := range map[string]fault.Kind{"ResourceNotFoundException": fault.NotFound,
		"AccessDeniedException": fault.Denied, "InvalidRequestException": fault.Invalid, "ThrottlingException": "",
		"InternalServiceError": ""} {
		if got := fault.Of(secretFault(&smithy.GenericAPIError{Code: code})); got != want {
			t.Errorf("%s is %q, want %q", code, got, want)
		}
	}
	if err := secretFault(nil); err != nil {
		t.Error(err)
	}
	if err := errors.New("x"); secretFault(err) != err {
		t.Error("an error of no code is another")
	}
}
