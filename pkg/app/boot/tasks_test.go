package boot

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"

	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// TestTaskRunner: the function needs the name of one bucket and whose its folder is, and nothing else of the system.
func TestTaskRunner(t *testing.T) {
	f, err := TaskRunner(t.Context(), func(name string) string {
		switch name {
		case EnvWork:
			return "work"
		case EnvOwnTemp:
			return ""
		}
		t.Errorf("it asks for %s", name)
		return ""
	})
	if err != nil || f.Run == nil || f.Log == nil {
		t.Errorf("%+v, %v", f, err)
	}
}

// TestTaskContainer: the variables of the image are for tasks, and those by which the program has its role and its
// job are not.
func TestTaskContainer(t *testing.T) {
	r, err := TaskContainer(t.Context(), func(string) string { return "work" }, []string{"PATH=/opt/vips/bin:/bin",
		"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI=/v2/credentials/x", "AWS_REGION=eu-west-1", "ARCHIVIST_JOB=runs/x/job",
		"ECS_CONTAINER_METADATA_URI_V4=http://169.254.170.2/v4/x", "JAWS_HOME=/opt/jaws"}, []string{"vips", "-v"})
	if err != nil || r.Name != "work" || !slices.Equal(r.Made, []string{"vips", "-v"}) ||
		!slices.Equal(r.Env, []string{"PATH=/opt/vips/bin:/bin", "JAWS_HOME=/opt/jaws"}) {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestReaches: a run reads the files of its archive, writes its own, and reads the secrets of its archive; another
// archive whose name begins alike is not among them.
func TestReaches(t *testing.T) {
	job := runner.Job{Archive: "maps", Prefix: "runs/maps@2/12/index/000001-x/"}
	var got []string
	for _, a := range reaches("arn:aws-us-gov:iam::1:role/x", "work", job.Reach()) {
		got = append(got, strings.Join(a.Action, " ")+" on "+strings.Join(a.Resource, " "))
	}
	want := []string{
		"s3:GetObject on arn:aws-us-gov:s3:::work/runs/maps@2/*",
		"s3:PutObject s3:AbortMultipartUpload on arn:aws-us-gov:s3:::work/runs/maps@2/12/index/000001-x/*",
		"s3:ListBucket on arn:aws-us-gov:s3:::work",
		"secretsmanager:GetSecretValue on arn:aws-us-gov:secretsmanager:*:*:secret:archivist/tasks/maps/*",
		"kms:Decrypt on *",
	}
	if !slices.Equal(got, want) {
		t.Errorf("it reaches %q", got)
	}
}

// TestRunsWithItsOwn: a run asks with the credentials that it was given; without any, with those of the function.
func TestRunsWithItsOwn(t *testing.T) {
	for id, as := range map[string]*runner.Credentials{"of-the-run": {ID: "of-the-run", Secret: "s", Token: "t"},
		"of-the-function": nil} {
		var asked atomic.Value
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Store(r.Header.Get("Authorization"))
			w.WriteHeader(http.StatusForbidden)
		}))
		defer server.Close()
		p := Process{Env: func(string) string { return "work" }, Log: slog.New(slog.DiscardHandler), Dir: t.TempDir(),
			Config: aws.Config{Region: "us-east-1", BaseEndpoint: &server.URL,
				Credentials: credentials.NewStaticCredentialsProvider("of-the-function", "s", "")}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		job := runner.Job{ID: "maps/1/a/1", Archive: "maps", Prefix: "runs/maps/1/a/000001-x/",
			Task: workflow.Task{Name: "a", Timeout: 60}}
		_, _ = p.TaskRunner().Handle(ctx, runner.Call{Job: job, As: as}) // it is refused
		if by, _ := asked.Load().(string); !strings.Contains(by, "Credential="+id+"/") {
			t.Errorf("it asked with %q", by)
		}
	}
}
