package boot

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	tasks "archivist/pkg/app/lambda"
	"archivist/pkg/aws/cloudwatch"
	"archivist/pkg/aws/invoke"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
)

// TestTaskContainers: task-control has the containers of its environment, and does not start with what is none.
func TestTaskContainers(t *testing.T) {
	for text, want := range map[string]string{"": "", `{"images": {"vips:8": "arn:vips"}}`: "arn:vips"} {
		f, err := taskControl(t, text)
		if err != nil || f.Control.Containers.Images["vips:8"] != want {
			t.Errorf("%s: %+v, %v", text, f, err)
		}
	}
	_, err := taskControl(t, "vips:8")
	if err == nil || !strings.Contains(err.Error(), EnvTaskContainers) {
		t.Errorf("with a text that is no JSON: %v", err)
	}
}

func taskControl(t *testing.T, containers string) (*tasks.TaskControl, error) {
	t.Helper()
	s := with(map[string]string{EnvTaskContainers: containers})
	s.queue, s.stages, s.scheduler = &queue.Queue{}, &stage.Stages{}, &queue.Scheduler{}
	s.metrics, s.events = &cloudwatch.Metrics{}, &eventlog.Log{Bucket: &bucket.Bucket{}}
	return s.TaskControl(func(archive.Deps) archive.Open { return nil })
}

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
