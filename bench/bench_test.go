package bench

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"testing"
	"time"

	"cirello.io/dynamolock/v2"
	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/schema"
	"archivist/pkg/kernel/table/tabletest"
)

func endpoint(b *testing.B) string {
	e := os.Getenv(tabletest.EndpointVariable)
	if e == "" {
		// No DynamoDB was named: the fake's times would mean nothing.
		b.Skip("measured on DynamoDB Local: make bench")
	}
	return e
}

// BenchmarkLease takes and releases one lease, ours and dynamolock's in turns on the
// same warm DynamoDB Local: ours in the system's table, dynamolock's in a table of its
// own, and in one with a stream and indexes as ours has.
func BenchmarkLease(b *testing.B) {
	at := endpoint(b)
	n := 0
	s := &lease.Store{Table: tabletest.Real(b, at), Now: time.Now, NewID: func() string { n++; return fmt.Sprint(n) }}
	own := func() error {
		l, err := s.Acquire(b.Context(), "bench", time.Minute)
		if err != nil {
			return err
		}
		return s.Release(b.Context(), l)
	}
	plain, alike := locks(b, at, false), locks(b, at, true)
	turns := []func() error{own, plain, alike}
	var took [3]time.Duration
	measured := 0
	for b.Loop() {
		for i, f := range turns {
			started := time.Now()
			if err := f(); err != nil {
				b.Fatal(err)
			}
			if measured >= 500 { // warm by then
				took[i] += time.Since(started)
			}
		}
		measured++
	}
	if measured > 500 {
		b.ReportMetric(float64(took[0].Microseconds())/float64(measured-500)/1000, "ours-ms")
		b.ReportMetric(float64(took[1])/float64(took[0]), "dynamolock/ours")
		b.ReportMetric(float64(took[2])/float64(took[0]), "dynamolock-alike/ours")
	}
}

// locks is dynamolock's take and release, in a table of their own.
func locks(b *testing.B, at string, alike bool) func() error {
	db := dynamodb.New(dynamodb.Options{Region: "us-east-1", BaseEndpoint: aws.String(at),
		Credentials: credentials.NewStaticCredentialsProvider("local", "local", "")})
	in := &dynamodb.CreateTableInput{TableName: aws.String(fmt.Sprint("locks-", time.Now().UnixNano())),
		BillingMode: types.BillingModePayPerRequest,
		AttributeDefinitions: []types.AttributeDefinition{{AttributeName: aws.String("key"),
			AttributeType: types.ScalarAttributeTypeS}},
		KeySchema: []types.KeySchemaElement{{AttributeName: aws.String("key"), KeyType: types.KeyTypeHash}}}
	if alike {
		in.StreamSpecification = &types.StreamSpecification{StreamEnabled: aws.Bool(true),
			StreamViewType: types.StreamViewTypeNewAndOldImages}
		for _, ix := range schema.Indexes {
			in.AttributeDefinitions = append(in.AttributeDefinitions,
				types.AttributeDefinition{AttributeName: aws.String(ix.PK), AttributeType: types.ScalarAttributeTypeS},
				types.AttributeDefinition{AttributeName: aws.String(ix.SK), AttributeType: types.ScalarAttributeTypeS})
			in.GlobalSecondaryIndexes = append(in.GlobalSecondaryIndexes,
				types.GlobalSecondaryIndex{IndexName: aws.String(ix.Name),
					Projection: &types.Projection{ProjectionType: types.ProjectionTypeAll},
					KeySchema: []types.KeySchemaElement{{AttributeName: aws.String(ix.PK), KeyType: types.KeyTypeHash},
						{AttributeName: aws.String(ix.SK), KeyType: types.KeyTypeRange}}})
		}
	}
	if _, err := db.CreateTable(b.Context(), in); err != nil {
		b.Fatal(err)
	}
	c, err := dynamolock.New(db, *in.TableName, dynamolock.WithLeaseDuration(time.Minute),
		dynamolock.DisableHeartbeat())
	if err != nil {
		b.Fatal(err)
	}
	return func() error {
		l, err := c.AcquireLockWithContext(b.Context(), "bench")
		if err != nil {
			return err
		}
		_, err = c.ReleaseLockWithContext(b.Context(), l)
		return err
	}
}

var waiting = flag.Int("waiting", 10_000, "jobs that wait in BenchmarkAdmission, beside 100 in another table")

// BenchmarkAdmission admits one job while many wait: the median must not grow with
// their number. The sizes take turns, each in a table of its own.
func BenchmarkAdmission(b *testing.B) {
	at := endpoint(b)
	sizes := []int{100, *waiting}
	took := make([][]time.Duration, len(sizes))
	var admit []func() (time.Duration, error)
	for _, n := range sizes {
		real := tabletest.Real(b, at)
		fill(b, real, n)
		m := queuetest.New(real, time.Now, 1)
		admit = append(admit, func() (time.Duration, error) {
			started := time.Now()
			err := m.Scheduler.Tick(b.Context(), false)
			took := time.Since(started)
			if err != nil || m.Transitions == 0 {
				return 0, fmt.Errorf("no job was admitted: %w", err)
			}
			_, err = queuetest.ForceFail(b.Context(), m.Queue, m.Last().Job, "measured",
				"bench") // its slot is free again
			return took, err
		})
	}
	rounds := 0
	for b.Loop() {
		for i := range sizes {
			t, err := admit[i]()
			if err != nil {
				b.Fatal(err)
			}
			if rounds >= 10 { // warm by then
				took[i] = append(took[i], t)
			}
		}
		rounds++
	}
	var p50 []float64
	for _, all := range took {
		if len(all) == 0 {
			return
		}
		slices.Sort(all)
		p50 = append(p50, float64(all[len(all)/2].Microseconds())/1000)
	}
	for i, n := range sizes {
		b.ReportMetric(p50[i], fmt.Sprintf("p50-ms-of-%d", n))
		b.ReportMetric(p50[i]/p50[0], fmt.Sprintf("ratio-of-%d", n))
	}
}

// fill writes waiting jobs as a batch would.
func fill(b *testing.B, t *table.Table, n int) {
	rules := ingest.Rules{Timing: ingest.Timings["production"]}
	type row struct {
		table.Head
		Version int64 `dynamo:"version"`
		ingest.Job
	}
	count := &struct {
		table.Head
		ingest.Counts
	}{Head: table.Head{PK: "BATCH#b", SK: "COUNT", Rev: 1, TxID: "x"}, Counts: ingest.Counts{Processing: int64(n)}}
	rows := []any{count}
	for i := range n {
		j := rules.New(ingest.Job{ID: fmt.Sprintf("b-%06d", i), Batch: "b", Row: i, Collection: "bench",
			Priority: i % 90, SizeKnown: true}, time.UnixMilli(int64(i)))
		r := &row{Head: table.Head{PK: "JOB#" + j.ID, SK: "JOB", Rev: 1, TxID: "x"}, Version: 1, Job: j}
		r.Head.WorkPK, r.Head.WorkSK = j.WorkKey()
		rows = append(rows, r)
	}
	for chunk := range slices.Chunk(rows, 500) {
		if _, err := t.Rows.Batch("pk", "sk").Write().Put(chunk...).Run(context.Background()); err != nil {
			b.Fatal(err)
		}
	}
}

// manifestOf streams a manifest of n rows.
func manifestOf(n int) io.Reader {
	r, w := io.Pipe()
	go func() {
		io.WriteString(w, `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-single-file-batch-manifest
#%prefix | a | b
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName
`)
		for i := range n {
			fmt.Fprintf(w, "https://example.org/files/%d.tif | sha256 | %064x | %d | 2026-11-21 | %d.tif\n", i, i, i, i)
		}
		io.WriteString(w, "#%eof\n")
		w.Close()
	}()
	return r
}

// BenchmarkManifest parses a million rows; memory must not grow with them.
func BenchmarkManifest(b *testing.B) {
	const rows = 1_000_000
	for b.Loop() {
		var before, now runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		most := uint64(0)
		m, problems, err := checkm.Read(manifestOf(rows), checkm.Options{}, func(r checkm.Row) error {
			if r.Line%100_000 == 0 {
				runtime.GC()
				runtime.ReadMemStats(&now)
				most = max(most, now.HeapAlloc)
			}
			return nil
		})
		if err != nil || m.Rows != rows || len(problems) > 0 {
			b.Fatalf("%d rows, %v, %v", m.Rows, problems, err)
		}
		b.ReportMetric(float64(most-min(most, before.HeapAlloc))/(1<<20), "live-MiB")
	}
	b.ReportMetric(float64(b.N)*rows/b.Elapsed().Seconds(), "rows/s")
}
