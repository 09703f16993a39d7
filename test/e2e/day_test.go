package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/lambda"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/formats/checkm"
	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// day is an operator's day: a collection of its own, its source, and the time of each step.
type day struct {
	*testing.T
	src        *source
	collection string
	began      time.Time
}

// TestDayInTheLife: what an operator does in a day, through the API: hold a collection in
// the middle of a large batch, submit more to it, lift the hold and release what it
// stopped; fail a job that is stuck, delete another; correct a source, requeue what failed
// and report again; cancel a batch; pause the queue while the functions are restarted;
// clean up. At the end the doctor finds nothing.
func TestDayInTheLife(t *testing.T) {
	begin(t)
	d := &day{T: t, src: newSource(t), collection: "day", began: time.Now()}
	large, stuck := d.submitLarge()
	more := d.holdInTheMiddle(large, stuck)
	d.releaseAll(large, more)
	free := d.failStuck(stuck)
	d.deleteOne(large)
	d.reportAgain(large, stuck, free)
	given := d.cancelAnother()
	d.pauseAndRestart()
	d.cleanUp(given)
	until(t, "the other batch completes", soon, func() bool { return batchOf(t, more).State == "Completed" })
	if found := findings(t, false); len(found) > 0 {
		t.Errorf("the doctor finds %+v", found)
	}
	d.step("the doctor finds nothing")
}

// step logs when a step is done.
func (d *day) step(format string, args ...any) {
	d.Helper()
	d.Logf("%5.1f s: %s", time.Since(d.began).Seconds(), fmt.Sprintf(format, args...))
}

// The rows of the large batch that need somebody.
const (
	largeRows  = 100
	stuckRow   = 3 // its source never ends
	missingRow = 5 // its file comes later
	unwanted   = 7 // its file never comes
)

// batch submits n files as one batch to the collection, each an object.
func (d *day) batch(name string, n int, path func(row int) string) string {
	d.Helper()
	var rows []checkm.Row
	for i := range n {
		p := path(i + 1)
		d.src.put(p, fmt.Appendf(nil, "content of %s", p))
		rows = append(rows, d.src.row(p))
	}
	in := v1.BatchRequest{Collection: d.collection, Submitter: d.Name(),
		Payload:      v1.Payload{URL: d.src.list(d.T, "/"+name+".checkm", "mrt-single-file-batch-manifest", rows...)},
		Notification: []string{strings.ToLower(d.Name()) + "@example.org"}}
	b, err := client.Submit(d.Context(), in, fmt.Sprint(d.Name(), name, time.Now().UnixNano()))
	if err != nil {
		d.Fatal(err)
	}
	return b.ID
}

func dayPath(row int) string { return fmt.Sprintf("/day-%03d.txt", row) }

// submitLarge submits the large batch. The source of one of its files hangs, and two files
// are missing.
func (d *day) submitLarge() (batch, stuck string) {
	batch = d.batch("large", largeRows, dayPath)
	for _, row := range []int{missingRow, unwanted} {
		d.src.remove(dayPath(row))
	}
	d.src.hold(dayPath(stuckRow))
	d.step("%d jobs are submitted", largeRows)
	return batch, ingest.JobID(batch, stuckRow)
}

// holdInTheMiddle holds the collection while the large batch runs. Nothing starts any more:
// its waiting jobs and the next batch become Held. A single job cannot be released.
func (d *day) holdInTheMiddle(large, stuck string) (more string) {
	until(d.T, "a part of the batch is done", 2*soon, func() bool { return batchOf(d.T, large).Counts.Completed >= 30 })
	d.does("collection:"+d.collection, v1.Action{Action: "hold", Reason: "rights are unclear"})
	until(d.T, "nothing of the collection runs but the stuck job", 2*soon, func() bool {
		c := batchOf(d.T, large).Counts
		return c.Processing == 1 && jobOf(d.T, stuck).State == "Downloading"
	})
	c := batchOf(d.T, large).Counts
	if c.Held < 20 || c.Held+c.Completed+c.Failed != largeRows-1 {
		d.Errorf("on hold the counts are %+v", c)
	}
	d.step("the collection is on hold: %+v", c)

	more = d.batch("more", 2, func(row int) string { return fmt.Sprintf("/more-%d.txt", row) })
	until(d.T, "the next batch is held", soon, func() bool { return batchOf(d.T, more).State == "Held" })
	explains(d.T, more, "hold", "rights are unclear")
	last := ingest.JobID(large, largeRows)
	if j := jobOf(d.T, last); j.State != "Held" {
		d.Errorf("the last job is %s", j.State)
	}
	d.refused("job:"+last, v1.Action{Action: "release", Reason: "urgent"}, fault.Held, "rights are unclear")
	d.step("the next batch is held, and a release is refused")
	return more
}

// releaseAll lifts the hold, and releases all that it has stopped in one operation.
func (d *day) releaseAll(large, more string) {
	held := batchOf(d.T, large).Counts.Held
	did := d.does("collection:"+d.collection, v1.Action{Action: "release", Reason: "rights are cleared"})
	if did.Next == nil {
		d.Fatalf("the end of the hold offers nothing: %+v", did)
	}
	// The jobs of the one batch, and the other batch.
	if o := d.operation(*did.Next, "rights are cleared"); int64(o.Done) != held+1 || o.Refused != 0 {
		d.Errorf("%d were held, the operation is %+v", held, o)
	}
	if b := batchOf(d.T, more); b.State == "Held" {
		d.Errorf("the next batch is still held: %s", b.Message)
	}
	d.step("%d jobs are released", held)
}

// failStuck fails the job whose source hangs. The returned function repairs the source.
func (d *day) failStuck(stuck string) (free func()) {
	d.does("job:"+stuck, v1.Action{Action: "fail", Reason: "its source hangs"})
	if j := jobOf(d.T, stuck); j.State != "Failed" || !strings.Contains(j.Message, "its source hangs") {
		d.Errorf("the stuck job is %s: %s", j.State, j.Message)
	}
	d.step("the stuck job is failed")
	return func() { d.src.free(dayPath(stuckRow)) }
}

// deleteOne gives up a job whose file never comes, which needs confirmation while its batch
// is unfinished.
func (d *day) deleteOne(large string) {
	job := ingest.JobID(large, unwanted)
	ends(d.T, job, "Failed", soon)
	act := v1.Action{Action: "delete", Reason: "not wanted any more"}
	d.refused("job:"+job, act, fault.Conflict, "its report will only say that")
	act.Confirm = true
	d.does("job:"+job, act)
	if j := jobOf(d.T, job); j.State != "Deleted" {
		d.Errorf("the deleted job is %s", j.State)
	}
	d.step("a job is deleted")
}

// reportAgain corrects what made jobs of the large batch fail, requeues them in one
// operation, and reports again.
func (d *day) reportAgain(large, stuck string, free func()) {
	until(d.T, "the large batch reports", 5*soon, func() bool { return batchOf(d.T, large).State == "Failed" })
	want := v1.Counts{Expected: largeRows, Failed: 2, Deleted: 1, Completed: largeRows - 3}
	if b := batchOf(d.T, large); b.Counts != want {
		d.Errorf("the counts are %+v", b.Counts)
	}
	d.step("the large batch has reported")
	d.src.put(dayPath(missingRow), []byte("it is there"))
	free()
	missing := ingest.JobID(large, missingRow)
	d.src.put(dayPath(missingRow), fmt.Appendf(nil, "content of %s", dayPath(missingRow)))
	o := d.operation(v1.Bulk{Action: "requeue", Filter: v1.JobFilter{Batch: large}}, "the source is corrected")
	if o.Planned != 2 || o.Done != 2 {
		d.Errorf("the requeue is %+v", o)
	}
	for _, job := range []string{stuck, missing} {
		ends(d.T, job, "Completed", soon)
	}
	explains(d.T, large, "", "update-report")
	d.does("batch:"+large, v1.Action{Action: "update-report", Reason: "all is preserved now"})
	until(d.T, "the batch completes", soon, func() bool { return batchOf(d.T, large).State == "Completed" })
	until(d.T, "the second report is mailed", soon, func() bool { return len(mails(d.T, "NOW PRESERVED")) == 1 })
	d.step("the batch is complete, and has reported again")
}

// cancelAnother cancels a batch whose downloads hang.
func (d *day) cancelAnother() (batch string) {
	const n = 12
	path := func(row int) string { return fmt.Sprintf("/cancel-%d.txt", row) }
	for row := range n {
		d.src.hold(path(row + 1))
	}
	batch = d.batch("cancel", n, path)
	until(d.T, "its jobs download", soon, func() bool { return d.src.underWay() >= 3 })
	d.does("batch:"+batch, v1.Action{Action: "cancel", Reason: "the wrong files"})
	until(d.T, "the cancelled batch reports", 2*soon, func() bool { return batchOf(d.T, batch).State == "Failed" })
	if c := batchOf(d.T, batch).Counts; c.Failed+c.Deleted != n || c.Failed == 0 {
		d.Errorf("the counts of the cancelled batch are %+v", c)
	}
	for row := range n {
		d.src.free(path(row + 1))
	}
	d.step("a batch is cancelled")
	return batch
}

// pauseAndRestart pauses the queue, ends all functions, and resumes.
func (d *day) pauseAndRestart() {
	d.does("queue", v1.Action{Action: "pause", Reason: "maintenance"})
	batch := d.batch("paused", 3, func(row int) string { return fmt.Sprintf("/paused-%d.txt", row) })
	until(d.T, "the batch is unpacked", soon, func() bool { return batchOf(d.T, batch).Counts.Expected == 3 })
	if ended := endFunctions(d.T); ended == 0 && !inProcess() { // there, only those that are at work are processes
		d.Error("no function was running")
	}
	sweeps := map[string]bool{}
	until(d.T, "the scheduler runs three times", soon, func() bool {
		q, err := client.Queue(d.Context())
		if err != nil {
			return false // a process that was ended answers once more, with an error
		}
		sweeps[q.LastSweep] = true
		return len(sweeps) > 3
	})
	for row := range 3 {
		job := ingest.JobID(batch, row+1)
		until(d.T, "job "+job+" is Pending", soon, func() bool { return jobOf(d.T, job).State == "Pending" })
	}
	explains(d.T, ingest.JobID(batch, 1), "", "maintenance")
	d.does("queue", v1.Action{Action: "resume", Reason: "done"})
	until(d.T, "the batch completes", soon, func() bool { return batchOf(d.T, batch).State == "Completed" })
	d.step("the queue was paused, all functions restarted")
}

// endFunctions ends all processes of functions.
func endFunctions(t *testing.T) (ended int) {
	t.Helper()
	if !inProcess() {
		return killFunctions(t)
	}
	all, err := lambda.NewFromConfig(cfg).ListFunctions(t.Context(), &lambda.ListFunctionsInput{})
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range all.Functions {
		ended += system.Kill(*f.FunctionName)
	}
	return ended
}

// cleanUp removes the work files of the cancelled batch's failed jobs, as its clean-up
// offers.
func (d *day) cleanUp(batch string) {
	failed := batchOf(d.T, batch).Counts.Failed
	did, err := client.Act(d.Context(), ingest.Target{Kind: ingest.TargetBatch, ID: batch},
		v1.Action{Action: "clean-up", Reason: "the end of the day"}, "")
	if err != nil || did.Next == nil {
		d.Fatalf("the clean-up of a failed batch is %+v, %v", did, err)
	}
	if o := d.operation(*did.Next, "the end of the day"); int64(o.Done) != failed || o.Refused != 0 {
		d.Errorf("%d jobs have failed, the clean-up is %+v", failed, o)
	}
	d.step("the work files of %d jobs are removed", failed)
}

// does does an action through the API.
func (d *day) does(target string, a v1.Action) v1.ActionResult {
	d.Helper()
	to, err := ingest.ParseTarget(target)
	if err != nil {
		d.Fatal(err)
	}
	did, err := client.Act(d.Context(), to, a, "")
	if err != nil || !did.Changed {
		d.Fatalf("%s of %s: %+v, %v", a.Action, target, did, err)
	}
	return did
}

// refused expects that an action is refused.
func (d *day) refused(target string, a v1.Action, kind fault.Kind, says string) {
	d.Helper()
	to, err := ingest.ParseTarget(target)
	if err != nil {
		d.Fatal(err)
	}
	if did, err := client.Act(d.Context(), to, a, ""); !fault.Is(err, kind) || !strings.Contains(err.Error(), says) {
		d.Errorf("%s of %s: %+v, %v; expected %s: %q", a.Action, target, did, err, kind, says)
	}
}

// operation starts a bulk operation through the API, and returns it when it is done.
func (d *day) operation(b v1.Bulk, reason string) v1.OperationCounts {
	d.Helper()
	o, err := client.Start(d.Context(), v1.OperationRequest{Action: b.Action, Filter: &b.Filter,
		ActionOptions: v1.ActionOptions{Reason: reason}}, "")
	if err != nil {
		d.Fatal(err)
	}
	until(d.T, "the operation "+b.Action+" is done", 2*soon, func() bool {
		if o, err = client.Operation(d.Context(), o.ID); err != nil {
			d.Fatal(err)
		}
		return o.State == "Done"
	})
	return o.Counts
}
