package e2e

import (
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"

	v1 "archivist/pkg/api/v1"
)

// TestOperatorFailsARunningJob: a person fails a job that downloads. Its execution is stopped, the
// batch ends without a version, and the lists show it.
func TestOperatorFailsARunningJob(t *testing.T) {
	begin(t)
	src := newSource(t)
	url := src.put("/byhand.txt", []byte("content that nobody wants any more"))
	release := src.hold("/byhand.txt")
	batch, job := submit(t, url, "file")
	until(t, "the job downloads", soon, func() bool {
		return jobOf(t, job).State == "Downloading" &&
			src.underWay() > 0
	})
	act := v1.Action{Action: "fail", Reason: "sent by mistake"}
	if _, err := client.ActOnJob(t.Context(), job, act, ""); err != nil {
		t.Fatal(err)
	}
	execution := executionOf(t, job)
	until(t, "its execution is stopped", soon, func() bool {
		out, err := machines().DescribeExecution(t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: &execution})
		return err == nil && out.Status == types.ExecutionStatusAborted && aws.ToString(out.Error) == "Superseded"
	})
	release()
	until(t, "the batch ends", soon, func() bool { return batchOf(t, batch).State == "Failed" })
	if j := jobOf(t, job); j.State != "Failed" || j.Version != 0 {
		t.Errorf("the job is %+v", j)
	}
	failed, err := client.Jobs(t.Context(), v1.Filter{Collection: "e2e"})
	if err != nil || !slices.ContainsFunc(failed, func(j v1.Job) bool { return j.ID == job && j.State == "Failed" }) {
		t.Errorf("the list does not show it: %d jobs, %v", len(failed), err)
	}
}
