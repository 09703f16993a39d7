package queue_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
)

var update = flag.Bool("update", false, "write the explanations to testdata/explain.txt")

// explainCase is a state with a cause: arrange makes an item in it, and returns its id.
type explainCase struct {
	name    string
	arrange func(b *bench) string
	waits   explain.Wait
}

// one submits a job of one file.
func (b *bench) one() string {
	b.Helper()
	return ingest.JobID(b.submitJobs(ingest.Job{Collection: "maps", Priority: 5,
		Payload: ingest.Payload{URL: "https://example.org/data/a.txt?key=secret", Filename: "a.txt"}}), 1)
}

// at is a job in a state, held by a worker in its try of that number; 0: by none.
func at(s ingest.State, try int, more ...func(row *queue.Job)) func(b *bench) string {
	return func(b *bench) string {
		b.Helper()
		id := b.one()
		b.tick()
		return b.edit(id, func(row *queue.Job) {
			row.State, row.Tries, row.Files, row.Due = s, try, 1, b.now.Add(time.Hour).UnixMilli()
			row.Primary = "ark:/99999/fk4x"
			if s == ingest.Recording || s == ingest.Notify || s == ingest.Completed {
				row.ObjectVersion = 2
			}
			if try > 0 {
				row.On.Take("worker", b.now, time.Minute)
			}
			for _, change := range more {
				change(row)
			}
		})
	}
}

func free(row *queue.Job)  { row.Release() }
func files(row *queue.Job) { row.Files = 1400 }

func after(last ingest.State, message string, final bool) func(row *queue.Job) {
	return func(row *queue.Job) { row.LastSuccessful, row.Message, row.NotRecoverable = last, message, final }
}

// waiting submits n jobs that wait, and returns the last.
func waiting(n int) func(b *bench) string {
	return func(b *bench) string {
		b.Helper()
		b.tick()
		jobs := make([]ingest.Job, n)
		for i := range jobs {
			jobs[i] = ingest.Job{Collection: "maps", Priority: 5}
		}
		return ingest.JobID(b.submitJobs(jobs...), n)
	}
}

// provisioning is a job of a number of bytes that waits to download.
func provisioning(bytes int64, arrange func(b *bench)) func(b *bench) string {
	return func(b *bench) string {
		b.Helper()
		id := b.one()
		b.tick()
		b.handle(b.last(), sized(bytes))
		arrange(b)
		return id
	}
}

// jobCases are in the order of a job's life.
var jobCases = []explainCase{
	{"Pending: the scheduler never ran", (*bench).one, explain.Person},
	{"Pending: the only one", func(b *bench) string { b.tick(); return b.one() }, explain.Turn},
	{"Pending: the first", func(b *bench) string { return strings.TrimSuffix(waiting(3)(b), "3") + "1" }, explain.Turn},
	{"Pending: one is ahead", waiting(2), explain.Turn},
	{"Pending: several are ahead", waiting(343), explain.Turn},
	{"Pending: very many are ahead", waiting(1100), explain.Turn},
	{"Pending: all slots are taken", func(b *bench) string { b.grants("SLOT", 2, 0); return waiting(13)(b) },
		explain.Limit},
	{"Pending: the collection has its share", func(b *bench) string {
		b.q.Settings.Share = 1
		b.one()
		b.tick()
		return b.one()
	}, explain.Limit},
	{"Pending: the scheduler stopped", func(b *bench) string {
		b.tick()
		b.now = b.now.Add(time.Hour)
		return b.one()
	}, explain.Person},
	{"Pending: the collection is on hold", func(b *bench) string {
		b.do(ingest.ActHold, collectionMaps)
		return b.one()
	}, explain.Hold},
	{"Pending: the queue is paused", func(b *bench) string { b.do(ingest.ActPause, theQueue); return b.one() },
		explain.Hold},
	{"Pending: the queue is paused until a time", func(b *bench) string {
		b.do(ingest.ActPause, theQueue, b.now.Add(time.Hour))
		return b.one()
	}, explain.Hold},
	{"Held", (*bench).heldAlone, explain.Hold},
	{"Held: until a time", func(b *bench) string {
		id := b.one()
		b.do(ingest.ActHold, jobTarget(id), b.now.Add(time.Hour))
		return id
	}, explain.Hold},
	{"Held: its collection is on hold", (*bench).heldByCollection, explain.Hold},
	{"Held: its collection is on hold until a time", func(b *bench) string {
		b.do(ingest.ActHold, collectionMaps, b.now.Add(time.Hour))
		id := b.one()
		b.tick()
		return id
	}, explain.Hold},
	{"Held: the hold of its collection is lifted", func(b *bench) string {
		id := b.heldByCollection()
		b.do(ingest.ActRelease, collectionMaps)
		return id
	}, explain.Person},
	{"Held: by an earlier release", func(b *bench) string {
		return b.edit(b.one(), func(row *queue.Job) { row.State = ingest.Held })
	}, explain.Person},
	{"Estimating: started", at(ingest.Estimating, 0), explain.Start},
	{"Estimating: a worker has it", at(ingest.Estimating, 1), explain.Worker},
	{"Estimating: many files", at(ingest.Estimating, 1, files,
		func(row *queue.Job) { row.Checkpoint = "sizes of 500 of 1,400 files" }), explain.Worker},
	{"Estimating: no worker takes it", at(ingest.Estimating, 0, func(row *queue.Job) { row.Repairs = 3 }),
		explain.Person},
	{"Estimating: a call is refused", at(ingest.Estimating, 0, func(row *queue.Job) {
		row.Blocked = "its execution could not be started: SFN refused StartExecution: AccessDeniedException. Check " +
			"the permissions of the function that made the call"
	}), explain.Person},
	{"Provisioning: its turn", provisioning(80, func(*bench) {}), explain.Turn},
	{"Provisioning: no space", provisioning(80, func(b *bench) { b.grants("SPACE", 1, 990) }), explain.Space},
	{"Provisioning: unknown size, no reserve", func(b *bench) string {
		id := provisioning(0, func(b *bench) { b.grants("SPACE", 1, 990) })(b)
		return b.edit(id, func(row *queue.Job) { row.SizeKnown = false })
	}, explain.Space},
	{"Provisioning: too large", provisioning(80, func(b *bench) { b.q.Settings.Space = 50 }), explain.Person},
	{"Provisioning: space is reserved for another", func(b *bench) string {
		b.q.Settings.Patience, b.q.Settings.MaxInFlight = time.Hour, 10
		provisioning(800, func(b *bench) { b.grants("SPACE", 1, 500) })(b)
		b.now = b.now.Add(2 * time.Hour)
		return provisioning(80, func(*bench) {})(b)
	}, explain.Space},
	{"Provisioning: another job has the object", func(b *bench) string {
		b.estimated("same", 10)
		return b.estimated("same", 10)
	}, explain.Lock},
	{"Downloading: started", at(ingest.Downloading, 0), explain.Start},
	{"Downloading: a worker has it", at(ingest.Downloading, 1), explain.Worker},
	{"Downloading: how far", at(ingest.Downloading, 4, func(row *queue.Job) { row.Checkpoint = "80 of 1,400 bytes" }),
		explain.Worker},
	{"Downloading: after a try that failed", at(ingest.Downloading, 3, free, func(row *queue.Job) {
		row.Checkpoint, row.Message = "80 of 1,400 bytes",
			"80 of 1,400 bytes came from example.org; then the connection was closed"
	}), explain.Start},
	{"Downloading: trying again", at(ingest.Downloading, 4, func(row *queue.Job) {
		row.Checkpoint, row.Message = "80 of 1,400 bytes",
			"80 of 1,400 bytes came from example.org; then the connection was closed"
	}), explain.Worker},
	{"Downloading: the last worker died", at(ingest.Downloading, 2), explain.Worker},
	{"Downloading: the source asks to wait", at(ingest.Downloading, 0, func(row *queue.Job) {
		row.Parked, row.Tries = true, 4
		row.Message = "file a.txt: https://example.org/a.txt answered 503 Service Unavailable and asks to wait 3600 s"
	}), explain.Source},
	{"Downloading: many files", at(ingest.Downloading, 1, files,
		func(row *queue.Job) {
			row.Checkpoint = "80 of 1,400 files, 80 of 1,400 bytes of b.txt from example.org"
		}), explain.Worker},
	{"Processing", at(ingest.Processing, 1), explain.Worker},
	{"Storing", at(ingest.Storing, 1, func(row *queue.Job) { row.Checkpoint = "500 of 1,400 new files copied" }),
		explain.Worker},
	{"Storing: parked behind another job", func(b *bench) string {
		_, parked := b.parkedWithSpace("same",
			10)
		return parked
	}, explain.Lock},
	{"Storing: the storage is paused", func(b *bench) string {
		id, _ := b.processing("x")
		m := b.toState(id, ingest.Processing)
		b.do(ingest.ActPause, theStorage)
		b.handle(m, ok)
		return id
	}, explain.Hold},
	{"Recording", at(ingest.Recording, 1), explain.Worker},
	{"Notify", at(ingest.Notify, 1), explain.Worker},
	{"Completed", at(ingest.Completed, 0), explain.Nothing},
	{"Completed: no change", at(ingest.Completed, 0, func(row *queue.Job) { row.NoChange = true }), explain.Nothing},
	{"Failed: to be requeued", at(ingest.Failed, 0, after(ingest.Provisioning,
		"file a.txt: https://example.org/a.txt answered 404 Not Found. Correct it at the source, then requeue the job",
		false)), explain.Person},
	{"Failed: for good", at(ingest.Failed, 0, after(ingest.Provisioning,
		"file a.txt: the depositor's md5 differs. Correct the files or the manifest, then submit it again", true)),
		explain.Nothing},
	{"Failed: by an operator", func(b *bench) string {
		id := at(ingest.Downloading, 0)(b)
		b.forceFail(id)
		return id
	}, explain.Person},
	{"Failed: after its version was stored", at(ingest.Failed, 0, after(ingest.Storing,
		"preserved as ark:/99999/fk4x v2; the id \"x\" is that of another object. Do not submit again: requeue the job",
		false)), explain.Person},
	{"Failed: its work files are being removed", at(ingest.Failed, 0, after(ingest.Estimating,
		"it needs 5,000 bytes of work space, more than there are. Submit it in smaller parts", false),
		func(row *queue.Job) { row.Cleaning = true }), explain.Person},
	{"Failed: never begun", func(b *bench) string {
		return ingest.JobID(b.submitJobs(ingest.Job{Collection: "maps", LocalIDs: []string{"a\x00"}}), 1)
	}, explain.Nothing},
	{"Deleted", at(ingest.Deleted, 0, after(ingest.Provisioning, "deleted by ada: a test", false)), explain.Nothing},
}

// inState is a batch of three jobs, two of which have ended, in a state.
func inState(s ingest.BatchState, more ...func(row *queue.Batch)) func(b *bench) string {
	return func(b *bench) string {
		b.Helper()
		batch := b.submitJobs(make([]ingest.Job, 3)...)
		tx := b.q.Table.Begin(b.q.NewID())
		tx.Count(table.Key{PK: "BATCH#" + batch, SK: "COUNT"}, map[string]int64{"n_processing": -3, "n_completed": 3})
		if err := tx.Commit(b.Context()); err != nil {
			b.Fatal(err)
		}
		return b.editBatch(batch, func(row *queue.Batch) {
			row.State = s
			for _, change := range more {
				change(row)
			}
		})
	}
}

// batchCases are in the order of a batch's life.
var batchCases = []explainCase{
	{"Batch Pending: submitted", func(b *bench) string { return b.submitted() }, explain.Start},
	{"Batch Pending: a worker has it", func(b *bench) string {
		return b.editBatch(b.submitted(), func(row *queue.Batch) {
			row.Unpacked, row.Expected, row.Tries = 45, 1400, 1
			row.On.Take("worker", b.now, time.Minute)
		})
	}, explain.Worker},
	{"Batch Pending: after a try that failed", func(b *bench) string {
		return b.editBatch(b.submitted(), func(row *queue.Batch) {
			row.Tries, row.Message = 1, "https://example.org/x.checkm answered 503 Service Unavailable"
		})
	}, explain.Start},
	{"Batch Pending: a call is refused", func(b *bench) string {
		return b.editBatch(b.submitted(), func(row *queue.Batch) {
			row.Blocked = "its execution could not be started: SFN refused StartExecution: AccessDeniedException. " +
				"Check the permissions of the function that made the call"
		})
	}, explain.Person},
	{"Batch Held: by hand", func(b *bench) string {
		id := b.submitted()
		b.do(ingest.ActHold, batchTarget(id))
		return id
	}, explain.Hold},
	{"Batch Held: its collection is on hold", (*bench).heldBatch, explain.Hold},
	{"Batch Held: the hold of its collection is lifted", func(b *bench) string {
		id := b.heldBatch()
		b.do(ingest.ActRelease, collectionMaps)
		return id
	}, explain.Person},
	{"Batch Processing: all open jobs are on hold", func(b *bench) string {
		batch, _, _ := strings.Cut(b.heldByCollection(), "-")
		return batch
	}, explain.Hold},
	{"Batch Processing: some jobs are on hold", func(b *bench) string {
		b.q.Settings.MaxInFlight = 1
		batch := b.submit(3, "")
		b.tick()
		b.do(ingest.ActHold, collectionC)
		b.tick()
		return batch
	}, explain.Parts},
	{"Batch Processing: the hold of its jobs is lifted", func(b *bench) string {
		batch, _, _ := strings.Cut(b.heldByCollection(), "-")
		b.do(ingest.ActRelease, collectionMaps)
		return batch
	}, explain.Person},
	{"Batch Processing: a job waits", func(b *bench) string { b.tick(); return b.submitJobs(make([]ingest.Job, 3)...) },
		explain.Parts},
	{"Batch Processing: a job is in trouble", func(b *bench) string {
		batch := b.submitJobs(make([]ingest.Job, 3)...)
		b.tick()
		b.edit(ingest.JobID(batch, 2), func(row *queue.Job) {
			row.Tries, row.Message, row.Payload.URL = 4, "https://example.org/a.txt answered 503 Service Unavailable",
				"https://example.org/a.txt"
		})
		return batch
	}, explain.Parts},
	{"Batch Processing: all have ended", inState(ingest.BatchProcessing), explain.Start},
	{"Batch Reporting", inState(ingest.BatchReporting), explain.Start},
	{"Batch Completed", inState(ingest.BatchCompleted), explain.Nothing},
	{"Batch Failed: jobs failed", func(b *bench) string {
		batch := b.submitJobs(make([]ingest.Job, 2)...)
		b.tick()
		for _, m := range b.take() {
			b.handle(m, fails(true))
		}
		b.handle(b.last(), ok)
		return batch
	}, explain.Person},
	{"Batch Failed: no jobs", func(b *bench) string {
		batch := b.submitted()
		b.handle(b.last(), fails(false))
		return batch
	}, explain.Person},
	{"Batch Failed: some rows became no jobs", inState(ingest.BatchFailed,
		func(row *queue.Batch) { row.Incomplete = "row 4 has no URL" }), explain.Person},
	{"Batch Failed: requeued and completed", inState(ingest.BatchFailed), explain.Person},
	{"Batch Failed: a job is requeued", func(b *bench) string {
		id, report := b.toReport()
		b.handle(report, ok)
		b.edit(ingest.JobID(id, 1), func(row *queue.Job) { row.NotRecoverable = false })
		b.requeue(ingest.JobID(id, 1))
		return id
	}, explain.Person},
	{"Batch Failed: cancelled", inState(ingest.BatchFailed, func(row *queue.Batch) {
		row.Cancelled = &ingest.Decision{Actor: "ada", Reason: "the wrong year"}
	}), explain.Person},
	{"Batch Failed: cancelled before its jobs were made", func(b *bench) string {
		id := b.submitted()
		b.did(ingest.ActCancel, id)
		return id
	}, explain.Person},
	{"Batch Processing: cancelled", func(b *bench) string {
		id := b.submitJobs(make([]ingest.Job, 3)...)
		b.did(ingest.ActCancel, id)
		return id
	}, explain.Parts},
	{"Batch Deleted", inState(ingest.BatchDeleted), explain.Nothing},
	{"Batch Deleted by a person", inState(ingest.BatchDeleted, func(row *queue.Batch) {
		row.Removal = &ingest.Decision{Actor: "ada", Reason: "a test."}
	}), explain.Nothing},
}

var collectionMaps = ingest.Target{Kind: ingest.TargetCollection, ID: "maps"}

// heldAlone is a job that is on hold alone.
func (b *bench) heldAlone() string {
	b.Helper()
	id := b.one()
	b.do(ingest.ActHold, jobTarget(id))
	return id
}

// heldByCollection is a job of a collection that is on hold.
func (b *bench) heldByCollection() string {
	b.Helper()
	id := b.one()
	b.editBatch(strings.TrimSuffix(id, "-00001"), func(row *queue.Batch) { row.Collection = "maps" })
	b.do(ingest.ActHold, collectionMaps)
	b.tick()
	return id
}

// heldBatch is a batch of a collection that is on hold.
func (b *bench) heldBatch() string {
	b.Helper()
	b.do(ingest.ActHold, collectionMaps)
	id := b.submitted()
	b.handle(b.last(), unpackAll(nil))
	return id
}

func (b *bench) submitted() string {
	b.Helper()
	row, err := b.q.Submit(b.Context(), ingest.Batch{Collection: "maps", Mode: "add"}, "", nil, "me")
	if err != nil {
		b.Fatal(err)
	}
	return row.Batch.ID
}

// internal are words that only developers of the system know.
var internal = []string{"sweep", " gate", "exec_", " lease", "park", "token", " rev", "secret"}

// TestExplainTexts: the explanation in each state, for each cause. testdata/explain.txt has
// all of them; go test ./pkg/ingest/queue -run ExplainTexts -update writes it.
func TestExplainTexts(t *testing.T) {
	const golden = "testdata/explain.txt"
	var all strings.Builder
	for _, c := range append(jobCases, batchCases...) {
		t.Run(c.name, func(t *testing.T) {
			b := newTwinBench(t)
			id := c.arrange(b)
			x, err := b.explain(id)
			if err != nil || x.Waits != c.waits || x.Why == "" || !strings.HasSuffix(x.Why, ".") {
				t.Errorf("%+v, %v; expected one that waits for %s", x, err, c.waits)
			}
			for _, word := range append(internal, queue.ExecutionName(id, 1)) {
				if strings.Contains(strings.ToLower(x.Why), strings.ToLower(word)) {
					t.Errorf("%q says %q", x.Why, word)
				}
			}
			fmt.Fprintf(&all, "%s (waits for: %s)\n    %s\n", c.name, x.Waits, x.Why)
			for _, l := range x.Chain[1:] {
				fmt.Fprintf(&all, "  behind it: %s\n    %s\n", l.Waits, l.Why)
			}
			for _, s := range x.Do {
				fmt.Fprintf(&all, "  %s\n    %s\n", s.What, s.Command)
			}
			all.WriteString("\n")
		})
	}
	if *update {
		if err := os.WriteFile(golden, []byte(all.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || string(want) != all.String() {
		t.Errorf("the explanations differ from %s (%v): run with -update and review the changes", golden, err)
	}
}
