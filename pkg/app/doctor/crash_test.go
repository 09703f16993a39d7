package doctor_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/app/doctor"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/ingest/workspace"
	"archivist/pkg/kernel/table/tabletest"
)

// calls counts the requests of a doctor to the table and to S3, and refuses all from one on.
type calls struct {
	n      atomic.Int64
	refuse int64 // the first that is refused; 0 = none
}

var errKilled = errors.New("killed")

func (c *calls) refused() bool { return c.n.Add(1) >= c.refuse && c.refuse > 0 }

// counted is a doctor whose requests are counted. A refused one may have been made.
func (w *world) counted(c *calls, made bool) doctor.Doctor {
	w.S3.Before = func(string, string) int {
		if c.refused() {
			return http.StatusServiceUnavailable
		}
		return 0
	}
	client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(_ string, call func() error) error {
		refused := c.refused()
		if refused && (!made || c.n.Load() > c.refuse) {
			return errKilled
		}
		err := call()
		if refused {
			err = errKilled
		}
		return err
	}}
	return w.through(client)
}

// run continues a run of the doctor from a cursor, to its end or to an error.
func (w *world) run(d doctor.Doctor, cursor string) (reached string, err error) {
	ctx, cancel := context.WithTimeout(w.Context(), time.Minute)
	defer cancel()
	for first := true; first || cursor != ""; first = false {
		page, err := d.Check(ctx, cursor, true, w.now.Add(time.Minute))
		if err != nil {
			return cursor, err
		}
		cursor = page.Cursor
	}
	return "", nil
}

// TestRestart: a doctor dies at each of its requests, before or after its effect. Another
// one continues from the last cursor, and all is repaired.
func TestRestart(t *testing.T) {
	w := settled(t)
	keys := w.S3.Names("")
	for stop, done := int64(1), false; !done; stop++ {
		w.damage()
		c := &calls{refuse: stop}
		cursor, err := w.run(w.counted(c, stop%2 == 0), "")
		done = err == nil
		w.S3.Before = nil
		if _, err := w.run(w.doctor(), cursor); err != nil {
			t.Fatalf("died at request %d, then: %v", stop, err)
		}
		w.finds(false)
		if after := w.S3.Names(""); !slices.Equal(keys, after) {
			t.Fatalf("died at request %d: the keys are %q", stop, after)
		}
		if stop > 1000 {
			t.Fatal("it never ends")
		}
	}
}

// damage does several repairable damages.
func (w *world) damage() {
	w.Helper()
	w.set(jobKey(w.failed), "ranking", str("0"))
	w.set(countKey(w.second), "n_completed", num(7))
	w.insert(key("SLOT", "none"), "owned_by", str("none"))
	w.drop(version(w, 2))
	w.store(w.below("inventory.json.sha512"), "0000 inventory.json\n")
	w.store(w.below("v2/content/"+w.deleted+".1/producer/x"), "x")
	w.putKey(w.Stages.Work.Bucket, workspace.FileKey(w.second, 1), "x")
}

// TestPages: a page ends in time, and has no more findings than an operation can keep; all
// pages together have each finding once.
func TestPages(t *testing.T) {
	w := newWorld(t)
	const slots = 130
	for n := range slots {
		w.insert(key("SLOT", fmt.Sprint(n)), "owned_by", str(fmt.Sprint(n)))
		w.store(fmt.Sprintf("stray%03d", n), "x")
		w.putKey(w.Stages.Work.Bucket, fmt.Sprintf("stray%03d", n), "x")
	}
	for _, until := range []time.Time{w.now, w.now.Add(time.Hour)} {
		seen, pages := map[string]int{}, 0
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, err := w.doctor().Check(t.Context(), cursor, false, until)
			if err != nil || len(page.Findings) > queue.MaxFindings || page.Progress == "" || pages > 4*slots {
				t.Fatalf("page %d: %d findings, %q, %v", pages, len(page.Findings), page.Progress, err)
			}
			for _, f := range page.Findings {
				seen[f.Invariant+f.Subject]++
			}
			cursor = page.Cursor
			pages++
		}
		if len(seen) != 3*slots {
			t.Errorf("%d findings in %d pages", len(seen), pages)
		}
		for f, n := range seen {
			if n != 1 {
				t.Errorf("%s was found %d times", f, n)
			}
		}
	}
	for _, cursor := range []string{"x", "e30"} {
		if _, err := w.doctor().Check(t.Context(), cursor, false, w.now); err == nil {
			t.Errorf("the cursor %q was accepted", cursor)
		}
	}
}

// TestLargeBatch: the jobs of a large batch are counted over several pages; jobs that move
// meanwhile begin the count again, and give no finding.
func TestLargeBatch(t *testing.T) {
	w := newWorld(t)
	const n = 2100
	ids := w.jobs(n)
	w.finds(false)
	w.set(countKey(ids[0]), "n_processing", num(n-1))
	w.finds(true, "batch-counts batch:"+batchOf(ids[0]))
	w.finds(false)

	pages, moves := 0, 0
	for cursor, first := "", true; first || cursor != ""; first = false {
		page, err := w.doctor().Check(t.Context(), cursor, true, w.now.Add(time.Minute))
		if err != nil || len(page.Findings) > 0 || pages > 100 {
			t.Fatalf("page %d: %+v, %v", pages, page, err)
		}
		cursor = page.Cursor
		pages++
		w.act(ingest.ActHold, "job:"+ids[moves])
		moves++
	}
	w.drop(jobKey(ids[n-1]))
	w.drop(jobKey(ids[7]))
	f := w.finds(true, "job-row batch:"+batchOf(ids[0]))
	if len(f) > 0 && !strings.HasSuffix(f[0].Evidence, ": 8 2100") {
		t.Errorf("missing are %s", f[0].Evidence)
	}
}

// TestLargeObject: an object of more keys than a page is checked in several, as a whole.
func TestLargeObject(t *testing.T) {
	w := settled(t)
	for n := range 2300 {
		w.store(w.below(fmt.Sprintf("v2/content/%s.1/producer/%04d", w.deleted, n)), "x")
	}
	w.store(w.below("x.txt"), "x") // it sorts behind all that an object has
	w.unstore(w.content(w.first))
	for _, until := range []time.Time{w.now, w.now.Add(time.Hour)} {
		var found []queue.Finding
		pages := 0
		for cursor, first := "", true; first || cursor != ""; first = false {
			page, err := w.doctor().Check(t.Context(), cursor, false, until)
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, page.Findings...)
			cursor = page.Cursor
			pages++
			if pages > 1000 {
				t.Fatalf("the check does not end; the cursor is %s", cursor)
			}
		}
		unnamed, missing, foreign := 0, 0, 0
		for _, f := range found {
			if f.Invariant == "storage-unnamed" {
				unnamed++
			}
			if f.Invariant == "storage-missing" {
				missing++
			}
			if f.Invariant == "storage-foreign" {
				foreign++
			}
		}
		if unnamed == 0 || missing != 1 || foreign != 1 || len(found) != unnamed+missing+foreign {
			t.Errorf("%d pages: %s", pages, text(found))
		}
	}
}

// TestStaleIndex: a place of the index that its row has left is a finding if it stays, and
// none if the index only lags.
func TestStaleIndex(t *testing.T) {
	w := newWorld(t)
	ids := w.jobs(2)
	w.finds(false) // the index has them
	w.act(ingest.ActHold, "job:"+ids[0])
	lag := 1000
	w.Rows.Lag = func() int { return lag }
	w.finds(false, "index-stale "+jobKey(ids[0]).String())
	reads := 0
	w.Rows.Lag = func() int {
		reads++
		if reads > 1 {
			return 0
		}
		return lag
	}
	w.finds(false)
}

// TestRepairWhileJobsRun: objects are repaired while jobs add versions to them, and both
// succeed.
func TestRepairWhileJobsRun(t *testing.T) {
	for seed := range 10 {
		w := settled(t)
		w.store(w.below("inventory.json.sha512"), "0000 inventory.json\n")
		w.store(w.below("v2/content/"+w.deleted+".1/producer/x"), "x")
		w.store(w.below("v3/content/"+w.deleted+".1/producer/x"), "x")
		w.store(w.below("v3/inventory.json"), fmt.Sprintf(`{"id": %q, "head": "v3", "manifest": {%q: [%q]}}`, w.object,
			strings.Repeat("0", 128), "v3/content/"+w.deleted+".1/producer/x"))
		w.store(w.below("v3/inventory.json.sha512"), "0000 inventory.json\n")
		next := w.jobs(1, stagetest.Of(w.object))[0]
		var mu sync.Mutex
		calls := 0
		work := func() {
			if !mu.TryLock() {
				return // a request of the job itself
			}
			defer mu.Unlock()
			calls++
			if calls%(seed+1) != 0 {
				return
			}
			if err := w.Machine.One(t.Context()); err != nil {
				t.Error(err)
			}
			_ = w.Machine.Scheduler.Tick(t.Context(), false)
		}
		client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(_ string, call func() error) error {
			work()
			return call()
		}}
		w.S3.Before = func(string, string) int { work(); return 0 }
		if _, err := w.through(client).All(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		w.S3.Before = nil
		w.Drive()
		w.Ended(next, 3, false)
		w.now = w.now.Add(time.Hour)
		w.Drive()
		w.finds(false)
	}
}

// TestWhileJobsRun: jobs are submitted, run, fail, are held and end between all requests of
// the doctor, and it finds nothing.
func TestWhileJobsRun(t *testing.T) {
	w := newWorld(t)
	var ids []string
	var mu sync.Mutex
	step := 0
	work := func() {
		mu.Lock()
		defer mu.Unlock()
		step++
		w.advance(7 * time.Second)
		switch step % 8 {
		case 0:
			if len(ids) < 24 {
				ids = append(ids, w.jobs(2, stagetest.Of("", fmt.Sprint("id ", step%5)))...)
			}
		case 3:
			_ = w.Machine.Scheduler.Tick(t.Context(), true)
			w.sweep()
		case 5:
			if step%80 == 5 && len(ids) > 0 {
				target := ingest.Target{Kind: ingest.TargetJob, ID: ids[len(ids)-2]}
				a := ingest.Action{Name: ingest.ActFail, Target: target, Reason: "a reason", Actor: "me",
					Role: ingest.Administrator}
				_, _ = queue.Admin{Queue: w.Machine.Queue}.Act(t.Context(), a) // it may not be running
			}
		default:
			if err := w.Machine.One(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}
	for range 120 {
		work()
	}
	client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(_ string, call func() error) error {
		work()
		return call()
	}}
	{
		d := w.through(client)
		var found []queue.Finding
		for cursor, pages := "", 0; pages == 0 || cursor != "" && pages < 200; pages++ {
			page, err := d.Check(t.Context(), cursor, true, time.UnixMilli(1<<50))
			if err != nil {
				t.Fatal(err)
			}
			found = append(found, page.Findings...)
			cursor = page.Cursor
		}
		if len(found) > 0 {
			t.Errorf("found:\n%s", text(found))
		}
	}
	done := 0
	for _, id := range ids {
		if w.Job(id).State == ingest.Completed {
			done++
		}
	}
	if done < 10 {
		t.Errorf("only %d of %d jobs were completed", done, len(ids))
	}
}

// TestCost counts the requests of a run. They are at most linear in the jobs and objects.
func TestCost(t *testing.T) {
	cost := map[int][2]int64{}
	for _, n := range []int{5, 25} {
		w := newWorld(t)
		for i := range n {
			w.Submit("a.txt", stagetest.Of("", fmt.Sprint(i)))
		}
		w.now = w.now.Add(time.Hour)
		var rows atomic.Int64
		client := &tabletest.Client{DynamoDBAPI: w.Rows, Do: func(_ string, call func() error) error {
			rows.Add(1)
			return call()
		}}
		clear(w.S3.Calls)
		if found, err := w.through(client).All(t.Context(), false); err != nil || len(found) > 0 {
			t.Fatal(err, text(found))
		}
		s3 := 0
		for _, calls := range w.S3.Calls {
			s3 += calls
		}
		cost[n] = [2]int64{rows.Load(), int64(s3)}
		t.Logf("%d batches of one job, one object each: %d requests to the table, %d to S3 %v; rows: %d", n,
			rows.Load(), s3, w.S3.Calls, len(w.Rows.All()))
	}
	each := [2]int64{(cost[25][0] - cost[5][0]) / 20, (cost[25][1] - cost[5][1]) / 20}
	if each[0] > 16 || each[1] > 6 {
		t.Errorf("a job and its object take %d requests to the table and %d to S3", each[0], each[1])
	}
}
