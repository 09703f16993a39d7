package queue_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/guregu/dynamo/v2"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// many are n local ids.
func many(n int) (ids []string) {
	for i := range n {
		ids = append(ids, fmt.Sprintf("id%03d", i))
	}
	return ids
}

// counter notes how many rows the largest transaction had.
type counter struct {
	dynamodbiface.DynamoDBAPI
	most int
}

func (c *counter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	c.most = max(c.most, len(in.TransactItems))
	return c.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

// capArk is the object of fullest.
const capArk = "ark:/99999/fk4tq65d6k"

// fullest is a job with as many identifiers as are allowed.
func fullest() ingest.Job {
	return ingest.Job{Collection: "c", SizeKnown: true, LocalIDs: many(ingest.MaxLocalIDs), Primary: capArk}
}

// counting makes a bench, and a function that counts the rows of a transition.
func counting(t *testing.T) (*bench, func(name string, transition func())) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	c := &counter{DynamoDBAPI: b.q.Table.DB.Client()}
	b.q.Table = table.New(dynamo.NewFromIface(c), b.q.Table.Rows.Name())
	b.c.Leases.Table = b.q.Table
	return b, func(name string, transition func()) {
		t.Helper()
		c.most = 0
		transition()
		if c.most == 0 || c.most > table.MaxActions {
			t.Errorf("%s: a transaction of %d rows", name, c.most)
		}
		t.Logf("%s: %d rows", name, c.most)
	}
}

// TestRowsAtTheCap: a job with as many identifiers as are allowed can make every transition:
// each stays within the rows of one transaction.
func TestRowsAtTheCap(t *testing.T) {
	b, rows := counting(t)
	var batch string
	rows("unpack", func() { batch = b.submitJobs(fullest(), fullest(), fullest(), fullest(), fullest()) })
	id := ingest.JobID(batch, 1)
	for n := 2; n <= 5; n++ {
		b.tick()
		rows("force-fail", func() { b.forceFail(ingest.JobID(batch, n)) })
	}
	b.handle(queue.Message{Job: id, Exec: 1, State: string(ingest.Estimating)}, sized(10))
	rows("provision", b.tick)
	rows("fail", func() { b.handle(b.last(), fails(true)) })
	rows("requeue", func() { b.requeue(id) })
	rows("admit a requeued job", b.tick)
	m := b.last()
	b.handle(m, ok)
	m.State = string(ingest.Processing)
	rows("park", func() {
		b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
			return ingest.Result{Outcome: ingest.StepPark, Lock: "local#c#id000"}, nil
		})
	})
	rows("provision a parked job", b.tick)
	b.handle(b.last(), ok)
	rows("force-fail while storing", func() { b.forceFail(id) })
	rows("requeue to storing", func() { b.requeue(id) })
	rows("admit to storing", b.tick)
	m = b.last()
	b.handle(m, ok)
	m.State = string(ingest.Recording)
	rows("record", func() {
		b.handle(m, func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
			put, err := inventory.Store{Table: b.q.Table}.Prepare(ctx,
				inventory.Record{Versions: []inventory.Version{{Number: 1}},
					Object: inventory.Object{ARK: capArk, Collection: "c", LocalIDs: claim.Job.LocalIDs, HeadOf: 1}}, 1)
			claim.OnCommit(func(_ context.Context, tx *table.Tx) error { return put(tx) })
			return ingest.Result{Outcome: ingest.StepNext}, err
		})
	})
	m.State = string(ingest.Notify)
	rows("complete", func() { b.handle(m, ok) })
	if j := b.job(id); j.State != ingest.Completed {
		t.Errorf("the job is %s: %s", j.State, j.Message)
	}
	rows("requeue from the beginning", func() { b.requeue(ingest.JobID(batch, 2)) })
}

// TestFullChunk: as many jobs as fit make a batch in one transaction with all that this adds: the batch, its counts,
// its event, its mail, and what lists it, also under the message of a try that failed. Rows that cannot be ingested do,
// too; each is listed under its message.
func TestFullChunk(t *testing.T) {
	b, rows := counting(t)
	b.q.Compose = (&post{to: []string{"a@example.org"}}).compose
	for ids := range ingest.MaxLocalIDs + 2 {
		jobs := make([]ingest.Job, 60)
		for i := range jobs {
			jobs[i] = ingest.Job{Collection: "c", Submitter: "me", LocalIDs: many(ids)}
		}
		n := queue.Chunk(jobs)
		rows(fmt.Sprintf("%d jobs with %d local ids", n, ids), func() {
			in := ingest.Batch{Collection: "c", Submitter: "me", Mode: "add"}
			row, err := b.q.Submit(t.Context(), in, "", nil, "me")
			if err != nil {
				t.Fatal(err)
			}
			m := b.last()
			keep := b.handle(m, func(context.Context, *queue.Claim) (ingest.Result, error) {
				return ingest.Result{}, errors.New("the disk is full")
			})
			b.now = b.now.Add(keep)
			b.handle(m, unpackAll(jobs[:n]))
			if c, err := b.q.Counts(t.Context(), row.Batch.ID); err != nil || c.Sum() != int64(n) {
				t.Errorf("%d jobs with %d local ids: %+v, %v", n, ids, c, err)
			}
		})
	}
}

func TestSubmitRefusesBadIdentifiers(t *testing.T) {
	b := newBench(t)
	for name, in := range map[string]ingest.Batch{
		"too many local ids": {LocalIDs: many(ingest.MaxLocalIDs + 1)},
		"a bad local id":     {LocalIDs: []string{"a;b"}},
		"a bad primary":      {Primary: strings.Repeat("x", 1000)},
	} {
		if _, err := b.q.Submit(t.Context(), in, "", nil, "me"); !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	row, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c", LocalIDs: []string{" a ", "a"}}, "", nil, "me")
	if err != nil || len(row.LocalIDs) != 1 || row.LocalIDs[0] != "a" {
		t.Errorf("a double: %+v, %v", row, err)
	}
}

// TestTryThatCannotCommit: when the end of a step cannot be committed, the true reason is
// recorded, the lease is released, and the tries come to an end.
func TestTryThatCannotCommit(t *testing.T) {
	tooMany := func(_ context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.OnCommit(func(_ context.Context, tx *table.Tx) error {
			for i := range table.MaxActions {
				tx.Require(table.Key{PK: "x", SK: fmt.Sprint(i)}, "attribute_not_exists(pk)")
			}
			return nil
		})
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
	b := newBench(t)
	id := ingest.JobID(b.submit(1, ""), 1)
	b.tick()
	m := b.last()
	for range 10 {
		keep := b.handle(m, tooMany)
		if row, err := b.q.Job(t.Context(), id); err != nil || keep == 0 || !strings.Contains(row.Message, "rows") ||
			row.Holder != "" {
			t.Fatalf("after a try: kept %s, %+v, %v", keep, row, err)
		}
		b.now = b.now.Add(10 * time.Second) // far less than the lease
	}
	b.handle(m, tooMany)
	if j := b.job(id); j.State != ingest.Failed || !strings.Contains(j.Message, "rows") {
		t.Errorf("after all tries: %s %q", j.State, j.Message)
	}
	report := b.last()
	if keep := b.handle(report, tooMany); keep == 0 || keep > time.Minute {
		t.Errorf("the report is kept for %s", keep)
	}
	if row, err := b.q.Batch(t.Context(), report.Batch); err != nil || !strings.Contains(row.Message, "rows") ||
		row.Holder != "" {
		t.Errorf("the batch after a try: %+v, %v", row, err)
	}
}

// TestFailedCommitLeavesTheItem: if a chunk or a checkpoint cannot be written, the worker's
// item stays unchanged, so that it can be tried again or released.
func TestFailedCommitLeavesTheItem(t *testing.T) {
	b := newBench(t)
	if _, err := b.q.Submit(t.Context(), ingest.Batch{Collection: "c"}, "", nil, "me"); err != nil {
		t.Fatal(err)
	}
	stop := errors.New("the step gives up")
	b.handle(b.last(), func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		before := claim.Batch.Unpacked
		if err := claim.Unpack(ctx, make([]ingest.Job, 60), 60); !fault.Is(err, fault.Invalid) ||
			claim.Batch.Unpacked != before {
			t.Errorf("a chunk of 60 jobs: %v, %d unpacked", err, claim.Batch.Unpacked)
		}
		if err := claim.Unpack(ctx, make([]ingest.Job, 1), 1); err != nil {
			t.Errorf("after it a chunk of one: %v", err)
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	})
	b.tick()
	m := b.last()
	b.handle(m, func(ctx context.Context, claim *queue.Claim) (ingest.Result, error) {
		claim.Job.Checkpoint = "first"
		tooMany := func(tx *table.Tx) {
			for i := range table.MaxActions {
				tx.Require(table.Key{PK: "x", SK: fmt.Sprint(i)}, "attribute_not_exists(pk)")
			}
		}
		if err := claim.Checkpoint(ctx, tooMany); !fault.Is(err, fault.Invalid) {
			t.Errorf("a checkpoint of too many rows: %v", err)
		}
		claim.Job.Checkpoint = "second"
		if err := claim.Checkpoint(ctx); err != nil {
			t.Errorf("after it a checkpoint: %v", err)
		}
		return ingest.Result{}, stop
	})
	if j := b.job(m.Job); j.Checkpoint != "second" || j.Message != stop.Error() {
		t.Errorf("the job is %+v", j)
	}
}
