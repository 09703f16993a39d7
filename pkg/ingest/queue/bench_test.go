package queue_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// bench is the service on an empty table (the twin, DynamoDB Local or MiniStack's), with a
// clock that the test moves and executions that it reads.
type bench struct {
	*testing.T
	q        *queue.Queue
	c        *queue.Scheduler
	now      time.Time
	started  []queue.Message
	stopped  map[string]bool
	problems map[string]string // of executions
	answered []string
	wakes    int
	repairs  int
	metrics  map[string]float64
	cleaned  []string
}

func newBenchOn(t *testing.T, tb *table.Table) *bench {
	b := &bench{T: t, now: time.UnixMilli(1_795_000_000_000), stopped: map[string]bool{}, problems: map[string]string{},
		metrics: map[string]float64{}}
	n := 0
	now := func() time.Time { return b.now }
	id := func() string { n++; return fmt.Sprintf("ID%06d", n) }
	b.q = &queue.Queue{Table: tb, Now: now, NewID: id, Executions: b,
		Wake: func(context.Context) error { b.wakes++; return nil },
		Metric: func(name string, n float64) {
			b.metrics[name] += n
			b.repairs = int(b.metrics["Repairs"])
		}, Rules: ingest.Rules{Timing: ingest.Timings["production"], FailedRetention: 24 * time.Hour},
		// the first time it does not get to the end
		Clean: func(_ context.Context, job string, _ time.Time) (bool, error) {
			b.cleaned = append(b.cleaned, job)
			return len(b.cleaned) > 1, nil
		},
		Settings: queue.Settings{MaxInFlight: 2, Space: 1000, Reserve: 100, SweepPage: 50},
		Log:      slog.New(slog.NewTextHandler(io.Discard, nil))}
	b.c = &queue.Scheduler{Queue: b.q, Leases: &lease.Store{Table: tb, Now: now, NewID: id}}
	return b
}

// newBench makes a bench on the DynamoDB of the test run.
func newBench(t *testing.T) *bench { return newBenchOn(t, tabletest.Open(t)) }

// newTwinBench makes a bench on the twin of DynamoDB, for tests with thousands of calls or
// of times, which a real DynamoDB would only slow down.
func newTwinBench(t *testing.T) *bench { return newBenchOn(t, tabletest.Table(tabletest.New())) }

func (b *bench) Start(_ context.Context, _, _ string, in queue.Message) error {
	b.started = append(b.started, in)
	return nil
}

func (b *bench) Stop(_ context.Context, _, name, _ string) error { b.stopped[name] = true; return nil }

func (b *bench) StoppedByHand(_ context.Context, _, name string) (string, bool, error) {
	return "a person", b.stopped["by hand "+name], nil
}

func (b *bench) Problem(_ context.Context, _, name string) (string, error) {
	return b.problems[name], nil
}

func (b *bench) Answer(_ context.Context, token string, a ingest.Answer, cause string) error {
	b.answered = append(b.answered, fmt.Sprintf("%s %s %s", token, a, cause))
	return nil
}

// handle makes a worker of the stage handle a message with a step.
func (b *bench) handle(m queue.Message, step queue.Step) time.Duration {
	b.Helper()
	stage, ok := ingest.StageNamed(m.Step)
	if m.Job != "" {
		stage, ok = ingest.StageOf(ingest.State(m.State))
	}
	if !ok {
		b.Fatalf("no stage for %+v", m)
	}
	keep, err := (&queue.Worker{Queue: b.q, Stage: stage, Step: step, Answers: b}).Handle(b.Context(), m)
	if err != nil {
		b.Fatal(err)
	}
	return keep
}

func ok(_ context.Context, _ *queue.Claim) (ingest.Result, error) {
	return ingest.Result{Outcome: ingest.StepNext}, nil
}

func (b *bench) tick() {
	b.Helper()
	if err := b.c.Tick(b.Context(), true); err != nil {
		b.Fatal(err)
	}
}

// last is the last execution that was started.
func (b *bench) last() queue.Message {
	b.Helper()
	if len(b.started) == 0 {
		b.Fatal("no execution was started")
	}
	m := b.started[len(b.started)-1]
	m.Token = "token"
	return m
}

// submit submits a batch of n jobs and unpacks it; the first has a local id.
func (b *bench) submit(n int, local string) string {
	b.Helper()
	row, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		var jobs []ingest.Job
		for i := range n {
			j := ingest.Job{Collection: "c", Priority: 5, SizeKnown: true}
			if i == 0 && local != "" {
				j.LocalIDs = []string{local}
			}
			jobs = append(jobs, j)
		}
		for claim.Batch.Unpacked < n {
			left := jobs[claim.Batch.Unpacked:]
			if err := claim.Unpack(ctx, left[:queue.Chunk(left)], n); err != nil {
				return ingest.Result{}, err
			}
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	return row.Batch.ID
}

func (b *bench) job(id string) ingest.Job {
	b.Helper()
	row, err := b.q.Job(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return row.Job
}

func (b *bench) batch(id string) ingest.Batch {
	b.Helper()
	row, err := b.q.Batch(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	return row.Batch
}

// edit changes a job's row directly, to a state that takes many steps to reach.
func (b *bench) edit(id string, change func(row *queue.Job)) string {
	b.Helper()
	row, err := b.q.Job(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	change(row)
	row.WorkPK, row.WorkSK = row.Job.WorkKey()
	b.save(row)
	return id
}

func (b *bench) editBatch(id string, change func(row *queue.Batch)) string {
	b.Helper()
	row, err := b.q.Batch(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	change(row)
	row.WorkPK, row.WorkSK = row.Batch.WorkKey()
	b.save(row)
	return id
}

func (b *bench) save(row table.Row) {
	b.Helper()
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Save(row)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// take returns the messages of the jobs' executions that were started since the
// last time.
func (b *bench) take() (out []queue.Message) {
	for _, m := range b.started {
		if m.Job != "" {
			m.Token = "t"
			out = append(out, m)
		}
	}
	b.started = nil
	return out
}

// lose submits n jobs whose executions start but whose messages are all lost, and returns
// the jobs.
func (b *bench) lose(n int) (ids []string) {
	b.Helper()
	batch := b.submit(n, "")
	if err := b.c.Tick(b.Context(), false); err != nil {
		b.Fatal(err)
	}
	for i := range n {
		ids = append(ids, ingest.JobID(batch, i+1))
	}
	b.started = nil
	return ids
}

// grants puts n reservations of slots or space into the table, as if jobs had them.
func (b *bench) grants(pk string, n int, bytes int64) {
	b.Helper()
	for i := 0; i < n; {
		tx := b.q.Table.Begin(fmt.Sprint(pk, i))
		for range min(table.MaxActions, n-i) {
			id := fmt.Sprintf("J%06d", i)
			tx.Insert(&queue.Reservation{Head: table.Head{PK: pk, SK: id}, Owner: id, Bytes: bytes,
				Collection: "other"})
			i++
		}
		if err := tx.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// sized is a step that finds out how much space its job needs.
func sized(n int64) queue.Step {
	return func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.Job.SpaceNeeded, claim.Job.SizeKnown = n, true
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
}

// fails is a step that ends in failure.
func fails(recoverable bool) queue.Step {
	return func(context.Context, *queue.Claim) (ingest.Result, error) { return ingest.Fail(recoverable, "no"), nil }
}

// unpackAll is the step that makes the batch's jobs, in as many chunks as it takes.
func unpackAll(jobs []ingest.Job) queue.Step {
	return func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		for claim.Batch.Unpacked < len(jobs) {
			left := jobs[claim.Batch.Unpacked:]
			if err := claim.Unpack(ctx, left[:queue.Chunk(left)], len(jobs)); err != nil {
				return ingest.Result{}, err
			}
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
}

// submitJobs submits a batch and unpacks it into jobs.
func (b *bench) submitJobs(jobs ...ingest.Job) string {
	b.Helper()
	row, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "c", Mode: "add"}, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	b.handle(b.last(), unpackAll(jobs))
	return row.Batch.ID
}

func (b *bench) requeue(id string) {
	b.Helper()
	if _, err := queuetest.Requeue(b.Context(), b.q, id, "again", "me"); err != nil {
		b.Fatal(err)
	}
}

// resume requeues a failed job, which the scheduler then admits.
func (b *bench) resume(id string) {
	b.Helper()
	b.requeue(id)
	b.tick()
}

func (b *bench) forceFail(id string) {
	b.Helper()
	if _, err := queuetest.ForceFail(b.Context(), b.q, id, "no more", "me"); err != nil {
		b.Fatal(err)
	}
}

// estimated submits a job with a local id, admits it, and estimates its size.
func (b *bench) estimated(local string, size int64) string {
	b.Helper()
	id := ingest.JobID(b.submit(1, local), 1)
	b.tick()
	b.handle(queue.Message{Job: id, Exec: b.job(id).Exec, State: string(ingest.Estimating), Token: "t"}, sized(size))
	return id
}

// through runs a job from its message to its end.
func (b *bench) through(m queue.Message) {
	b.Helper()
	for j := b.job(m.Job); j.Running(); j = b.job(m.Job) {
		m.State, m.Exec = string(j.State), j.Exec
		b.handle(m, ok)
	}
}
