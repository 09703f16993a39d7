package secretsmanager_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	secrets "archivist/pkg/aws/secretsmanager"
	"archivist/pkg/kernel/fault"
)

// TestRead: what the service answers is the secret, or an error of the kind that says whether another call helps.
func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		status int
		answer string
		want   fault.Kind
		says   string
	}{
		"there":     {http.StatusOK, `{"SecretString":"key"}`, "", ""},
		"binary":    {http.StatusOK, `{"SecretBinary":"AAA="}`, fault.Invalid, "it has no text"},
		"empty":     {http.StatusOK, `{"SecretString":""}`, fault.Invalid, "it has no text"},
		"missing":   {http.StatusBadRequest, `{"__type":"ResourceNotFoundException"}`, fault.NotFound, "no such secret"},
		"forbidden": {http.StatusBadRequest, `{"__type":"AccessDeniedException"}`, fault.Denied, "may not read it"},
		"deleted":   {http.StatusBadRequest, `{"__type":"InvalidRequestException"}`, fault.Invalid, "cannot be read"},
		"throttled": {http.StatusBadRequest, `{"__type":"ThrottlingException"}`, "", "ThrottlingException"},
		"broken":    {http.StatusInternalServerError, `{"__type":"InternalServiceError"}`, "", "InternalServiceError"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, _ *http.Request) {
				out.Header().Set("Content-Type", "application/x-amz-json-1.1")
				out.WriteHeader(c.status)
				_, _ = out.Write([]byte(c.answer))
			}))
			defer srv.Close()

			client := secretsmanager.New(secretsmanager.Options{BaseEndpoint: &srv.URL, Region: "us-east-1",
				Credentials: aws.AnonymousCredentials{}, RetryMaxAttempts: 1})
			value, err := (&secrets.Secrets{Client: client}).Read(t.Context(), "archivist/maps")
			switch {
			case c.says == "" && (err != nil || value != "key"):
				t.Errorf("%q, %v", value, err)
			case c.says != "" && (err == nil || value != "" || !strings.Contains(err.Error(), c.says)):
				t.Errorf("%q, %v; expected %q", value, err, c.says)
			}
			if got := fault.Of(err); got != c.want || errors.Is(err, nil) != (c.says == "") {
				t.Errorf("%v is %q, want %q", err, got, c.want)
			}
		})
	}
}
