package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/api"
	"archivist/pkg/events/check/checktest"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/collection"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
	"archivist/pkg/views/browse"
	"archivist/pkg/views/statistics"
)

var (
	listJobs    = flag.Int("listjobs", 1000, "jobs that TestLists lists")
	listObjects = flag.Int("listobjects", 200, "objects that TestLists lists")
	listIn      = flag.Int("listcollections", 50, "collections that TestLists has them in")
)

const (
	jobsOfBatch = 10                // jobs of a batch
	perSecond   = 1_000             // ms between submissions
	firstAt     = 1_790_000_000_000 // of the first submission
)

// listed are the rows of jobs and objects, made by the code that writes them, in the process.
type listed struct {
	*testing.T
	rows *tabletest.Fake
	m    *queuetest.Machine
	now  atomic.Int64
	made phase // what is made now
}

// phase is a number of batches that are submitted one after another.
type phase struct {
	batches               int
	jobs                  func(n int) int // of a batch; nil: jobsOfBatch
	collection, submitter func(n int) string
	fails                 func(n int) bool // whether a job fails, by a number that follows from its id
	waits                 bool             // it is not worked on to its end
	slots                 int              // from now on; 0: as before
	at                    time.Time        // when the first is submitted; zero: after what was before
}

// jobsOf is how many jobs a batch has.
func (p phase) jobsOf(n int) int {
	if p.jobs == nil {
		return jobsOfBatch
	}
	return p.jobs(n)
}

// bulk are jobs in batches of ten: of 100, 5 fail; the last tenth of the batches waits, and some of it is being
// downloaded.
func bulk(jobs int) []phase {
	batches := jobs / jobsOfBatch
	ended, waiting := inTurn(0, batches-batches/10), inTurn(batches-batches/10, batches/10)
	ended.fails = func(n int) bool { return n%100 < 5 }
	waiting.fails, waiting.waits = ended.fails, true
	return []phase{ended, waiting}
}

// inTurn are batches of which one after another is of the next collection and submitter, from a number on.
func inTurn(first, batches int) phase {
	return phase{batches: batches, fails: func(int) bool { return false },
		collection: func(n int) string { return nameOf((first + n) % *listIn) },
		submitter:  func(n int) string { return fmt.Sprintf("user-%02d", (first+n)%20) }}
}

func (l *listed) time() time.Time { return time.UnixMilli(l.now.Load()) }

// newListed ingests jobs and stores objects, as many as the flags say.
func newListed(t *testing.T) *listed {
	l := newListedOn(t, tabletest.New(), bulk(*listJobs))
	l.stores(*listObjects, usual)
	return l
}

// newListedOn ingests the jobs of some phases. One in seven of the newest failed jobs is deleted.
func newListedOn(t *testing.T, rows *tabletest.Fake, phases []phase) *listed {
	l := &listed{T: t, rows: rows}
	l.now.Store(firstAt)
	l.m = queuetest.New(tabletest.Table(l.rows), l.time, 200)
	l.m.Queue.Rules.FailedRetention = 100 * 365 * 24 * time.Hour
	l.m.Step = l.step
	for _, p := range phases {
		l.submits(p)
		if p.waits {
			if err := l.m.Run(t.Context(), 2); err != nil {
				t.Fatal(err)
			}
		} else {
			l.drive(func() bool { return l.idle() && l.open() == 0 })
		}
	}
	l.deletes()
	return l
}

// submits submits the batches of a phase, and makes their jobs.
func (l *listed) submits(p phase) {
	l.Helper()
	l.made = p
	if p.slots > 0 {
		l.m.Queue.Settings.MaxInFlight = p.slots
	}
	if p.at.After(l.time()) {
		l.now.Store(p.at.UnixMilli())
		// As a deployment has it: these are not driven on until they are removed.
		l.m.Queue.Rules.FailedRetention = 30 * 24 * time.Hour
	}
	for n := range p.batches {
		l.now.Add(perSecond)
		_, err := l.m.Queue.Submit(l.Context(), ingest.Batch{Collection: p.collection(n), Submitter: p.submitter(n),
			Payload: ingest.Payload{URL: fmt.Sprintf("https://example.org/%03d.checkm", p.jobsOf(n)),
				Type: ingest.TypeBatchManifest}}, "", nil, "me")
		if err != nil {
			l.Fatal(err)
		}
		if n%20 == 19 {
			if err := l.m.Drain(l.Context()); err != nil {
				l.Fatal(err)
			}
		}
	}
}

func nameOf(n int) string { return fmt.Sprintf("collection-%03d", n) }

// idle reports whether no job runs or waits, as the queue says. It costs less than open.
func (l *listed) idle() bool {
	l.Helper()
	o, err := l.m.Queue.Overview(l.Context())
	if err != nil {
		l.Fatal(err)
	}
	return o.Running+o.Waiting[ingest.WorkPending]+o.Waiting[ingest.WorkProvisioning]+o.Waiting[ingest.WorkParked] == 0
}

// open is how many jobs have a slot or wait for one.
func (l *listed) open() (n int) {
	for _, it := range l.rows.All() {
		var row struct {
			PK    string       `dynamo:"pk"`
			State ingest.State `dynamo:"job_state"`
		}
		if err := dynamo.UnmarshalItem(it, &row); err != nil {
			l.Fatal(err)
		}
		if row.State.Open() {
			n++
		}
	}
	return n
}

// drive runs what can run until there is nothing left.
func (l *listed) drive(done func() bool) {
	l.Helper()
	for range 1000 {
		if err := l.m.Run(l.Context(), 20); err != nil {
			l.Fatal(err)
		}
		l.now.Add(time.Minute.Milliseconds())
		if done() {
			return
		}
	}
	l.Fatal("it never ends")
}

// step makes the jobs of a batch, and fails some of them.
func (l *listed) step(stage ingest.Stage) queue.Step {
	return func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		switch {
		case stage.Name == "unpack":
			size := 0
			if _, err := fmt.Sscanf(c.Batch.Payload.URL, "https://example.org/%03d.checkm", &size); err != nil {
				return ingest.Result{}, err
			}
			jobs := make([]ingest.Job, size)
			for i := range jobs {
				jobs[i] = ingest.Job{Collection: c.Batch.Collection, Submitter: c.Batch.Submitter, Mode: ingest.ModeAdd,
					LocalIDs:  []string{fmt.Sprintf("%s-%02d", c.Batch.ID[18:], i)},
					SizeKnown: true, SpaceNeeded: 1 << 20,
					Payload:  ingest.Payload{URL: "https://example.org/some/path/of/usual/length.tif", Type: "file"},
					Metadata: ingest.Metadata{Who: "An author", What: "A title of usual length", When: "2026"}}
			}
			return ingest.Result{Outcome: ingest.StepNext}, c.Unpack(ctx, jobs, len(jobs))
		case stage.Name == "process":
			n := 0
			fmt.Sscanf(c.Job.ID[18:], "%08d", &n)
			n = n*jobsOfBatch + c.Job.Row
			if l.made.fails(n) {
				return ingest.Fail(true, fmt.Sprintf("the server answered %d", 400+n%5)), nil
			}
			c.Job.Primary = "ark:/99999/fk4" + c.Job.ID[18:26] + c.Job.ID[30:]
		}
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
}

// deletes deletes one in seven of the newest failed jobs.
func (l *listed) deletes() {
	l.Helper()
	p, err := l.m.Queue.FindJobs(l.Context(), queue.Find{State: "Failed",
		Until: l.time().Add(time.Hour)})
	if err != nil {
		l.Fatal(err)
	}
	for i, j := range p.Items {
		if i%7 > 0 {
			continue
		}
		if _, err := queuetest.Act(l.Context(), l.m.Queue, ingest.ActDelete, j.Job.ID,
			queuetest.Confirmed); err != nil {
			l.Fatal(err)
		}
	}
}

// usual are the title and the date of an object.
func usual(n int) (title, date string) {
	return fmt.Sprintf("%s %d", []string{"Chart", "Map", "Plan", "View"}[n%4], n),
		fmt.Sprintf("%d-%02d", 1700+n%300, 1+n%12)
}

// stores records objects, and lists them by title and date.
func (l *listed) stores(objects int, says func(n int) (title, date string)) {
	l.Helper()
	tb := l.m.Queue.Table
	store, lists := inventory.Store{Table: tb}, browse.Store{Table: tb, NewID: l.m.Queue.NewID}
	var b consumer.Batch
	for n := range objects {
		title, date := says(n)
		ark := fmt.Sprintf("ark:/99999/fk8%06d", n)
		put, err := store.Prepare(l.Context(), inventory.Record{Object: inventory.Object{ARK: ark,
			Collection: nameOf(n % *listIn), LocalIDs: []string{fmt.Sprint("object-", n)}, HeadOf: 1, Digest: "x",
			Title: title, Who: "An author", When: date, Created: firstAt + int64(n), Modified: firstAt + int64(n)},
			Versions: []inventory.Version{{Number: 1, Digest: "x"}}}, firstAt)
		if err != nil {
			l.Fatal(err)
		}
		tx := tb.Begin(l.m.Queue.NewID())
		if err := put(tx); err != nil {
			l.Fatal(err)
		}
		if err := tx.Commit(l.Context()); err != nil {
			l.Fatal(err)
		}
		b.Events = append(b.Events, consumer.Item{Event: envelope.Event{
			Subject: envelope.Ref{Type: "Object", ID: ark}}})
	}
	if failed, err := lists.Handle(l.Context(), b); err != nil || len(failed) > 0 {
		l.Fatal(failed, err)
	}
}

// right fails unless the doctor's rules find the rows of jobs right.
func (l *listed) right() {
	l.Helper()
	pg := checktest.Page(l.m.Queue.Table, l.time, l.m.Queue.NewID)
	for _, p := range checktest.All(l, pg, l.m.Queue.RowRules(), func(table.Raw) bool { return true }) {
		l.Fatalf("the doctor finds %+v", p)
	}
}

// table is where the lists are read: the rows themselves, or a copy of them on the DynamoDB that was named. Events are
// not copied: no list reads them.
func (l *listed) table() *table.Table {
	l.Helper()
	if tabletest.InProcess() {
		return l.m.Queue.Table
	}
	to := tabletest.Open(l, tabletest.NoStream)
	var g errgroup.Group
	g.SetLimit(4)
	rows := slices.DeleteFunc(l.rows.All(), func(it tabletest.Item) bool {
		sk, ok := it["sk"].(*types.AttributeValueMemberS)
		return ok && strings.HasPrefix(sk.Value, event.Prefix)
	})
	for some := range slices.Chunk(rows, 500) {
		g.Go(func() error {
			rows := make([]any, len(some))
			for i := range some {
				rows[i] = some[i]
			}
			_, err := to.Rows.Batch("pk", "sk").Write().Put(rows...).Run(l.Context())
			return err
		})
	}
	if err := g.Wait(); err != nil {
		l.Fatal(err)
	}
	return to
}

// serve is the API on a table, whose requests are counted.
func (l *listed) serve(on *table.Table, calls *atomic.Int64) *httptest.Server {
	count := func(_ string, call func() error) error { calls.Add(1); return call() }
	counted := tabletest.Table(&tabletest.Client{DynamoDBAPI: on.DB.Client(), Do: count})
	counted.Rows = counted.DB.Table(on.Rows.Name())
	q := *l.m.Queue
	q.Table, q.Names = counted, &queue.Names{}
	if !tabletest.InProcess() { // there no search ends because the machine is slow
		q.Now = time.Now
	}
	log := slog.New(slog.NewTextHandler(io.Discard, nil))
	_, buckets := buckettest.Open(l, "storage", "work")
	a := &api.API{Open: true, Queue: &q, Inventory: inventory.Store{Table: counted},
		Collections: collection.Store{Table: counted},
		Statistics:  statistics.Store{Table: counted}, Browse: browse.Store{Table: counted},
		Root: ocfl.Root{Bucket: buckets[0]}, Work: buckets[1], Log: log}
	server := httptest.NewServer(a.Handler())
	l.Cleanup(server.Close)
	return server
}

// calibrate logs what one row costs now, and how many processes want the processors: with that a reader judges times.
func (l *listed) calibrate(on *table.Table, key table.Key) {
	l.Helper()
	took := make([]time.Duration, 100)
	for i := range took {
		began := time.Now()
		var row table.Head
		if err := on.Get(l.Context(), key, &row); err != nil {
			l.Fatal(err)
		}
		took[i] = time.Since(began)
	}
	slices.Sort(took)
	load, _ := os.ReadFile("/proc/loadavg") // only Linux has it
	l.Logf("one row: %.1f, %.1f, %.1f ms; load %.14s", took[0].Seconds()*1000, took[50].Seconds()*1000,
		took[99].Seconds()*1000, load)
}

// page is a page of any list.
type page struct {
	Items []struct {
		ID, ARK     string
		Collection  string
		Identifiers struct {
			Primary string
			Local   []string
		}
	}
	Cursor string
}

func get(t *testing.T, at string) (p page) {
	t.Helper()
	res, err := http.Get(at)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusOK || json.Unmarshal(body, &p) != nil {
		t.Fatalf("%s: %s, %v: %s", at, res.Status, err, body)
	}
	return p
}

// all reads all pages of a list, which have each item once and are full but the last. It returns how many there are.
// cut says that pages may be short; on a DynamoDB any is that took as long as a search may take.
func all(t *testing.T, at string, cut bool) (items, pages int) {
	t.Helper()
	seen := map[string]bool{}
	for cursor := ""; ; {
		began := time.Now()
		p := get(t, at+"&cursor="+url.QueryEscape(cursor))
		late := !tabletest.InProcess() && time.Since(began) >= 10*time.Second
		pages++
		for _, i := range p.Items {
			if id := i.ID + i.ARK; seen[id] {
				t.Errorf("%s has %s twice", at, id)
			} else {
				seen[id] = true
			}
		}
		cursor = p.Cursor
		if cursor == "" {
			return len(seen), pages
		}
		if len(p.Items) != queue.FindPage && !cut && !late {
			t.Errorf("%s: page %d has %d items and is not the last", at, pages, len(p.Items))
		}
	}
}

// aList is a list with its filters, in a query of the API.
type aList struct {
	query string
	most  int  // requests to the table for the first page
	some  bool // it has items
}

// cut reports whether a search reads what no index finds, so that on a DynamoDB it may end when its time is over.
func (l aList) cut() bool {
	return !tabletest.InProcess() && strings.Contains(l.query, "message=")
}

// theLists are all lists and filters: of what is common, rare and not there. id and ark are those of a job, failed is a
// collection in which one has failed.
func theLists(id, ark, failed string) []aList {
	day := func(n int) string { return time.UnixMilli(firstAt + int64(n)*perSecond).UTC().Format(time.RFC3339) }
	batches := *listJobs / jobsOfBatch
	between := "after=" + day(batches/2) + "&before=" + day(batches/2+20)
	in := "collection=" + nameOf(7)

	const all = 10    // the parts of one or two lists of all collections, the rows, the counts of batches
	const objects = 5 // the list, and at once their rows, checks, copies, and collections

	return []aList{
		{"batches?", all, true}, {"batches?" + in, 4, true}, {"batches?state=completed", all, true},
		{"batches?state=Processing", all, true}, {"batches?state=Deleted", all, false},
		{"batches?submitter=user-07", all, true}, {"batches?submitter=nobody", all, false},
		{"batches?submitter=user-07&state=completed", all, true},
		{"batches?message=nothing", all, false}, {"batches?" + between, all, true},

		{"jobs?", all, true}, {"jobs?" + in, 8, true}, {"jobs?state=Completed", all, true},
		{"jobs?state=Failed", all, true}, {"jobs?state=Pending", all, *listJobs > 5000},
		{"jobs?state=Held", all, false}, {"jobs?state=Deleted", all, true},
		{"jobs?state=Completed&" + in, 4, true}, {"jobs?state=Failed&collection=" + failed, 4, true},
		{"jobs?state=Deleted&" + in, 4, false}, {"jobs?" + between, all, true}, {"jobs?before=2000-01-01", all, false},

		{"jobs?localId=" + id, 8, true}, {"jobs?localId=nothing", 4, false},
		{"jobs?localId=" + id + "&state=Failed", 8, false}, {"jobs?ark=" + ark, 8, true},
		{"jobs?ark=ark:/99999/fk4nothing", 4, false},

		{"jobs?submitter=user-07", all, true}, {"jobs?submitter=nobody", all, false},
		{"jobs?submitter=user-07&state=Completed", all, true},
		{"jobs?submitter=nobody&state=Completed", all, false},
		{"jobs?submitter=nobody&state=Deleted", all, false},

		{"jobs?message=answered", all, true}, {"jobs?message=answered+404", all, true},
		{"jobs?message=nothing", all, false}, {"jobs?message=nothing&state=Completed", all, false},
		{"jobs?message=nothing&submitter=user-07", all, false}, {"jobs?message=404&state=Failed", all, true},

		{"objects?", objects, true}, {"objects?" + in, objects, true}, {"objects?title=map", objects, true},
		{"objects?title=nothing", 4, false}, {"objects?title=v&" + in, objects, true},
		{"objects?date=1750", objects, true},
		{"objects?date=1750-03", objects, true}, {"objects?localId=object-7&" + in, 8, true},
		{"objects?localId=nothing&" + in, 4, false}, {"objects?ark=ark:/99999/fk8000007", 8, true},
	}
}

// TestLists reads each list with each filter, page by page: no page is short but the last, or one that is cut; none has
// what another one has, and the first takes no more requests than said. On a DynamoDB it measures the
// first page five times, and all pages once; and beside that the time of one row.
func TestLists(t *testing.T) {
	began := time.Now()
	l := newListed(t)
	t.Logf("%d jobs in %s", *listJobs, time.Since(began).Round(time.Second))
	if *listJobs <= 5000 { // the fake takes long for more
		l.right()
	}

	var calls atomic.Int64
	on := l.table()
	server := l.serve(on, &calls)
	first := get(t, server.URL+"/v1/jobs?state=Completed").Items[0]
	key := table.Key{PK: "JOB#" + first.ID, SK: "JOB"}
	defer l.calibrate(on, key)
	failed := get(t, server.URL+"/v1/jobs?state=Failed").Items[0]
	for n, list := range theLists(url.QueryEscape(first.Identifiers.Local[0]), first.Identifiers.Primary,
		failed.Collection) {
		if n%10 == 0 {
			l.calibrate(on, key)
		}
		at := server.URL + "/v1/" + list.query
		var took []time.Duration
		for range 5 {
			calls.Store(0)
			began := time.Now()
			get(t, at)
			took = append(took, time.Since(began))
		}
		requests := int(calls.Load())
		slices.Sort(took)
		began := time.Now()
		items, pages := all(t, at, list.cut())
		t.Logf("| `%s` | %d | %d | %d | %d, %d, %d | %d |", list.query, items, pages, requests, took[0].Milliseconds(),
			took[2].Milliseconds(), took[4].Milliseconds(), time.Since(began).Milliseconds())
		if requests > list.most || items > 0 != list.some {
			t.Errorf("%s: %d items in %d requests for the first page; expected some: %v, in at most %d", list.query,
				items, requests, list.some, list.most)
		}
	}
}
