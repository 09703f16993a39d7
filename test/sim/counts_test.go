package sim

import (
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// recount checks every batch's counts against its jobs.
func (c *checker) recount() {
	sum, stopped := map[string]map[ingest.Class]int64{}, map[string]int64{}
	amounts := map[string]ingest.Amounts{}
	for _, j := range c.jobs {
		if s := c.batches[j.Batch].State; j.State.Open() && (s == ingest.BatchCompleted || s == ingest.BatchDeleted) {
			c.fail("batch %s is %s, but its job %s is %s", j.Batch, s, j.Job.ID, j.State)
		}
		if sum[j.Batch] == nil {
			sum[j.Batch] = map[ingest.Class]int64{}
		}
		sum[j.Batch][j.State.Class()]++
		if j.Stopped {
			stopped[j.Batch]++
		}
		a := amounts[j.Batch]
		a.Add(j.Amounts())
		amounts[j.Batch] = a
	}
	for id, b := range c.batches {
		if b.State == ingest.BatchDeleted {
			continue // the rows of its jobs are being removed
		}
		n, got := sum[id], c.counts[id]
		want := ingest.Counts{Processing: n[ingest.ClassProcessing], Held: n[ingest.ClassHeld],
			Failed: n[ingest.ClassFailed], Completed: n[ingest.ClassCompleted], Deleted: n[ingest.ClassDeleted],
			Stopped: stopped[id], Amounts: amounts[id]}
		if got.CallFailed > 0 {
			c.w.Met("a callback that a requeue sends again")
		}
		if got != want {
			c.fail("batch %s counts %+v, its jobs are %+v", id, got, want)
		}
		if b.Sealed && got.Sum() != int64(b.Expected) {
			c.fail("batch %s sums to %d of %d", id, got.Sum(), b.Expected)
		}
	}
}

// success checks an answered success against the job's row.
func (c *checker) success(m queue.Message) {
	if m.Job == "" {
		return
	}
	j := c.jobs[m.Job]
	if j.Exec == m.Exec && string(j.State) == m.State {
		c.fail("success was answered for job %s at %s, which it has not left", m.Job, m.State)
	}
}

// handled is called after a worker has handled a message without a fault since from. If that
// ended the last job of a batch, the batch must have closed.
func (c *checker) handled(a *actor, from int) {
	for id, b := range c.batches {
		last := c.closed[id]
		if last.by == a && last.at > from && b.Sealed && b.State == ingest.BatchProcessing && c.counts[id].Open() == 0 {
			c.fail("batch %s has no open job, and was not closed", id)
		}
	}
}

// closing is the actor that ended the last job of a batch, and the change.
type closing struct {
	by *actor
	at int
}
