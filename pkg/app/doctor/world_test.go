package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"

	"archivist/pkg/app/doctor"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/search"
)

// world is a deployment on twins, with a clock of its own.
type world struct {
	*stagetest.World
	clock sync.Mutex
	now   time.Time

	object          string // of two versions
	first, second   string // the jobs that stored them
	failed, deleted string // jobs
	running, held   string // jobs, if the world has any
	operation       string
	waits           []string
	unswept         bool // events get no places any more
	search          search.Consumer
}

func newWorld(t *testing.T) *world {
	w := &world{World: stagetest.NewWorld(t), now: time.UnixMilli(1_800_000_000_000)}
	now := func() time.Time {
		w.clock.Lock()
		defer w.clock.Unlock()
		return w.now
	}
	w.Machine.Queue.Now, w.Stages.Now, w.Machine.Scheduler.Leases.Now = now, now, now
	return w
}

// advance moves the clock, also while a doctor reads it.
func (w *world) advance(by time.Duration) {
	w.clock.Lock()
	defer w.clock.Unlock()
	w.now = w.now.Add(by)
}

// settled is a world whose jobs have all ended, so long ago that no worker can be late.
func settled(t *testing.T) *world {
	w := newWorld(t)
	w.profile()
	w.first = w.Submit("a.txt", stagetest.Of("", "A", "B"), stagetest.Titled("One"))
	w.object = w.Ended(w.first, 1, false).Primary
	w.second = w.Submit("b.txt", stagetest.Of(w.object, "C"))
	w.Ended(w.second, 2, false)
	w.failed, w.deleted = w.failing(), w.failing()
	w.act(ingest.ActDelete, "job:"+w.deleted)
	w.now = w.now.Add(time.Hour)
	w.Drive() // removes work files
	w.now = w.now.Add(30 * time.Minute)
	w.sweep()
	return w
}

// busy is a world with a running and a held job, and with holds and an operation.
func busy(t *testing.T) *world {
	w := newWorld(t)
	w.profile()
	w.failed = w.failing()
	w.Refuse.Store(true)
	w.running = w.Submit("two.txt", stagetest.Of("", "two"))
	w.act(ingest.ActHold, "collection:maps")
	w.held = w.jobs(1, stagetest.In("maps"), stagetest.Of("", "held"))[0]
	w.Drive()
	w.act(ingest.ActPause, "queue")
	w.waits = w.jobs(3, stagetest.Of("", "waiting"))
	w.Drive()
	o, err := queue.Admin{Queue: w.Machine.Queue}.Start(t.Context(),
		ingest.Bulk{Name: ingest.ActRequeue, Filter: ingest.Filter{State: ingest.Failed}}, "again", "me",
		ingest.Administrator, "request", false)
	if err != nil {
		t.Fatal(err)
	}
	w.operation = o.Operation.ID
	for range 2 { // one page of each place of failed jobs
		_, err = queue.Admin{Queue: w.Machine.Queue}.RunPage(t.Context(), w.operation, o.Exec, w.now.Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

func (w *world) profile() {
	w.Helper()
	store := collection.Store{Table: w.Machine.Queue.Table, NewID: w.Machine.Queue.NewID}
	if err := store.Put(w.Context(), "bench", collection.Profile{Title: "Bench"},
		collection.By{Actor: "me"}, 1); err != nil {
		w.Fatal(err)
	}
}

// failing makes a job that fails, and can be requeued.
func (w *world) failing() string {
	w.Helper()
	id := w.jobs(1, stagetest.Of(""))[0]
	if err := w.Machine.Scheduler.Tick(w.Context(), false); err != nil {
		w.Fatal(err)
	}
	w.act(ingest.ActFail, "job:"+id)
	w.Drive()
	return id
}

// jobs submits a batch of n Pending jobs.
func (w *world) jobs(n int, how ...func(*ingest.Batch)) (ids []string) {
	w.Helper()
	in := ingest.Batch{Collection: "bench", Mode: "add", Payload: ingest.Payload{URL: w.Source.URL + "/x",
		Type: ingest.TypeFile, Filename: "x"}}
	for _, h := range how {
		h(&in)
	}
	q := w.Machine.Queue
	b, err := q.Submit(w.Context(), in, "", nil, "me")
	if err != nil {
		w.Fatal(err)
	}
	for b.Unpacked < n {
		jobs := make([]ingest.Job, min(n-b.Unpacked, 30))
		for i := range jobs {
			jobs[i] = ingest.Job{Collection: in.Collection, Mode: "add", Payload: in.Payload, Primary: in.Primary,
				LocalIDs: in.LocalIDs}
		}
		if err := q.Unpack(w.Context(), b, jobs[:queue.Chunk(jobs)], n); err != nil {
			w.Fatal(err)
		}
	}
	for i := range n {
		ids = append(ids, ingest.JobID(b.Batch.ID, i+1))
	}
	return ids
}

func (w *world) act(name ingest.ActionName, on string) {
	w.Helper()
	target, err := ingest.ParseTarget(on)
	if err == nil {
		_, err = queue.Admin{Queue: w.Machine.Queue}.Act(w.Context(), ingest.Action{Name: name, Target: target,
			Reason: "a reason", Actor: "me", Role: ingest.Administrator, Confirm: true})
	}
	if err != nil {
		w.Fatalf("%s %s: %v", name, on, err)
	}
}

// doctor checks this world.
func (w *world) doctor() doctor.Doctor { return w.through(w.Rows) }

// through checks this world through a client of its table. The relay has swept before, unless
// the world has none.
func (w *world) through(client dynamodbiface.DynamoDBAPI) doctor.Doctor {
	if !w.unswept {
		w.sweep()
	}
	q := *w.Machine.Queue
	q.Table = tabletest.Table(client)
	q.Table.Wait = func(ctx context.Context, _ time.Duration) error { return ctx.Err() }
	x := w.Stages.Reindexer()
	x.Inventory, x.Preserved, x.Now = inventory.Store{Table: q.Table}, q.Preserved, q.Now
	return doctor.Doctor{Queue: &q, Reindexer: x, Work: w.Stages.Work, Search: w.search}
}

// finds fails unless a run has exactly these findings, as "invariant subject".
func (w *world) finds(repair bool, want ...string) []queue.Finding {
	w.Helper()
	found, err := w.doctor().All(w.Context(), repair)
	if err != nil {
		w.Fatal(err)
	}
	// Another state is also another list: that is found where it is expected, and follows from it elsewhere.
	if !slices.ContainsFunc(want, ofLists) {
		found = slices.DeleteFunc(found, func(f queue.Finding) bool { return ofLists(f.Invariant + " " + f.Subject) })
	}
	got := []string{}
	for _, f := range found {
		got = append(got, f.Invariant+" "+f.Subject)
		if f.Evidence == "" || f.Command == "" {
			w.Errorf("%+v has no evidence, or no command", f)
		}
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		w.Errorf("found:\n%s\nwant:\n%s", text(found), strings.Join(want, "\n"))
	}
	return found
}

// ofLists reports whether a finding is about a row that lists a job or batch.
func ofLists(finding string) bool {
	return strings.HasPrefix(finding, "job-named ") || strings.Contains(finding, " NAMED#")
}

func text(found []queue.Finding) string {
	out := ""
	for _, f := range found {
		out += fmt.Sprintf("%s %s: %s (repaired: %v)\n", f.Invariant, f.Subject, f.Evidence, f.Repaired)
	}
	return out
}

// Damage of single rows and keys.

func key(pk, sk string) table.Key               { return table.Key{PK: pk, SK: sk} }
func jobKey(id string) table.Key                { return key("JOB#"+id, "JOB") }
func batchOf(job string) string                 { b, _, _ := strings.Cut(job, "-"); return b }
func batchKey(job string) table.Key             { return key("BATCH#"+batchOf(job), "BATCH") }
func countKey(job string) table.Key             { return key("BATCH#"+batchOf(job), "COUNT") }
func str(s string) *types.AttributeValueMemberS { return &types.AttributeValueMemberS{Value: s} }
func num(n int64) *types.AttributeValueMemberN {
	return &types.AttributeValueMemberN{Value: fmt.Sprint(n)}
}

// set changes an attribute of a row, or removes it.
func (w *world) set(k table.Key, name string, v types.AttributeValue) {
	w.Helper()
	row := w.Rows.Row(k)
	if row == nil {
		w.Fatalf("there is no row %s", k)
	}
	row[name] = v
	if v == nil {
		delete(row, name)
	}
	w.put(row)
}

func (w *world) put(row tabletest.Item) {
	w.Helper()
	if err := w.Machine.Queue.Table.Rows.Put(row).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// insert makes a row.
func (w *world) insert(k table.Key, more ...any) {
	w.Helper()
	row := tabletest.Item{"pk": str(k.PK), "sk": str(k.SK), "rev": num(1), "wid": str("by hand"), "schema_no": num(1)}
	for i := 0; i < len(more); i += 2 {
		row[more[i].(string)] = more[i+1].(types.AttributeValue)
	}
	w.put(row)
}

func (w *world) drop(k table.Key) {
	w.Helper()
	if w.Rows.Row(k) == nil {
		w.Fatalf("there is no row %s", k)
	}
	if err := w.Machine.Queue.Table.Rows.Delete("pk", k.PK).Range("sk", k.SK).Run(w.Context()); err != nil {
		w.Fatal(err)
	}
}

// below is a key of the object in the storage root.
func (w *world) below(name string) string { return ocfl.Prefix(w.object) + name }

func (w *world) putKey(b bucket.Bucket, name, text string) {
	w.Helper()
	if err := b.Put(w.Context(), name, []byte(text), bucket.Condition{}); err != nil {
		w.Fatal(err)
	}
}

func (w *world) store(name, text string) { w.Helper(); w.putKey(w.Stages.Root.Bucket, name, text) }

func (w *world) unstore(name string) {
	w.Helper()
	if _, there := w.S3.Object("storage/" + name); !there {
		w.Fatalf("there is no %s", name)
	}
	if err := w.Stages.Root.Bucket.Delete(w.Context(), name); err != nil {
		w.Fatal(err)
	}
}

// content is a key of the content that a job has stored.
func (w *world) content(job string) string {
	w.Helper()
	for _, name := range w.S3.Names("storage/") {
		if strings.Contains(name, "/content/"+job) {
			return strings.TrimPrefix(name, "storage/")
		}
	}
	w.Fatalf("job %s has stored nothing", job)
	return ""
}

// BatchRow reads a batch.
func (w *world) BatchRow(id string) *queue.Batch {
	w.Helper()
	b, err := w.Machine.Queue.Batch(w.Context(), id)
	if err != nil {
		w.Fatal(err)
	}
	return b
}

// waiting is the batch of the waiting jobs.
func (w *world) waiting() string { return "batch:" + batchOf(w.waits[0]) }

// listOfAll is the place of a job in the list of all jobs.
func listOfAll(w *world, id string) table.Key {
	j := w.Job(id)
	for _, r := range queue.Listed(&j.Job) {
		if k := r.Key(); strings.HasPrefix(k.PK, "NAMED#all#") && strings.Count(k.PK, "#") == 2 {
			return k
		}
	}
	w.Fatal("a job is not in the list of all")
	return table.Key{}
}
