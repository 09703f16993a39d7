package revision_test

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

// contained is the execution of a task with an image, which has not begun.
type contained struct {
	*world
	control revision.Control
	e       revision.Execution
}

func newContained(t *testing.T, images map[string]string) *contained {
	t.Helper()
	w := newWorld(t)
	w.archive("maps", (&repository{}).add(1, "[{name: a, image: 'vips:8', command: x, timeout: 2h}]"), 1)
	w.notify("maps", 1)
	w.pass("maps")
	_, buckets := buckettest.Open(t, "work")
	c := &contained{world: w, control: revision.Control{Store: w.store, Work: buckets[0],
		Containers: runner.Containers{Cluster: "cluster", PublicIP: "DISABLED", Images: images}}}
	c.e = slices.Collect(maps.Values(w.begun))[0]
	return c
}

func (c *contained) begin() runner.Begun {
	c.t.Helper()
	b, err := c.control.Begin(c.t.Context(), c.e.Input().Attempt, c.e.Exec)
	c.must(err)
	return b
}

// fails ends the execution with a failure, and returns the instance then.
func (c *contained) fails(name, cause string) revision.Instance {
	c.t.Helper()
	_, err := c.control.End(c.t.Context(), runner.Control{Attempt: c.e.Input().Attempt, Exec: c.e.Exec,
		Failure: &runner.Failure{Error: name, Cause: cause}})
	c.must(err)
	in, err := c.store.Instance(c.t.Context(), "maps/1/a")
	c.must(err)
	return in
}

// put stores an object of the attempt.
func (c *contained) put(key string, v any) {
	c.t.Helper()
	in, err := c.store.Instance(c.t.Context(), "maps/1/a")
	c.must(err)
	data, err := json.Marshal(v)
	c.must(err)
	c.must(c.control.Work.Put(c.t.Context(), in.Prefix()+key, data, bucket.Condition{}))
}

var vips = map[string]string{"vips:8": "arn:vips", "tex:2": "arn:tex"}

// TestContainer: an image of the deployment runs in its container, which finds its job in the bucket. It has the
// time-out, although the image is slow to come; it is stopped only after it could have ended by itself, and that is
// known before the attempt is taken for lost.
func TestContainer(t *testing.T) {
	c := newContained(t, vips)
	began := c.now
	b := c.begin()
	if b.Next != runner.NextContainer || b.Job != nil || b.Container == nil ||
		b.Container.TaskDefinition != "arn:vips" || b.Container.Cluster != "cluster" {
		t.Fatalf("%+v", b)
	}
	data, _, err := c.control.Work.Read(t.Context(), b.Container.Job)
	c.must(err)
	var job runner.Job
	c.must(json.Unmarshal(data, &job))
	if job.ID != "maps/1/a/1" || b.Container.Job != job.Prefix+runner.JobKey || job.Task.Image != "vips:8" ||
		job.Checkout == "" || job.Token == "" || job.Bucket != "work" {
		t.Errorf("%s is %+v", b.Container.Job, job)
	}
	if latest := began.Add(runner.Pulling + 2*time.Hour); job.Deadline.Before(latest) {
		t.Errorf("it is told to end at %s, before %s", job.Deadline, latest)
	}
	ended := job.Deadline.Add(runner.Margin)
	stopped := began.Add(time.Duration(b.Container.Seconds) * time.Second)
	in, err := c.store.Instance(t.Context(), "maps/1/a")
	c.must(err)
	lost := time.UnixMilli(in.Until)
	if stopped.Sub(ended) < time.Minute || lost.Sub(stopped) < 30*time.Second {
		t.Errorf("it has ended at %s, is stopped at %s, and lost at %s", ended, stopped, lost)
	}
	if again := c.begin(); again.Container == nil || again.Container.Job != b.Container.Job {
		t.Errorf("a repeated call is answered with %+v", again)
	}
}

// TestUnknownImage: a task whose image the deployment does not have is broken, and says what to do.
func TestUnknownImage(t *testing.T) {
	c := newContained(t, map[string]string{"tex:2": "arn:tex"})
	b := c.begin()
	const want = "the image vips:8 is not one of this deployment, which has tex:2: name it in the setting " +
		"taskImages, and deploy again"
	if b.Next != runner.NextEnd || b.Result == nil || b.Result.End != runner.Broken || b.Result.Reason != want {
		t.Errorf("%+v: %+v", b, b.Result)
	}
}

// TestContainerEnds: the result that a container has left is what counts, however it ended. Without one, its end is
// the reason, at once, even if its program has claimed the attempt for hours. One that has not claimed it was none.
func TestContainerEnds(t *testing.T) {
	const exited = `{"TaskArn": "arn:aws:ecs:eu-west-1:111122223333:task/c/0dc5", "LastStatus": "STOPPED", ` +
		`"StoppedReason": "Essential container in task exited", "Containers": [{"Name": "task", "ExitCode": 137, "Reason": ` +
		`"OutOfMemoryError: Container killed due to memory usage"}]}`
	const memory = "the container ended with exit code 137 and no result: OutOfMemoryError: Container killed due to " +
		"memory usage; its log stream is task/task/0dc5"
	for _, x := range []struct {
		name, cause       string
		claimed, resulted bool
		state             workflow.State
		reason            string
	}{
		{runner.ContainerEnded, exited, true, true, workflow.Success, ""},
		{"States.TaskFailed", exited, true, true, workflow.Success, ""},
		{"States.TaskFailed", exited, true, false, workflow.Failure, memory},
		{"States.TaskFailed", exited, false, false, workflow.Waiting, memory},
		{"States.Timeout", "", false, false, workflow.Waiting, "the runner did not begin in time"},
		{"States.Timeout", "", true, false, workflow.Running, ""},
		{"ECS.AccessDeniedException", "not authorized", false, false, workflow.Waiting,
			"the runner failed: ECS.AccessDeniedException: not authorized"},
	} {
		c := newContained(t, vips)
		c.begin()
		if x.claimed {
			c.put(runner.StartedKey, runner.Claim{ID: "x", Until: c.now.Add(time.Hour)})
		}
		if x.resulted {
			c.put(runner.ResultKey, runner.Result{End: runner.Succeeded})
		}
		before, err := c.store.Instance(t.Context(), "maps/1/a")
		c.must(err)
		in := c.fails(x.name, x.cause)
		if found, err := runner.Look(t.Context(), c.control.Work, before.Prefix()); err != nil ||
			in.State == workflow.Waiting && found.Claim == nil {
			t.Errorf("%s: a runner that still prepares can begin (%v)", x.name, err)
		}
		if in.State != x.state || in.Reason != x.reason {
			t.Errorf("%s, claimed %v, resulted %v: it is %s, %q; want %s, %q", x.name, x.claimed, x.resulted,
				in.State, in.Reason, x.state, x.reason)
		}
	}
}
