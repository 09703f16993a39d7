package invoke

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"archivist/pkg/kernel/fault"
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

// TestRepeated: a call is repeated only if the function was not called: one whose answer is lost may
// have run, or still run. A wake-up is repeated all the same.
func TestRepeated(t *testing.T) {
	quick := retry.NewStandard(func(o *retry.StandardOptions) {
		o.Backoff = retry.BackoffDelayerFunc(func(int, error) (time.Duration, error) { return 0, nil })
	})
	for _, c := range []struct {
		name, says string
		answer     http.HandlerFunc
		call, send int // requests
	}{
		{"Lambda is busy", "Rate exceeded", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "TooManyRequestsException")
			w.WriteHeader(http.StatusTooManyRequests)
			_, _ = w.Write([]byte(`{"message": "Rate exceeded"}`))
		}, 3, 3},
		{"the connection breaks", "EOF", func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler)
		}, 1, 3},
		{"an error of Lambda", "no", func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Amzn-Errortype", "ServiceException")
			w.WriteHeader(http.StatusInternalServerError)
			_, _ = w.Write([]byte(`{"message": "no"}`))
		}, 1, 3},
	} {
		var asked atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			c.answer(w, r)
		}))
		t.Cleanup(server.Close)
		f := &Functions{Client: lambda.New(lambda.Options{Region: "us-east-1", BaseEndpoint: &server.URL,
			Credentials: credentials.NewStaticCredentialsProvider("key", "secret", ""), Retryer: quick})}
		err := f.Call(t.Context(), "fn", "x", &struct{}{})
		if n := asked.Swap(0); int(n) != c.call || !fault.Is(err, fault.Unavailable) ||
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %d calls, %v", c.name, n, err)
		}
		err = f.Send(t.Context(), "fn", "x")
		if n := asked.Load(); int(n) != c.send || !fault.Is(err, fault.Unavailable) {
			t.Errorf("%s: %d wake-ups, %v", c.name, n, err)
		}
	}
	f := &Functions{Client: lambda.New(lambda.Options{Region: "us-east-1", Retryer: quick,
		BaseEndpoint: aws.String("http://127.0.0.1:1"), // where nobody listens
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", "")})}
	err := f.Call(t.Context(), "fn", "x", &struct{}{})
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "attempts, 3") {
		t.Errorf("nobody listens: %v", err)
	}
}

// TestRelay: a payload and its answer pass as they are, for the tenant that is named, if one is.
func TestRelay(t *testing.T) {
	for _, tenant := range []string{"maps", ""} {
		f, asked := endpoint(t, 0, "", `{"end": "succeeded"}`)
		answer, failed, err := f.Relay(t.Context(), "fn", tenant, []byte(`{"n":1}`))
		if err != nil || failed != nil || string(answer) != `{"end": "succeeded"}` ||
			asked.Get("X-Amz-Tenant-Id") != tenant || asked.Get("X-Amz-Invocation-Type") != "RequestResponse" {
			t.Errorf("%s, %+v, %v, %v", answer, failed, err, asked)
		}
	}
	f, _ := endpoint(t, 0, "Unhandled", `{"errorType": "Unavailable", "errorMessage": "busy"}`)
	if _, failed, err := f.Relay(t.Context(), "fn", "", nil); err != nil || *failed != (Failed{
		Type: "Unavailable", Message: "busy"}) {
		t.Errorf("%+v, %v", failed, err)
	}
}
