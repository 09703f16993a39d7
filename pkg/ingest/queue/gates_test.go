package queue_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/aws/smithy-go"
	"github.com/guregu/dynamo/v2"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// overfill gives a job more identifiers than one transaction can lock, as rows of an earlier
// release may have.
func (b *bench) overfill(id string, n int) {
	b.Helper()
	row, err := b.q.Job(b.Context(), id)
	if err != nil {
		b.Fatal(err)
	}
	for i, name := range many(n) {
		row.LocalIDs = append(row.LocalIDs, name)
		tx := b.q.Table.Begin(b.q.NewID())
		line := table.Key{PK: queue.LockKey(row.LockKeys()[i]).PK, SK: "WAITS#" + id}
		tx.Insert(&queue.Reservation{Head: table.Head{PK: line.PK, SK: line.SK}, Owner: id})
		if err := tx.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
	row.Created = 0 // it is in no list: else the transaction in which it fails would have more rows than that of a gate
	tx := b.q.Table.Begin(b.q.NewID())
	tx.Save(row)
	if err := tx.Commit(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// TestOneJobsErrorAtTheGate: a job that can never pass a gate fails with the reason, or at
// least does not block the others.
func TestOneJobsErrorAtTheGate(t *testing.T) {
	for ids, want := range map[int]ingest.State{
		95:  ingest.Failed,       // too many for the locks, few enough to leave their lines
		120: ingest.Provisioning, // too many for any transaction
	} {
		b := newBench(t)
		b.q.Settings.MaxInFlight = 10
		bad := ingest.JobID(b.submit(1, ""), 1)
		b.tick()
		b.handle(b.last(), sized(1))
		b.overfill(bad, ids)
		good := ingest.JobID(b.submit(1, ""), 1)
		b.tick()
		if j := b.job(bad); j.State != want || want == ingest.Failed && !strings.Contains(j.Message, "rows") {
			t.Errorf("%d ids: %s %q, want %s", ids, j.State, j.Message, want)
		}
		if j := b.job(good); j.State != ingest.Estimating || b.metrics["GateErrors"] == 0 {
			t.Errorf("%d ids: the other job is %s; counted %v", ids, j.State, b.metrics)
		}
	}
}

// refusing refuses to read one row.
type refusing struct {
	dynamodbiface.DynamoDBAPI
	pk string
}

func (r refusing) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if pk, is := in.Key["pk"].(*types.AttributeValueMemberS); is && pk.Value == r.pk {
		return nil, &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}
	}
	return r.DynamoDBAPI.GetItem(ctx, in, o...)
}

// TestUnreadableJobLetsOthersPass: a job whose row cannot be read does not block others, at
// the gates and in the sweep.
func TestUnreadableJobLetsOthersPass(t *testing.T) {
	b := newBench(t)
	b.q.Settings.MaxInFlight = 10
	batch := b.submit(2, "")
	whole := b.q.Table
	b.q.Table = table.New(dynamo.NewFromIface(refusing{whole.DB.Client(), "JOB#" + ingest.JobID(batch, 1)}),
		whole.Rows.Name())
	b.tick()
	if j := b.job(ingest.JobID(batch, 2)); j.State != ingest.Estimating {
		t.Errorf("the other job is %s", j.State)
	}
	b.q.Table = whole
	b.tick()
	if j := b.job(ingest.JobID(batch, 1)); j.State != ingest.Estimating {
		t.Errorf("the job that can be read again is %s", j.State)
	}
	b.q.Table = table.New(dynamo.NewFromIface(refusing{whole.DB.Client(), "JOB#" + ingest.JobID(batch, 1)}),
		whole.Rows.Name())
	b.now = b.now.Add(time.Hour)
	b.tick()
	if j := b.job(ingest.JobID(batch, 2)); j.Exec != 2 || b.metrics["RepairErrors"] == 0 {
		t.Errorf("the other job has execution %d; counted %v", j.Exec, b.metrics)
	}
}

// losing loses the answer of each transaction that grants a slot, and refuses reads, until it is told to stop: then
// nobody can tell whether the grant was committed.
type losing struct {
	dynamodbiface.DynamoDBAPI
	over func() bool
	lost bool
}

var errLost = &smithy.GenericAPIError{Code: "InternalServerError", Message: "the answer was lost"}

func (l *losing) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := l.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
	for _, w := range in.TransactItems {
		if w.Put == nil || l.over() {
			continue
		}
		if pk, is := w.Put.Item["pk"].(*types.AttributeValueMemberS); is && pk.Value == "SLOT" {
			l.lost = true
			return nil, errLost
		}
	}
	return out, err
}

func (l *losing) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	if l.lost && !l.over() {
		return nil, errLost
	}
	return l.DynamoDBAPI.GetItem(ctx, in, o...)
}

// TestLostGrant: a slot whose grant has no answer counts as taken for the rest of the tick.
func TestLostGrant(t *testing.T) {
	b := newTwinBench(t)
	b.q.Settings.MaxInFlight = 1
	batch := b.submit(2, "")
	whole := b.q.Table
	b.q.Table = tabletest.Table(&losing{DynamoDBAPI: whole.DB.Client(),
		over: func() bool { return b.metrics["GateErrors"] > 0 }})
	b.q.Table.Wait = func(context.Context, time.Duration) error { return nil }
	b.tick()
	b.q.Table = whole
	if b.metrics["GateErrors"] != 1 {
		t.Fatalf("the answer was not lost: %v", b.metrics)
	}
	if got := b.running(batch); len(got) != 1 {
		t.Errorf("with one slot, %v are running", got)
	}
}
