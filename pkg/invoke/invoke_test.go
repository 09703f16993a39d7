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

// endpoint answers as a function does; failed is the header by which Lambda says that it failed.
func endpoint(t *testing.T, failed, body string) (*Functions, *http.Header) {
	asked := &http.Header{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = r.Header
		if failed != "" {
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
		kind               fault.Kind
	}{
		{body: `{"failed": ["a"]}`},
		{body: `"nothing"`, says: "not expected", kind: fault.Invalid},
		{failed: "Unhandled", body: `{"errorType": "KeyError", "errorMessage": "'title'"}`, says: "KeyError: 'title'",
			kind: fault.Unavailable},
		{failed: "Unhandled", body: "no JSON" + strings.Repeat("x", 5000), says: "no JSON", kind: fault.Unavailable},
	} {
		f, asked := endpoint(t, c.failed, c.body)
		var out struct{ Failed []string }
		err := f.Call(t.Context(), "fn", map[string]int{"n": 1}, &out)
		if c.kind == "" {
			if err != nil || len(out.Failed) != 1 || asked.Get("X-Amz-Invocation-Type") != "RequestResponse" {
				t.Errorf("%+v, %v, %v", out, err, asked)
			}
			continue
		}
		if !fault.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || len(err.Error()) > 1200 {
			t.Errorf("%s became %v", c.body, err)
		}
	}
}

// TestSend: nobody waits for the function.
func TestSend(t *testing.T) {
	f, asked := endpoint(t, "", "")
	if err := f.Send(t.Context(), "fn", "x"); err != nil || asked.Get("X-Amz-Invocation-Type") != "Event" {
		t.Errorf("%v, %v", err, asked)
	}
}
