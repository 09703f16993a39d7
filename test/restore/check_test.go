package restore

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
)

// jobs are the rows of all jobs.
func (w *world) jobs() (jobs []queue.Job) {
	for _, item := range w.rows.All() {
		if k := keyOf(item); k.SK == "JOB" {
			var j queue.Job
			if err := dynamo.UnmarshalItem(item, &j); err != nil {
				w.Fatal(err)
			}
			jobs = append(jobs, j)
		}
	}
	return jobs
}

// unfinished are the jobs and batches that have not ended.
func (w *world) unfinished() (out []string) {
	for _, item := range w.rows.All() {
		job, batch := ingest.State(text(item, "job_state")), ingest.BatchState(text(item, "batch_state"))
		switch k := keyOf(item); {
		case k.SK == "JOB" && job.Open(),
			k.SK == "BATCH" && batch != ingest.BatchCompleted && batch != ingest.BatchFailed:
			out = append(out, fmt.Sprintf("%s is %s%s: %s", k, job, batch, text(item, "message")))
		}
	}
	return out
}

// rest runs until all work has ended, within a few hours. Jobs whose work files are gone,
// and failed jobs that are preserved, are requeued.
func (w *world) rest() {
	w.Helper()
	for range 4 * 60 {
		for _, j := range w.jobs() {
			if j.State == ingest.Failed &&
				(strings.HasPrefix(j.Message, "its work files are gone") || j.ObjectVersion > 0) {
				if _, err := queuetest.Requeue(w.Context(), w.m.Queue, j.Job.ID, "as its message says",
					"me"); err != nil {
					w.Fatal(err)
				}
			}
		}
		w.now = w.now.Add(time.Minute)
		if err := w.m.Run(w.Context(), 1); err != nil {
			w.Fatal(err)
		}
		if len(w.unfinished()) == 0 {
			return
		}
	}
	w.Fatalf("these do not end: %q", w.unfinished())
}

// check compares the table with the storage, and both with what was stored before the
// restore.
func (w *world) check(before map[string]place, ends map[string]int) {
	w.Helper()
	after := w.stored()
	for job, at := range before {
		if after[job] != at {
			w.Errorf("job %s was stored as %+v, is as %+v", job, at, after[job])
		}
	}
	for _, j := range w.jobs() {
		at, stored := after[j.Job.ID]
		_, prev := before[j.Job.ID]
		ends[fmt.Sprintf("%s, stored before: %v", j.State, prev)]++
		switch {
		case j.State == ingest.Completed && j.NoChange && !stored:
		case j.State == ingest.Completed && stored && at == (place{j.Primary, j.ObjectVersion}):
		default:
			w.Errorf("job %s is %s as %s v%d, stored as %+v: %s", j.Job.ID, j.State, j.Primary, j.ObjectVersion,
				at, j.Message)
		}
	}
	arks := map[string]int{}
	for _, at := range after {
		arks[at.ark] = max(arks[at.ark], at.version)
	}
	for ark, head := range arks {
		o, err := w.s.Inventory.Object(w.Context(), ark)
		if err != nil || o.HeadOf != head {
			w.Errorf("%s has %d versions, its row says %+v, %v", ark, head, o, err)
		}
	}
	w.invariants("SLOT", "SPACE", "LOCK#", "MAIL#")
}

// invariants checks the state after all work has ended: the counts of batches are those of
// their jobs, each change of a job has its event, and no slot, space or lock is held. none
// are kinds of rows that must not be there.
func (w *world) invariants(none ...string) {
	w.Helper()
	counted := map[string]ingest.Counts{}
	for _, j := range w.jobs() {
		c := counted[j.Batch]
		switch j.State.Class() {
		case ingest.ClassCompleted:
			c.Completed++
		case ingest.ClassFailed:
			c.Failed++
		default:
			w.Errorf("job %s is %s", j.Job.ID, j.State)
		}
		c.Add(j.Amounts())
		counted[j.Batch] = c
		w.history(event.Subject{Type: event.Job, ID: j.Job.ID}, j.Version)
	}
	for batch, want := range counted {
		if !w.weighed(batch) {
			want.Amounts = ingest.Amounts{}
		}
		if got, err := w.m.Queue.Counts(w.Context(), batch); err != nil || got != want {
			w.Errorf("batch %s counts %+v, its jobs are %+v, %v", batch, got, want, err)
		}
	}
	for _, item := range w.rows.All() {
		for _, kind := range none {
			if strings.HasPrefix(keyOf(item).PK, kind) {
				w.Errorf("at rest there is a row %s", keyOf(item))
			}
		}
	}
}

// weighed reports whether the counts of a batch have the amounts of all of its jobs: those of an
// earlier release do not.
func (w *world) weighed(batch string) bool {
	w.Helper()
	var row queue.Counts
	err := w.m.Queue.Table.Get(w.Context(), table.Key{PK: "BATCH#" + batch, SK: "COUNT"}, &row)
	if err != nil {
		w.Error(err)
	}
	return row.Weighed
}

// history fails unless a subject has one event of each version.
func (w *world) history(s event.Subject, versions int64) {
	w.Helper()
	next := int64(1)
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := w.m.Queue.Events(w.Context(), s, cursor)
		if err != nil {
			w.Fatal(err)
		}
		for _, e := range page.Items {
			if _, err := e.Envelope(); err != nil || e.Version != next {
				w.Errorf("event %d of %s is %+v, %v", next, s.ID, e, err)
			}
			next++
		}
		cursor = page.Cursor
	}
	if next-1 != versions {
		w.Errorf("%s is at version %d and has %d events", s.ID, versions, next-1)
	}
}

// works submits to each object by its local id, and one new object.
func (w *world) works() {
	w.Helper()
	known := map[string]int{}
	for n := range 3 {
		id := fmt.Sprintf("id %d", n)
		ark, err := w.s.Inventory.ByLocalID(w.Context(), "maps", id)
		if err != nil {
			w.Fatal(err)
		}
		if ark != "" {
			o, err := w.s.Inventory.Object(w.Context(), ark)
			if err != nil {
				w.Fatal(err)
			}
			known[ark] = o.HeadOf
		}
		w.expect(ark, known[ark]+1, id)
	}
	w.expect("", 1)
}

// expect submits new content, and fails unless it becomes that version; ark "" is a new object.
func (w *world) expect(ark string, version int, ids ...string) {
	w.Helper()
	w.made++
	b, err := w.m.Queue.Submit(w.Context(), ingest.Batch{Collection: "maps", Mode: "add", LocalIDs: ids,
		Payload: ingest.Payload{URL: fmt.Sprintf("http://127.0.0.1/%d.txt", w.made), Type: ingest.TypeFile,
			Filename: "new.txt"}}, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	w.rest()
	j, err := w.m.Queue.Job(w.Context(), ingest.JobID(b.ID, 1))
	if err != nil || j.State != ingest.Completed || j.ObjectVersion != version || ark != "" && j.Primary != ark {
		w.Errorf("%q became %s v%d, not %s v%d: %s, %s %v", slices.Concat(ids), j.Primary, j.ObjectVersion, ark,
			version, j.State, j.Message, err)
	}
}

// text is an attribute of a row.
func text(item tabletest.Item, name string) string {
	if s, ok := item[name].(*types.AttributeValueMemberS); ok {
		return s.Value
	}
	return ""
}
