package queue_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/smithy-go"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// noStart refuses to start executions, and to answer tokens, while an error is set.
type noStart struct {
	*bench
	machine string
	start   error
	answer  error
}

func (r *noStart) Start(ctx context.Context, machine, name string, in queue.Message) error {
	if r.start != nil && machine == r.machine {
		return r.start
	}
	return r.bench.Start(ctx, machine, name, in)
}

func (r *noStart) Answer(ctx context.Context, token string, a ingest.Answer, cause string) error {
	if r.answer != nil {
		return r.answer
	}
	return r.bench.Answer(ctx, token, a, cause)
}

// refusal is what the AWS SDK returns for a call of Step Functions.
func refusal(operation, code string) error {
	return &smithy.OperationError{ServiceID: "SFN", OperationName: operation, Err: &smithy.GenericAPIError{Code: code,
		Message: "no"}}
}

// explains fails the test unless the explanation of a job or batch is as expected.
func (b *bench) explains(id string, waits explain.Wait, says ...string) {
	b.Helper()
	x, err := b.explain(id)
	if err != nil || x.Waits != waits {
		b.Errorf("%s: %+v, %v; want one that waits for %s", id, x, err, waits)
	}
	for _, s := range says {
		if !strings.Contains(said(x), s) {
			b.Errorf("%s: %q does not say %q", id, said(x), s)
		}
	}
}

// explain explains a job or a batch.
func (b *bench) explain(id string) (explain.Explanation, error) {
	b.Helper()
	if strings.Contains(id, "-") {
		return b.q.ExplainJob(b.Context(), id)
	}
	return b.q.ExplainBatch(b.Context(), id)
}

// said is all that an explanation says.
func said(x explain.Explanation) string {
	var all strings.Builder
	for _, l := range x.Chain {
		fmt.Fprintf(&all, "%s %s %s: %s\n", l.Kind, l.ID, l.State, l.Why)
	}
	for _, f := range x.Facts {
		fmt.Fprintf(&all, "%s: %s\n", f.Name, f.Value)
	}
	for _, s := range x.Do {
		fmt.Fprintf(&all, "%s: %s\n", s.What, s.Command)
	}
	return all.String()
}

// TestMachineIsRefused: if a state machine may not send its messages, the first repair
// records the cause, until a worker has the item.
func TestMachineIsRefused(t *testing.T) {
	b := newBench(t)
	id := b.lose(1)[0]
	batch := b.job(id).Batch
	const cause = "failed at Estimating: SQS.SqsException: not authorized to perform: sqs:sendmessage"
	b.problems[queue.ExecutionName(id, 1)] = cause
	b.explains(id, explain.Start)
	b.now = b.now.Add(10 * time.Minute)
	b.tick()
	b.explains(id, explain.Person, "the state machine ingest-job "+cause)
	if b.metrics[queue.Stuck] != 1 {
		t.Errorf("the metrics are %v", b.metrics)
	}
	events, err := b.q.Events(t.Context(), event.Subject{Type: event.Job, ID: id}, "")
	if err != nil || !strings.Contains(fmt.Sprint(events), cause) {
		t.Errorf("the events are %v, %v", events, err)
	}
	b.handle(b.take()[0], func(context.Context, *queue.Claim) (ingest.Result, error) {
		b.explains(id, explain.Worker)
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	if j := b.job(id); j.Blocked != "" {
		t.Errorf("%s is still blocked: %s", id, j.Blocked)
	}

	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.problems[queue.ExecutionName(row.Batch.ID, 1)] = cause
	b.now = b.now.Add(10 * time.Minute)
	b.tick()
	b.explains(row.Batch.ID, explain.Person, "the state machine ingest-batch "+cause)
	b.explains(batch, explain.Parts)
}

// TestStartIsRefused: if AWS refuses to start an execution, the item shows it at once,
// whatever started it.
func TestStartIsRefused(t *testing.T) {
	b := newBench(t)
	r := &noStart{bench: b, machine: queue.MachineJob, start: refusal("StartExecution", "AccessDeniedException")}
	b.q.Executions = r
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	b.explains(id, explain.Person, "its execution could not be started",
		"SFN refused StartExecution: AccessDeniedException")
	if b.metrics[queue.Stuck] != 1 {
		t.Errorf("the metrics are %v", b.metrics)
	}
	r.machine = queue.MachineBatch
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.explains(row.Batch.ID, explain.Person, "its execution could not be started")

	r.start = refusal("StartExecution", "ThrottlingException") // it passes
	row, err = b.q.Submit(t.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		t.Fatal(err)
	}
	b.explains(row.Batch.ID, explain.Start)

	r.start = nil
	b.now = b.now.Add(10 * time.Minute)
	b.tick()
	for _, m := range b.take() {
		b.handle(m, ok)
	}
	if j := b.job(id); j.Blocked != "" || j.State != ingest.Provisioning {
		t.Errorf("the job is %s, blocked by %q", j.State, j.Blocked)
	}
}

// TestAnswerIsRefused: a worker that may not answer its token records that on the job, which
// waits for the sweep.
func TestAnswerIsRefused(t *testing.T) {
	b := newBench(t)
	r := &noStart{bench: b, answer: refusal("SendTaskSuccess", "AccessDeniedException")}
	b.estimated("", 1)
	b.tick()
	m := b.last()
	stage, _ := ingest.StageOf(ingest.Downloading)
	if _, err := (&queue.Worker{Queue: b.q, Stage: stage, Step: ok, Answers: r}).Handle(t.Context(), m); err == nil {
		t.Error("the message would be deleted")
	}
	b.explains(m.Job, explain.Person, "was not informed that download is done", "SFN refused SendTaskSuccess")
	if b.metrics[queue.Stuck] != 1 {
		t.Errorf("the metrics are %v", b.metrics)
	}
}

// TestStuck: an item is stuck after three repairs without progress, even if the cause is
// not known; one that makes progress is not.
func TestStuck(t *testing.T) {
	b := newBench(t)
	b.lose(1)
	for n := 1; n <= 4; n++ {
		b.now = b.now.Add(2 * time.Hour)
		b.tick()
		if want := float64(max(0, n-ingest.StuckRepairs+1)); b.repairs != n || b.metrics[queue.Stuck] != want {
			t.Errorf("after %d repairs: %v, want %v of an item that is stuck", n, b.metrics, want)
		}
	}
	b.handle(b.last(), ok)
	b.now = b.now.Add(2 * time.Hour)
	stuck := b.metrics[queue.Stuck]
	b.tick()
	if b.metrics[queue.Stuck] != stuck {
		t.Errorf("the job is at its next gate, but counts as stuck: %v", b.metrics)
	}
}

// TestFailedJobsAreCounted: each job is counted once, when it fails.
func TestFailedJobsAreCounted(t *testing.T) {
	b := newBench(t)
	batch := b.submit(2, "")
	b.tick()
	for _, m := range b.take() {
		b.handle(m, fails(true))
		b.handle(m, fails(true)) // the message comes twice
	}
	if b.metrics[queue.FailedJobs] != 2 {
		t.Errorf("%v of batch %s; 2 jobs failed", b.metrics, batch)
	}
	b.requeue(ingest.JobID(batch, 1))
	b.tick()
	for _, m := range b.take() {
		b.handle(m, fails(true))
	}
	if b.metrics[queue.FailedJobs] != 3 {
		t.Errorf("%v; one failed again", b.metrics)
	}
	b.submitJobs(ingest.Job{Collection: "c", LocalIDs: []string{"a", "b\x00"}}, ingest.Job{Collection: "c"})
	if b.metrics[queue.FailedJobs] != 4 {
		t.Errorf("%v; one row could not be ingested", b.metrics)
	}
}

// TestCrashesAreCounted: the next worker counts a worker that crashed; one whose step fails
// or succeeds is not counted.
func TestCrashesAreCounted(t *testing.T) {
	b := newBench(t)
	b.submit(1, "")
	b.tick()
	m := b.last()
	b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
		return ingest.Result{}, fault.New(fault.Unavailable, "no answer")
	})
	ends := func(context.Context, *queue.Claim) (ingest.Result, error) { panic("out of memory") }
	for range 2 {
		func() {
			defer func() { _ = recover() }()
			b.handle(m, ends)
		}()
		b.now = b.now.Add(2 * time.Minute)
	}
	b.handle(m, ok)
	if b.metrics[queue.Crashes] != 2 {
		t.Errorf("%v; two workers crashed", b.metrics)
	}
}

// queries counts what queries of the index read.
type queries struct {
	dynamodbiface.DynamoDBAPI
	n, rows int
}

func (c *queries) Query(ctx context.Context, in *dynamodb.QueryInput,
	o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := c.DynamoDBAPI.Query(ctx, in, o...)
	if err == nil && in.IndexName != nil {
		c.n, c.rows = c.n+1, c.rows+len(out.Items)
	}
	return out, err
}

// TestMeasure: the scheduler measures the oldest job by age, with one request for each
// priority, however many jobs wait. It counts them, too, a thousand with a request.
func TestMeasure(t *testing.T) {
	count := &queries{DynamoDBAPI: tabletest.New()}
	b := newBenchOn(t, tabletest.Table(count))
	b.metrics = map[string]float64{}
	if err := b.q.Measure(t.Context()); err != nil || len(b.metrics) != 0 {
		t.Errorf("an idle system has the metrics %v, %v", b.metrics, err)
	}
	b.submitJobs(ingest.Job{Collection: "c", Priority: 50})
	b.now = b.now.Add(time.Hour)
	better := make([]ingest.Job, 1500)
	for i := range better {
		better[i] = ingest.Job{Collection: "c", Priority: 4 + i%3}
	}
	b.submitJobs(better...)
	count.n, count.rows = 0, 0
	if err := b.q.Measure(t.Context()); err != nil || b.metrics[queue.OldestWaiting] != 3600 {
		t.Errorf("the metrics are %v, %v; the oldest has waited an hour", b.metrics, err)
	}
	const counts, counted = 3 + 3, 1501 // those of the waiting jobs, and a request for each empty place
	if count.n > 7+counts || count.rows > 4+counted {
		t.Errorf("%d requests read %d rows of the index; 4 priorities wait at one of 3 gates", count.n, count.rows)
	}
}

// TestSpaceUsed: the metric is the granted part of the space, in percent.
func TestSpaceUsed(t *testing.T) {
	b := newBench(t)
	b.estimated("", 250) // of 1,000
	b.tick()
	if err := b.q.Measure(t.Context()); err != nil || b.metrics[queue.SpaceUsed] != 25 {
		t.Errorf("the metrics are %v, %v", b.metrics, err)
	}
}
