package boot

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"archivist/pkg/fault"
	"archivist/pkg/invoke"
)

// TestPreviewRevision: the API asks the function of the revision queue, and its refusals are the API's.
func TestPreviewRevision(t *testing.T) {
	for answer, want := range map[string]fault.Kind{
		`{"preview": {"Revision": 13}}`:                             "",
		`{"kind": "Conflict", "message": "revision 13 is planned"}`: fault.Conflict,
	} {
		asked := ""
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			asked = r.URL.Path + " " + string(body)
			_, _ = w.Write([]byte(answer))
		}))
		defer server.Close()
		s := with(map[string]string{EnvRevisions: "revisions"})
		s.functions = &invoke.Functions{Client: lambda.New(lambda.Options{Region: "us-east-1",
			BaseEndpoint: &server.URL, Retryer: aws.NopRetryer{},
			Credentials: credentials.NewStaticCredentialsProvider("key", "secret", "")})}
		p, err := s.previewRevision(t.Context(), "maps", 13)
		if fault.Of(err) != want || want == "" && (err != nil || p.Revision != 13) ||
			asked != `/2015-03-31/functions/revisions/invocations {"archive":"maps","preview":13}` {
			t.Errorf("%s: %+v, %v; it was asked %s", answer, p, err, asked)
		}
	}
}
