package invoke

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"archivist/pkg/fault"
)

// endpoint answers as Lambda does: if the status is 0, for a function that failed in a way, or not
// at all; else with an error of its own.
func endpoint(t *testing.T, status int, failed, body string) (*Functions, *http.Header) {
	asked := &http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Header
		switch {
		case status != 0:
			w.Header().Set("X-Amzn-Errortype", failed)
			w.WriteHeader(status)
		case failed != "":
			w.Header().Set("X-Amz-Function-Error", failed)
		}
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(server.Close)
	return &Functions{Client: lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &server.URL,
		Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: aws.NopRetryer{}})}, asked
}

// TestCall: what a function answers, and each way in which it fails.
func TestCall(t *testing.T) {
	for _, c := range []struct {
		failed, body, says string
		status             int // 0: success
		code               string
		kind               fault.Kind
	}{
		{body: `{"failed": ["a"]}`},
		{body: `"nothing"`, says: "not what is expected"},
		{failed: "Unhandled", body: `{"errorType": "KeyError", "errorMessage": "'title'"}`, says: "KeyError: 'title'"},
		{failed: "Unhandled", body: "no JSON" + strings.Repeat("x", 5000), says: "no JSON"},
		{status: http.StatusForbidden, body: `{"Message": "no"}`, code: "AccessDeniedException", says: "may not call",
			kind: fault.Denied},
		{status: http.StatusNotFound, body: `{"Message": "gone"}`, code: "ResourceNotFoundException",
			says: "cannot be called", kind: fault.Unavailable},
	} {
		f, asked := endpoint(t, c.status, c.failed+c.code, c.body)
		var out struct{ Failed []string }
		err := f.Call(t.Context(), "fn", map[string]int{"n": 1}, &out)
		if c.says == "" {
			if err != nil || len(out.Failed) != 1 || asked.Get("X-Amz-Invocation-Type") != "RequestResponse" {
				t.Errorf("%+v, %v, %v", out, err, asked)
			}
			continue
		}
		if fault.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 1200 {
			t.Errorf("%s became %v", c.body, err)
		}
	}
}

// TestSend: nobody waits for the function.
func TestSend(t *testing.T) {
	f, asked := endpoint(t, 0, "", "")
	if err := f.Send(t.Context(), "fn", "x"); err != nil || asked.Get("X-Amz-Invocation-Type") != "Event" {
		t.Errorf("%v, %v", err, asked)
	}
}
