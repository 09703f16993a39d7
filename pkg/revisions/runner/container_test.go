package runner

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

const jobKey = "runs/maps/7/build/1/" + JobKey

// contained stores a Job for a container.
func (w *world) contained(job Job) {
	w.Helper()
	job.Task.Image = "vips:8.15"
	data, err := json.Marshal(job)
	if err != nil {
		w.Fatal(err)
	}
	w.put(JobKey, data)
}

// kept is the Result in the bucket.
func (w *world) kept() *Result {
	w.Helper()
	found, err := Look(w.Context(), w.Bucket, "runs/maps/7/build/1/")
	if err != nil {
		w.Fatal(err)
	}
	return found.Result
}

// TestContain: a Result is in the bucket, whatever came of the run, also if nothing can be run at all.
func TestContain(t *testing.T) {
	for _, c := range []struct {
		task        workflow.Task
		end, reason string
	}{
		{workflow.Task{Command: "true"}, Succeeded, ""},
		{workflow.Task{Command: "exit 4"}, Failed, "exit code 4"},
		{workflow.Task{}, Broken, "no CMD"},
		{workflow.Task{Script: "true", Shell: "fish"}, Broken, `the shell "fish" is not there`},
	} {
		w := newWorld(t)
		w.contained(of(c.task))
		r, err := w.Contain(t.Context(), jobKey)
		if err != nil || r.End != c.end || !strings.Contains(r.Reason, c.reason) {
			t.Errorf("%+v: %+v, %v", c.task, r, err)
		}
		if k := w.kept(); k == nil || k.End != c.end {
			t.Errorf("%+v: in the bucket is %+v", c.task, k)
		}
	}
}

// TestImagePath: programs are looked for where the image has them, and its variables are those of the task, but for
// those that a task has by itself.
func TestImagePath(t *testing.T) {
	w := newWorld(t)
	w.Env = []string{"PATH=/nowhere:/usr/bin:/bin", "HOME=/root", "LANG=de_DE.UTF-8", "SIZE=1", "TOOL=vips"}
	w.contained(of(workflow.Task{Script: `echo "$PATH $LANG $SIZE $TOOL"; [ "$HOME" = "$PWD" ]`, Shell: "sh",
		Env: map[string]string{"SIZE": "400"}}))
	r, err := w.Contain(t.Context(), jobKey)
	if err != nil || r.End != Succeeded || w.output("stdout") != "/nowhere:/usr/bin:/bin de_DE.UTF-8 400 vips\n" {
		t.Errorf("%+v, %v: %q", r, err, w.output(""))
	}
	if lookUp("/nowhere", "sh") != "" {
		t.Error("a program is found that is not on the path")
	}
}

// TestContainTriesAgain: what fails for a while does no harm, before the run and after it.
func TestContainTriesAgain(t *testing.T) {
	w := newWorld(t)
	w.contained(command("true"))
	failing := map[string]int{"GET object work/" + jobKey: 2, "PUT object work/runs/maps/7/build/1/" + ResultKey: 12}
	w.S3.Before = func(op, key string) int {
		name := op + " " + key
		if failing[name] > 0 {
			failing[name]--
			return 503
		}
		return 0
	}
	r, err := w.Contain(t.Context(), jobKey)
	w.S3.Before = nil
	if err != nil || r.End != Succeeded || w.kept() == nil {
		t.Errorf("%+v, %v: %+v", r, err, w.kept())
	}
	for name, n := range failing {
		if n != 0 {
			t.Errorf("%s was not tried %d more times", name, n)
		}
	}
}

// TestContainGivesUp: what fails for too long is the Result, and no task is run. The job itself has to be there.
func TestContainGivesUp(t *testing.T) {
	w := newWorld(t)
	job := command("touch $ARCHIVIST_OUTPUTS/ran")
	job.Task.Secrets = map[string]string{"KEY": "archivist/tasks/maps/b"}
	w.contained(job)
	asked := 0
	w.Secrets = func(context.Context, string) (string, error) { asked++; return "", errors.New("slow down") }
	r, err := w.Contain(t.Context(), jobKey)
	if err != nil || r.End != Broken || r.Reason != "the secret archivist/tasks/maps/b for KEY: slow down" ||
		asked != tries || len(r.Outputs) != 0 {
		t.Errorf("after %d tries %+v, %v", asked, r, err)
	}
	if k := w.kept(); k == nil || k.Reason != r.Reason {
		t.Errorf("in the bucket is %+v", k)
	}
	_, err = w.Contain(t.Context(), "runs/maps/7/build/2/job")
	if !fault.Is(err, fault.NotFound) || !strings.Contains(err.Error(), "the job runs/maps/7/build/2/job") {
		t.Errorf("without a job: %v", err)
	}
}

// TestSecondContainer: one that finds the attempt begun runs nothing, and when it is stopped, it says nothing of what
// came of the attempt: the other one does.
func TestSecondContainer(t *testing.T) {
	w := newWorld(t)
	w.contained(command("true"))
	claim, err := json.Marshal(Claim{ID: "other", Started: time.Now(), Until: time.Now().Add(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	w.put(StartedKey, claim)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	r, err := w.Contain(ctx, jobKey)
	if err == nil || w.kept() != nil {
		t.Errorf("%+v, %v: in the bucket is %+v", r, err, w.kept())
	}
	w.put(ResultKey, []byte(`{"end": "failed", "exit": 7, "reason": "exit code 7"}`))
	r, err = w.Contain(t.Context(), jobKey)
	if err != nil || r.Exit != 7 {
		t.Errorf("%+v, %v", r, err)
	}
}

// described is a task of ECS as ecs:runTask.sync describes it, shortened (source: an execution on AWS that the tests
// of LocalStack record).
func described(container, stopped string) *Failure {
	return &Failure{Error: "States.TaskFailed", Cause: `{"Attachments": [], "Connectivity": "CONNECTED", ` +
		`"Containers": [{"Name": "aws-guardduty-agent", "ExitCode": 143}, {"Cpu": "0", "Image": "vips", "LastStatus": "STOPPED", "Name": "task"` + container + `}], "LastStatus": "STOPPED",` +
		`"LaunchType": "FARGATE", "StoppedReason": "` + stopped + `", "TaskArn": "arn:aws:ecs:eu-west-1:111122223333:` +
		`task/archive/0dc5c17a422b4dc4b493371970c6c4d6"}`}
}

// TestStoppedContainer: the reason names the cause, or where it can be read.
func TestStoppedContainer(t *testing.T) {
	const exited = "Essential container in task exited"
	for want, f := range map[string]*Failure{
		"the container ended with exit code 137 and no result: OutOfMemoryError: Container killed due to memory " +
			"usage; its log stream is task/task/0dc5c17a422b4dc4b493371970c6c4d6": described(
			`, "ExitCode": 137, "Reason": "OutOfMemoryError: Container killed due to memory usage"`, exited),
		"the container ended with exit code 1 and no result: Essential container in task exited; " +
			"its log stream is task/task/0dc5c17a422b4dc4b493371970c6c4d6": described(`, "ExitCode": 1`, exited),
		"the container did not start: CannotPullContainerError: vips: not found": described("",
			"CannotPullContainerError: vips: not found"),
		"the container ended without a result: the entry point of its image has to be archivist-task; " +
			"its log stream is task/task/0dc5c17a422b4dc4b493371970c6c4d6": described(`, "ExitCode": 0`, exited),
	} {
		if s := f.Stopped(); s == nil || s.Why() != want {
			t.Errorf("%+v, want %q", s, want)
		}
	}
	for _, cause := range []string{"", "{}", "no JSON", `{"TaskArn": "x", "LastStatus": "RUNNING", "Containers": [{}]}`,
		`{"errorMessage": "x"}`} {
		if s := (&Failure{Cause: cause}).Stopped(); s != nil {
			t.Errorf("%s is taken for a container: %+v", cause, s)
		}
	}
}

// TestContainersOf: an image that the deployment does not have is named, with those that it has.
func TestContainersOf(t *testing.T) {
	c := Containers{Cluster: "c", Subnets: []string{"s"}, SecurityGroups: []string{"g"}, PublicIP: "DISABLED",
		Images: map[string]string{"tex:2": "t", "vips:8": "v"}}
	got, err := c.Of("vips:8")
	if err != nil || got.TaskDefinition != "v" || got.Cluster != "c" || got.Subnets[0] != "s" ||
		got.SecurityGroups[0] != "g" || got.PublicIP != "DISABLED" {
		t.Errorf("%+v, %v", got, err)
	}
	for want, c := range map[string]Containers{
		"the image x is not one of this deployment, which has tex:2, vips:8: name it in the setting taskImages, and " +
			"deploy again": c,
		"the image x is not one of this deployment, which has none: name it in the setting taskImages, and deploy " +
			"again": {},
	} {
		if _, err := c.Of("x"); err == nil || err.Error() != want {
			t.Errorf("%v", err)
		}
	}
}
