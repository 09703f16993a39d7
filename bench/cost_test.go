// Package bench measures what the system costs and how fast it is.
//
// Absolute times mean nothing on shared machines. So a cost is counted calls times a dated
// price, and CI fails if a count rises; a speed is the ratio to another program in the same
// run. make bench measures everything, and RESULTS.md keeps the results:
//
//	go test ./bench -run 'TestCost|TestIdleCost' -v
package bench

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/kernel/table/tabletest"
)

// meter counts what AWS would bill. Units are DynamoDB's: a write unit is 1 KB,
// in a transaction two; a consistent read unit is 4 KB.
type meter struct {
	dynamodbiface.DynamoDBAPI
	calls, reads, writes float64
}

func kb(n int) float64 { return float64((n + 1023) / 1024) }

// indexed is what a row costs in the indexes, in addition to itself: one write for each
// index that it is in, and about one more when it moves, which a put cannot see.
func indexed(it map[string]types.AttributeValue) (n float64) {
	for _, ix := range schema.Indexes {
		if it[ix.PK] != nil {
			n += 1.5
		}
	}
	return n
}

func size(it map[string]types.AttributeValue) (n int) {
	for name, v := range it {
		n += len(name)
		switch x := v.(type) {
		case *types.AttributeValueMemberS:
			n += len(x.Value)
		case *types.AttributeValueMemberN:
			n += len(x.Value)/2 + 1
		case *types.AttributeValueMemberB:
			n += len(x.Value)
		default:
			n += 20
		}
	}
	return n
}

func (m *meter) GetItem(ctx context.Context, in *dynamodb.GetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.GetItemOutput, error) {
	m.calls++
	out, err := m.DynamoDBAPI.GetItem(ctx, in, o...)
	if out != nil {
		m.reads += tabletest.ReadUnits(in, out)
	}
	return out, err
}

func (m *meter) Query(ctx context.Context, in *dynamodb.QueryInput,
	o ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	m.calls++
	out, err := m.DynamoDBAPI.Query(ctx, in, o...)
	if out != nil {
		m.reads += tabletest.ReadUnits(in, out)
	}
	return out, err
}

func (m *meter) PutItem(ctx context.Context, in *dynamodb.PutItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.PutItemOutput, error) {
	m.calls++
	m.writes += kb(size(in.Item)) + indexed(in.Item)
	return m.DynamoDBAPI.PutItem(ctx, in, o...)
}

func (m *meter) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	m.calls++
	for _, w := range in.TransactItems {
		m.writes += 2
		if w.Put != nil {
			m.writes += 2*(kb(size(w.Put.Item))-1) + indexed(w.Put.Item)
		}
		if w.Update != nil && strings.Contains(*w.Update.UpdateExpression, "REMOVE") {
			m.writes++ // it leaves an index
		}
	}
	return m.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
}

func (m *meter) UpdateItem(ctx context.Context, in *dynamodb.UpdateItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.UpdateItemOutput, error) {
	m.calls++
	m.writes++
	return m.DynamoDBAPI.UpdateItem(ctx, in, o...)
}

func (m *meter) DeleteItem(ctx context.Context, in *dynamodb.DeleteItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.DeleteItemOutput, error) {
	m.calls++
	m.writes++
	return m.DynamoDBAPI.DeleteItem(ctx, in, o...)
}

func (m *meter) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	o ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	m.calls++
	out, err := m.DynamoDBAPI.BatchGetItem(ctx, in, o...)
	if out != nil {
		m.reads += tabletest.ReadUnits(in, out)
	}
	return out, err
}

// newMachine is the service on a table whose calls are counted.
func newMachine(slots int) (*queuetest.Machine, *meter) {
	m := &meter{DynamoDBAPI: tabletest.New()}
	return queuetest.New(tabletest.Table(m), time.Now, slots), m
}

// unpacks makes jobs, as they are in a batch manifest of usual length; the other
// stages have nothing to do.
func unpacks(jobs int) func(ingest.Stage) queue.Step {
	all := make([]ingest.Job, jobs)
	for i := range all {
		all[i] = ingest.Job{Collection: "bench", Submitter: "somebody", Mode: "add",
			LocalIDs: []string{fmt.Sprint("local-", i)}, SizeKnown: true,
			Payload: ingest.Payload{URL: "https://example.org/some/path/of/usual/length/manifest.checkm",
				Type: "object-manifest", Algorithm: "sha256", Digest: fmt.Sprintf("%064d", i)},
			Metadata: ingest.Metadata{Who: "An author", What: "A title of usual length", When: "2026"}}
	}
	return func(stage ingest.Stage) queue.Step {
		return func(ctx context.Context, h *queue.Claim) (ingest.Result, error) {
			for stage.Name == "unpack" && h.Batch.Unpacked < jobs {
				left := all[h.Batch.Unpacked:]
				if err := h.Unpack(ctx, left[:queue.Chunk(left)], jobs); err != nil {
					return ingest.Result{}, err
				}
			}
			return ingest.Result{Outcome: ingest.StepNext}, nil
		}
	}
}

// Prices in US$ (us-east-1, 2026-11-22). Events of AWS services and rules on a schedule
// are free ("Amazon EventBridge pricing"), and so are S3's own encryption keys.
const (
	perWrite      = 0.625e-6
	perRead       = 0.125e-6
	perTransition = 25e-6
	perSQS        = 0.40e-6
	perLambda     = 0.20e-6
	perGBs        = 0.0000133334
	perS3Write    = 5e-6 // PUT, COPY, POST, LIST
	perS3Read     = 0.40e-6
	perLogged     = 0.50 / (1 << 30) // a byte, CloudWatch Logs
	perTrace      = 5e-6             // beyond the first 100,000 a month
	perRequest    = 3.50e-6          // of the API, REST
	perMail       = 0.10e-3
	perMetricPut  = 10e-6
)

// charge is one line of a bill.
type charge struct {
	name         string
	count, price float64
	most         float64 // limit of the count; 0 = none
}

// bill prints the sum of charges, and fails if a count is over its limit.
func bill(t *testing.T, what string, charges []charge) (sum float64) {
	t.Helper()
	for _, c := range charges {
		sum += c.count * c.price
		t.Logf("%-26s %9.0f per 1,000  US$ %.4f", c.name, c.count, c.count*c.price)
		if c.most > 0 && c.count > c.most {
			t.Errorf("%s: %.0f per 1,000, at most %.0f are said in bench/RESULTS.md", c.name, c.count, c.most)
		}
	}
	t.Logf("%-26s %9s            US$ %.4f", what, "", sum)
	return sum
}

// logged is how many bytes a function writes to its log for a message that it
// handled: its own line (see boot), and Lambda's START, END and REPORT lines
// ("Lambda log formats": text).
func logged() float64 {
	const lambdas = 350
	var line bytes.Buffer
	slog.New(slog.NewJSONHandler(&line, nil)).With("stage", "estimate", "job",
		ingest.JobID("01M7ZBMEYHBB62YP6R00000001", 1), "batch", "", "exec", 1,
		"state", "Estimating").Info("handled", "ms", 123)
	return float64(line.Len() + lambdas)
}

// TestCost: a thousand jobs cost what bench/RESULTS.md says: at most 0.40 US$ for their
// orchestration; storage requests, logs and metrics apart. A rise needs a reason there.
func TestCost(t *testing.T) {
	const jobs = 100
	m, count := newMachine(50)
	m.Step = unpacks(jobs)
	var unusual countedLog
	metrics := 0.0
	m.Queue.Log, m.Queue.Metric = slog.New(slog.NewJSONHandler(&unusual, nil)), func(string, float64) { metrics++ }
	ctx := t.Context()
	if _, err := m.Queue.Submit(ctx, ingest.Batch{Collection: "bench"}, "", nil, "me"); err != nil {
		t.Fatal(err)
	}
	if err := m.Run(ctx, 40); err != nil {
		t.Fatal(err)
	}
	c, err := m.Queue.Counts(ctx, "01M7ZBMEYHBB62YP6R00000001")
	if err != nil || c.Completed != jobs {
		t.Fatalf("%+v, %v", c, err)
	}
	per := func(n float64) float64 { return n * 1000 / jobs }
	const seconds, gb = 0.15, 0.5             // of one orchestration step, without its content
	sum := bill(t, "orchestration", []charge{ // limits: counted on 2026-11-22, with a little room
		{"state transitions", per(m.Transitions), perTransition, 10_200},
		{"DynamoDB write units", per(count.writes), perWrite, 184_000},
		{"DynamoDB read units", per(count.reads), perRead, 16_300},
		{"SQS requests", per(m.SQS), perSQS, 28_500},
		{"Lambda requests", per(m.Lambda), perLambda, 6_100},
		{"Lambda GB-seconds", per(m.Lambda) * seconds * gb, perGBs, 460},
	})
	if sum > 0.40 {
		t.Errorf("orchestration costs US$ %.4f per 1,000 jobs; the goal is 0.40", sum)
	}
	storage := bill(t, "storage requests", []charge{ // TestStorageRequests holds them; the report is the batch's
		{"S3 PUT, COPY, POST, LIST", 1000*fileWrites + per(reportWrites), perS3Write, 0},
		{"S3 GET, HEAD", 1000 * (fileReads + reportReads), perS3Read, 0},
	})
	const looks, mails = 20, 2 // requests and mails of a batch
	watch := bill(t, "what watches", []charge{
		{"bytes logged", per(m.Lambda*logged() + float64(unusual)), perLogged, 4_200_000},
		{"X-Ray traces, if all are", per(m.Executions + looks), perTrace, 2_300},
		{"API requests", per(looks), perRequest, 0},
		{"mails", per(mails), perMail, 0},
		{"metrics put, at most", per(metrics), perMetricPut, 200},
	})
	t.Logf("%.0f calls of DynamoDB; US$ %.4f in all", per(count.calls), sum+storage+watch)
}

// countedLog counts the bytes of a log.
type countedLog float64

func (l *countedLog) Write(p []byte) (int, error) {
	*l += countedLog(len(p))
	return len(p), nil
}

// TestIdleCost: a system that nobody uses costs what bench/RESULTS.md says, at most
// 5 US$ a month, storage apart. The scheduler's calls are counted; the other numbers
// follow from the template, and a test of infra compares both.
func TestIdleCost(t *testing.T) {
	m, count := newMachine(50)
	if err := m.Scheduler.Tick(t.Context(), true); err != nil { // the first makes the lease's row
		t.Fatal(err)
	}
	*count = meter{DynamoDBAPI: count.DynamoDBAPI}
	put := 0.0
	m.Queue.Metric = func(string, float64) { put++ }
	if err := m.Scheduler.Tick(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := m.Queue.Measure(t.Context()); err != nil {
		t.Fatal(err)
	}
	if put > 0 { // one that is put each minute costs 0.73 US$ a month
		t.Errorf("an idle tick puts %.0f metrics", put)
	}
	queues := float64(len(ingest.Stages) + 1)
	const (
		ticks    = 60 * 24 * 30.0
		pollers  = 5.0    // Lambda's long polls at once of an idle queue
		perPoll  = 20.0   // seconds
		alarms   = 25.0   // each on one metric
		perAlarm = 0.10   // US$ a month
		free     = 1.0e6  // SQS requests a month
		seconds  = 0.2    // of a tick
		gb       = 0.5    // of the scheduler
		logged   = 0.5e-6 // GB that Lambda itself logs of a tick: START, END, REPORT
		perLog   = 0.50   // US$ per GB ingested
		keyUses  = 12.0   // an hour: DynamoDB asks for the table's AWS-managed key every five minutes
		perKey   = 3e-6   // US$
	)
	relay := map[int]meter{0: idleEvents(t, 0), shippedConsumers: idleEvents(t, shippedConsumers)}
	const relayGB, relaySeconds = 0.25, 0.1
	sum := 0.0
	for _, p := range []struct {
		name  string
		count float64
		price float64
	}{
		{"relay: Lambda requests", ticks, perLambda},
		{"relay: Lambda GB-seconds", ticks * relaySeconds * relayGB, perGBs},
		{"relay: DynamoDB read units, no consumer", relay[0].reads * ticks, perRead},
		{"relay: read units of those that ship",
			(relay[shippedConsumers].reads - relay[0].reads) * ticks, perRead},
		{"relay: DynamoDB write units", relay[shippedConsumers].writes * ticks, perWrite},
		{"relay: GB of logs", ticks * logged, perLog},
		{"SQS long polls beyond the free ones", queues*pollers*ticks*60/perPoll - free, perSQS},
		{"alarms", alarms, perAlarm},
		{"Lambda requests", ticks, perLambda},
		{"Lambda GB-seconds", ticks * seconds * gb, perGBs},
		{"DynamoDB write units", count.writes * ticks, perWrite},
		{"DynamoDB read units", count.reads * ticks, perRead},
		{"GB of logs", ticks * logged, perLog},
		{"uses of the table's key", keyUses * ticks / 60, perKey},
	} {
		sum += p.count * p.price
		t.Logf("%-40s %11.2f a month  US$ %.3f", p.name, p.count, p.count*p.price)
	}
	t.Logf("%-36s %11s          US$ %.2f", "sum", "", sum)
	if sum > 5 {
		t.Errorf("idling costs US$ %.2f a month; the goal is 5", sum)
	}
	t.Logf("a project of research in addition: US$ %.2f", idleResearch(t, ticks, pollers*ticks*60/perPoll))
	t.Logf("the revision queue, with an archive, in addition: US$ %.2f", idleRevisions(t, ticks))
	moreConsumers(t, relay[0], relay[shippedConsumers], ticks)
}

// moreConsumers says what 20 more consumers cost. A tick of the relay writes one row, with what it has counted of all.
func moreConsumers(t *testing.T, none, shipped meter, ticks float64) {
	more := idleEvents(t, shippedConsumers+20)
	t.Logf("20 more consumers: US$ %.2f", (more.reads-shipped.reads)*ticks*perRead+
		(more.writes-shipped.writes)*ticks*perWrite)
	if more.writes > 2 || shipped.writes > 1 || none.writes > 0 {
		t.Errorf("an idle tick of the relay writes: %+v, %+v, with more consumers %+v", none, shipped, more)
	}
}
