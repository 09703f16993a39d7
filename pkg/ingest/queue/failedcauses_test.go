package queue_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// TestCausesOfFailedBatch: the explanation of a failed batch groups its failed jobs by their causes, whatever
// addresses, names and numbers these contain; the most frequent cause comes first.
func TestCausesOfFailedBatch(t *testing.T) {
	b := newTwinBench(t)
	batch := b.submit(120, "")
	for n := range 120 {
		cause := fmt.Sprintf("http://x.org/%d answered 404 Not Found. Correct the source, then requeue the job", n)
		switch {
		case n == 3:
			continue
		case n == 0:
			cause = `the file "a b.txt" is larger than 5 bytes`
		case n == 118:
			cause = "its digest is wrong"
		case n == 119:
			cause = "its manifest is missing"
		}
		b.edit(ingest.JobID(batch, n+1), func(row *queue.Job) {
			row.Job = b.q.Rules.Failed(row.Job, cause, true, b.now)
		})
	}
	b.editBatch(batch, func(row *queue.Batch) { row.State = ingest.BatchFailed })
	first := ingest.JobID(batch, 2)
	b.count(first, map[string]int64{"n_processing": -120, "n_failed": 119, "n_completed": 1})
	x, err := b.q.ExplainBatch(t.Context(), batch)
	want := []string{
		"cause: 116 × http://x.org/1 answered 404",
		"requeue the job (first: " + first + ")\ncause: 1 × the file",
		"\ncause: 1 × its digest is wrong (first: " + ingest.JobID(batch, 119) + ")\n",
		"archivist job requeue --batch " + batch + " --all-failed",
	}
	for _, text := range want {
		if err != nil || !strings.Contains(said(x), text) {
			t.Errorf("%q is not in %q, %v", text, said(x), err)
		}
	}
}

// TestFailuresAreBounded: of the jobs that have failed recently, the newest hundred are counted, and the causes are
// theirs; that there are more is said.
func TestFailuresAreBounded(t *testing.T) {
	b := newTwinBench(t)
	batch := b.submit(150, "")
	began := b.now
	for n := range 150 {
		b.now = began.Add(time.Duration(n) * time.Second)
		cause := "an old cause"
		if n >= 50 {
			cause = "a new cause"
		}
		b.edit(ingest.JobID(batch, n+1), func(row *queue.Job) {
			row.Job = b.q.Rules.Failed(row.Job, cause, true, b.now)
		})
	}
	for _, c := range []struct {
		since  time.Time
		jobs   int
		more   bool
		causes string
	}{
		{began, 100, true, "100 a new cause"},
		{began.Add(50 * time.Second), 100, false, "100 a new cause"},
		{began.Add(147 * time.Second), 3, false, "3 a new cause"},
		{b.now.Add(time.Second), 0, false, ""},
	} {
		causes, jobs, more, err := b.q.Failures(t.Context(), c.since)
		var says []string
		for _, c := range causes {
			says = append(says, fmt.Sprint(c.Jobs, " ", c.First.Message))
		}
		if err != nil || jobs != c.jobs || more != c.more || strings.Join(says, ", ") != c.causes {
			t.Errorf("since %s: %d jobs, more: %v, %q, %v", c.since, jobs, more, says, err)
		}
	}
}

// readTable counts the requests and the rows of a table that are read.
type readTable struct {
	*tabletest.Fake
	calls, rows int
}

func (r *readTable) Query(ctx context.Context, in *dynamodb.QueryInput,
	how ...func(*dynamodb.Options)) (*dynamodb.QueryOutput, error) {
	out, err := r.Fake.Query(ctx, in, how...)
	if err == nil {
		r.calls, r.rows = r.calls+1, r.rows+len(out.Items)
	}
	return out, err
}

func (r *readTable) BatchGetItem(ctx context.Context, in *dynamodb.BatchGetItemInput,
	how ...func(*dynamodb.Options)) (*dynamodb.BatchGetItemOutput, error) {
	r.calls++
	return r.Fake.BatchGetItem(ctx, in, how...)
}

// failsAll fails jobs of a new batch, a second apart, with or without work files.
func (b *bench) failsAll(n int, files bool) (ids []string) {
	b.Helper()
	batch := b.submit(n, "")
	for i := range n {
		b.now = b.now.Add(time.Second)
		ids = append(ids, b.edit(ingest.JobID(batch, i+1), func(row *queue.Job) {
			row.HasSpace = files
			row.Job = b.q.Rules.Failed(row.Job, "a cause", true, b.now)
		}))
	}
	return ids
}

// TestFailuresCostTheSame: to count what has failed lately costs the same, whatever has failed before, with or without
// work files, and whatever is to be removed. What has failed lately is found with it.
func TestFailuresCostTheSame(t *testing.T) {
	read := &readTable{Fake: tabletest.New()}
	b := newBenchOn(t, tabletest.Table(read))
	b.q.Rules.FailedRetention = 30 * 24 * time.Hour
	for range 3 {
		b.failsAll(150, true)
		b.failsAll(150, false)
		b.now = b.now.Add(24 * time.Hour)
	}
	for i := range 150 { // rows of batches, of which some are due on the days of the failed jobs
		at := table.Head{PK: fmt.Sprint("BATCH#old", i), SK: "BATCH", WorkPK: ingest.WorkCleanUp}
		at.WorkSK = ingest.DueSK(b.now.AddDate(0, 0, i).UnixMilli()) + "#batch:old"
		tx := b.q.Table.Begin(b.q.NewID())
		tx.Insert(&struct{ table.Head }{at})
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	since := b.now
	count := func(jobs int, more bool, calls, rows int) {
		t.Helper()
		read.calls, read.rows = 0, 0
		_, n, isMore, err := b.q.Failures(t.Context(), since)
		if err != nil || n != jobs || isMore != more || read.calls > calls || read.rows > rows {
			t.Errorf("%d jobs, more: %v, %v, in %d calls of %d rows; expected %d, %v, at most %d, %d", n, isMore, err,
				read.calls, read.rows, jobs, more, calls, rows)
		}
	}
	count(0, false, 2, 3)
	b.failsAll(40, true)
	b.failsAll(2, false)
	count(42, false, 3, 45)
	b.failsAll(300, true)
	count(100, true, 3, 104)
}

// TestFailedBeside: jobs that failed before a time are counted in a few calls, by the lists of all
// collections; until these are whole, those without work files.
func TestFailedBeside(t *testing.T) {
	read := &readTable{Fake: tabletest.New()}
	b := newBenchOn(t, tabletest.Table(read))
	b.q.Names = &queue.Names{}
	b.tick()
	ids := slices.Concat(b.failsAll(5, false), b.failsAll(7, true))
	since := b.now.Add(time.Second)
	for _, id := range append(ids, b.failsAll(3, false)...) {
		b.forgets(id)
		j := b.job(id)
		tx := b.q.Table.Begin(b.q.NewID())
		tx.Follow(id, nil, queue.Listed(&j))
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	want := func(most, n int, more, all bool, calls int) {
		t.Helper()
		read.calls = 0
		got, isMore, isAll, err := b.q.FailedBeside(t.Context(), 3, since, most)
		if err != nil || got != n || isMore != more || isAll != all || read.calls > calls {
			t.Errorf("%d, more: %v, all: %v, %v, in %d calls; expected %d, %v, %v, at most %d", got,
				isMore, isAll, err, read.calls, n, more, all, calls)
		}
	}
	want(100, 12, false, true, 5)
	want(10, 7, true, true, 8)
	b.notWhole()
	want(100, 5, false, false, 2)
	want(4, 4, true, false, 2)
}
