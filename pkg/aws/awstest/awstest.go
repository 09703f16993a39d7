// Package awstest is an AWS endpoint for tests of one adapter: it records the
// requests, and sends the same response to all.
//
//	cfg, asked := awstest.Endpoint(t, http.StatusBadRequest, `{"__type":"ThrottlingException"}`)
//	client := sfn.NewFromConfig(cfg)
package awstest

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
)

// Endpoint starts the endpoint. It returns a configuration for clients of any service, which
// make each request once, and the bodies of their requests. The bodies are in the order of
// the requests, decompressed. They may be read when no request is under way. The server ends
// with the test.
func Endpoint(t *testing.T, status int, body string) (aws.Config, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		in := io.Reader(r.Body)
		if r.Header.Get("Content-Encoding") == "gzip" {
			in, _ = gzip.NewReader(in)
		}

		data, err := io.ReadAll(in)
		if err != nil {
			t.Error(err)
		}

		asked = append(asked, string(data))
		w.Header().Set("Smithy-Protocol", r.Header.Get("Smithy-Protocol"))
		w.Header().Set("Content-Type", r.Header.Get("Content-Type"))
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))

	t.Cleanup(server.Close)
	return aws.Config{
		Region:       "us-east-1",
		BaseEndpoint: &server.URL,
		Credentials:  credentials.NewStaticCredentialsProvider("key", "secret", ""),
		Retryer:      func() aws.Retryer { return aws.NopRetryer{} },
	}, &asked
}
