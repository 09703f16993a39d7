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
		96:  ingest.Failed,       // too many for the locks, few enough to leave their lines
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
