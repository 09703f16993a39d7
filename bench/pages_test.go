package bench

import (
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"archivist/pkg/app/inprocess"
	"archivist/pkg/console"
	"archivist/pkg/events/event"
	"archivist/pkg/events/eventlog"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/table/tabletest"
)

var (
	pageJobs    = flag.Int("pagejobs", 600, "jobs of the large deployment of TestPages")
	pageObjects = flag.Int("pageobjects", 300, "objects of the large deployment of TestPages")
	pageEvents  = flag.Int("pageevents", 1000,
		"events of the large deployment of TestPages, beside those of its jobs")
	pageOpens = flag.Int("pageopens", 4, "how often TestPages opens each page; the first time does not count")
)

// opened is what opening a page took.
type opened struct {
	took  []time.Duration // sorted, once all are there
	calls int             // of the table
	units float64         // read units of it
	kinds map[string]int  // of calls
	bytes int             // compressed
	every int             // seconds until it asks for what has changed; 0 = never
	tag   string
	again inprocess.TableUse // of such a question that is answered with: nothing
}

// pageWorld is a deployment in the process whose pages are opened.
type pageWorld struct {
	*testing.T
	system *inprocess.System
	server *httptest.Server
	queue  queue.Queue
}

// stock is what a deployment has.
type stock struct {
	phases  []phase
	objects int
	says    func(n int) (title, date string) // of an object
	events  int                              // beside those of its jobs
}

// What all deployments have lately, in batches of ten jobs: some that have failed today, of which more than a hundred
// are not deleted; and at last some that wait, more than a hundred of them before those that run.
const (
	failedBatches  = 12
	waitingBatches = 14
	slotsInUse     = 20
)

// lately are these batches. Those that wait are by the collections and submitters of a phase.
func lately(waiting phase) []phase {
	today := inTurn(0, failedBatches)
	today.fails, today.at = func(int) bool { return true }, time.Now().Add(-2*time.Hour)
	waiting.waits, waiting.slots = true, slotsInUse
	return []phase{today, waiting}
}

// big is a deployment with so many jobs, of which 5 of 100 have failed, and a tenth waits.
func big(jobs, objects, events int) stock {
	batches := jobs / jobsOfBatch
	waiting := max(waitingBatches, batches/10)
	ended := inTurn(0, batches-failedBatches-waiting)
	ended.fails = func(n int) bool { return n%100 < 5 }
	return stock{append([]phase{ended}, lately(inTurn(batches-waiting, waiting))...), objects, usual, events}
}

// What the small deployment has beside what all have lately: batches that have completed, of one job each, but one of
// ten; and objects. Each page shows as many rows as that of a large deployment, and each filter finds more than a page
// of them, or as many as there: so its cost tells how it depends on what is not shown.
const (
	smallBatches = 52
	smallObjects = 110
	smallDated   = 34 // objects of one year, as among 10,000
	smallEvents  = 100
	smallJobs    = smallBatches - 1 + (1+failedBatches+waitingBatches)*jobsOfBatch
)

// little is the small deployment.
func little() stock {
	ended := inTurn(0, smallBatches)
	ended.submitter = func(int) string { return "user-07" }
	ended.jobs = func(n int) int {
		if n == smallBatches-1 {
			return jobsOfBatch
		}
		return 1
	}
	waiting := inTurn(0, waitingBatches)
	waiting.collection = func(n int) string { return nameOf(7 + n%2) }
	waiting.submitter = func(n int) string { return fmt.Sprintf("user-%02d", 7+n%2) }
	says := func(n int) (title, date string) {
		title, date = usual(n)
		if n%2 == 0 {
			title = fmt.Sprint("Map ", n)
		}
		if n < smallDated {
			date = fmt.Sprintf("1750-%02d", 1+n%12)
		}
		return title, date
	}
	return stock{append([]phase{ended}, lately(waiting)...), smallObjects, says, smallEvents}
}

// newPageWorld fills a table by the code that writes the rows, and starts a system on it. It returns with it a job that
// has completed, and one that has failed.
func newPageWorld(t *testing.T, has stock) (w pageWorld, completed, failed queue.Job) {
	l := newListedOn(t, installed(t), has.phases)
	l.stores(has.objects, has.says)
	l.happens(has.events)
	find := func(state string) queue.Job {
		p, err := l.m.Queue.FindJobs(t.Context(), queue.Find{State: state, Until: l.time().Add(time.Hour)})
		if err != nil || len(p.Items) == 0 {
			t.Fatal(state, len(p.Items), err)
		}
		return p.Items[0]
	}
	completed, failed = find("Completed"), find("Failed")

	// Nothing of the system runs by itself while pages are opened. So all consumers are far behind.
	system, err := inprocess.Start(inprocess.Settings{Table: l.rows, Each: -1, Dir: t.TempDir(),
		Index: &inprocess.NoIndex{}, Revisions: true, Projects: []string{"birds"}})
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(system.API())
	t.Cleanup(func() {
		server.Close()
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	q := *l.m.Queue
	q.Now, q.Metric = time.Now, func(string, float64) {}
	return pageWorld{t, system, server, q}, completed, failed
}

// installed is a table with what a deployment makes by itself, e.g. the consumers and components that ship.
func installed(t *testing.T) *tabletest.Fake {
	rows := tabletest.New()
	synctest.Test(t, func(t *testing.T) {
		system, err := inprocess.Start(inprocess.Settings{Table: rows, Dir: t.TempDir(), Index: &inprocess.NoIndex{},
			Revisions: true, Projects: []string{"birds"}})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Minute)
		if err := system.Close(); err != nil {
			t.Error(err)
		}
	})
	return rows
}

// happens adds events of jobs, and places all events in their logs.
func (l *listed) happens(events int) {
	l.Helper()
	tb := l.m.Queue.Table
	log := &eventlog.Log{Table: tb, Now: l.time, NewID: l.m.Queue.NewID}
	for { // those of jobs and objects
		placed, err := log.Sweep(l.Context(), time.UnixMilli(l.now.Load()).Add(time.Hour))
		if err != nil {
			l.Fatal(err)
		}
		if len(placed) == 0 {
			break
		}
	}
	const each = 500 // events of a subject
	for n := 0; n < events; n += each {
		s := event.Subject{Type: event.Job, ID: fmt.Sprintf("01M7ZBMEYHBB62YP7E%08d-00001", n/each)}
		for first := int64(0); first < each; first += 50 { // those of a transaction
			tx := tb.Begin(l.m.Queue.NewID())
			for version := first + 1; version <= first+50; version++ {
				if err := event.Append(tx, s, version,
					event.New{Type: "job.state", Time: l.now.Load(), Component: "download"}); err != nil {
					l.Fatal(err)
				}
			}
			if err := tx.Commit(l.Context()); err != nil {
				l.Fatal(err)
			}
		}
		if _, err := log.Place(l.Context(), []event.Subject{s}); err != nil {
			l.Fatal(err)
		}
	}
}

// timeBoth opens a page of two deployments, one after the other, again and again: so what else the machine does slows
// both alike. The least time is the one that it has slowed least. Nothing may have been counted before: what counts
// goes on, and looks at each row that is read.
func timeBoth(a, b pageWorld, ofA, ofB string) (x, y opened) {
	for _, w := range []pageWorld{a, b} {
		w.Helper()
		if err := w.queue.Measure(w.Context()); err != nil { // as the scheduler does each minute
			w.Fatal(err)
		}
	}
	for range *pageOpens {
		a.open(ofA, &x)
		b.open(ofB, &y)
	}
	for _, o := range []*opened{&x, &y} {
		o.took = o.took[1:]
		slices.Sort(o.took)
	}
	return x, y
}

// count opens a page once more, and counts what that takes. Then it asks whether it has changed, as the page does.
func (w pageWorld) count(path string, o *opened) {
	w.Helper()
	if err := w.queue.Measure(w.Context()); err != nil {
		w.Fatal(err)
	}
	used := w.system.UseOfTable("api")
	w.open(path, o)
	u := used()
	o.took, o.calls, o.units, o.kinds = o.took[:len(o.took)-1], u.Calls, u.Units, u.Kinds
	w.ask(path, o)
}

// open opens a page.
func (w pageWorld) open(path string, o *opened) {
	w.Helper()
	began := time.Now()
	res, body := w.get(path, "Accept-Encoding", "gzip")
	o.took = append(o.took, time.Since(began))
	o.bytes = len(body)
	if res.StatusCode != http.StatusOK || res.Header.Get("Content-Encoding") != "gzip" {
		w.Fatalf("%s: %s: %.2000s", path, res.Status, body)
	}
	o.tag = res.Header.Get("ETag")
}

// ask asks whether a page has changed.
func (w pageWorld) ask(path string, o *opened) {
	w.Helper()
	_, page := w.get(path)
	if m := everyOf.FindSubmatch(page); m != nil {
		o.every, _ = strconv.Atoi(string(m[1]))
		used := w.system.UseOfTable("api")
		res, _ := w.get(path, "HX-Request", "true", "If-None-Match", o.tag)
		if res.StatusCode != http.StatusNotModified {
			w.Errorf("%q changes while nothing happens: %s", path, res.Status)
		}
		o.again = used()
	}
}

// least is the least of the times, in milliseconds.
func (o opened) least() float64 { return float64(o.took[0].Microseconds()) / 1000 }

// everyOf is how often a page says that it asks.
var everyOf = regexp.MustCompile(`hx-trigger="every (\d+)s`)

// get reads a page with headers.
func (w pageWorld) get(path string, headers ...string) (*http.Response, []byte) {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), http.MethodGet, w.server.URL+"/console/"+path, http.NoBody)
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	if r.Header.Get("Accept-Encoding") == "" {
		r.Header.Set("Accept-Encoding", "identity")
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil {
		w.Fatal(err)
	}
	return res, body
}

// What a request of the console takes of the function of the API, by which it is billed: 0.1 s and 8 ms for each call
// of the table, one after another, in 1 GB. Some calls are made at once. A line is logged, and each request is traced.
const (
	pageSeconds   = 0.1
	secondsOfCall = 0.008
	pageGB        = 1
	pageLogged    = 1500 // bytes
)

// hour is what a page costs that is open for an hour while nothing happens, in US$, and how often it asks.
func (o opened) hour() (asks int, cost float64) {
	of := func(calls int, units float64) float64 {
		return perRequest + perLambda + perTrace + pageLogged*perLogged + units*perRead +
			(pageSeconds+secondsOfCall*float64(calls))*pageGB*perGBs
	}
	asks = console.Asked(o.every, time.Hour)
	return asks, of(o.calls, o.units) + float64(asks)*of(o.again.Calls, o.again.Units)
}

// thePages are the pages whose cost may depend on how much there is.
func thePages(completed, failed queue.Job) []string {
	return []string{"", "batches", "batches?state=completed", "batches?submitter=user-07",
		"batches/" + completed.Job.Batch, "jobs", "jobs?state=Completed", "jobs?state=Failed", "jobs?state=Deleted",
		"jobs?collection=" + nameOf(7), "jobs?message=answered", "jobs?submitter=user-07",
		"job-counts", "job-counts?by=batch", "job-counts?count=all", "collections", "formats",
		"jobs/" + url.PathEscape(completed.Job.ID), "jobs/" + url.PathEscape(failed.Job.ID), "queue", "operations",
		"objects", "objects?title=map", "objects?date=1750", "events", "events?collection=" + nameOf(7), "consumers",
		"consumers/statistics",
		"components", "research", "archives", "doctor", "submit", "search?q=map"}
}

// mostCalls are the calls of the table that a page takes at most, 10 if it is not here: those whose number does not
// depend on how many jobs, objects and events there are, but on what else there is.
func mostCalls(path string) int {
	switch name, _, _ := strings.Cut(path, "?"); name {
	case "": // the status, with its consumers and components, the last 24 hours, and the list of batches
		return 50
	case "consumers/statistics": // one consumer by itself is read exactly, in each collection in which it is behind
		return 60
	}
	if strings.HasSuffix(path, "count=all") { // more than a list: it is asked for
		return 26
	}
	return 10
}

// TestPages opens the pages of the console on a small deployment and on a large one: a page of the large one takes no
// more calls of the table than bounded reads need, and its size does not grow. A page that is open while nothing
// happens is told so, and costs less than US$ 0.001 in an hour. The times are for bench/RESULTS.md; no test depends on
// them.
func TestPages(t *testing.T) {
	small, c1, f1 := newPageWorld(t, little())
	began := time.Now()
	large, c2, f2 := newPageWorld(t, big(*pageJobs, *pageObjects, *pageEvents))
	var memory runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&memory)
	t.Logf("%d jobs, %d objects, %d more events in %s; %d MB of memory", *pageJobs, *pageObjects, *pageEvents,
		time.Since(began).Round(time.Second), memory.HeapAlloc>>20)
	t.Logf("| page | ms of %d jobs: least, median, most | calls | read units | ms of all | ratio of the least | "+
		"calls | read units | KB | asks in an hour | US$ of an hour |", smallJobs)
	of, paths := thePages(c2, f2), thePages(c1, f1)
	as, bs := make([]opened, len(paths)), make([]opened, len(paths))
	for i, path := range paths {
		as[i], bs[i] = timeBoth(small, large, path, of[i])
	}
	for i, path := range paths {
		a, b := &as[i], &bs[i]
		small.count(path, a)
		large.count(of[i], b)
		asks, cost := b.hour()
		t.Logf("| `%s` | %s | %d | %.1f | %s | %.2f | %d | %.1f | %.1f | %d | %.5f |", path, spread(a.took), a.calls,
			a.units, spread(b.took), b.least()/a.least(), b.calls, b.units, float64(b.bytes)/1024, asks, cost)
		if b.bytes > 100<<10 {
			t.Errorf("%q has %d bytes", path, b.bytes)
		}
		if most := mostCalls(path); a.calls > most || b.calls > most {
			t.Errorf("%q takes %d calls of the table, and in the large deployment %d, at most %d: %v", path, a.calls,
				b.calls, most, b.kinds)
		}
		if cost >= 0.001 {
			t.Errorf("%q costs US$ %.5f in an hour in which nothing happens: %d times %.1f read units", path, cost,
				asks, b.again.Units)
		}
	}
}

// spread is the least, the median and the most of sorted times, in milliseconds.
func spread(took []time.Duration) string {
	ms := func(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
	return fmt.Sprintf("%.1f, %.1f, %.1f", ms(took[0]), ms(took[len(took)/2]), ms(took[len(took)-1]))
}
