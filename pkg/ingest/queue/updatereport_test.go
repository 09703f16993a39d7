package queue_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// updateReport is the action update-report on a batch, as an operator.
func (b *bench) updateReport(id string, more ...func(a *ingest.Action)) (ingest.ActionResult, error) {
	b.Helper()
	a := ingest.Action{Name: ingest.ActUpdateReport, Target: ingest.Target{Kind: ingest.TargetBatch, ID: id},
		Reason: "the sources are corrected", Actor: "me", Role: ingest.Operator}
	for _, m := range more {
		m(&a)
	}
	return queue.Admin{Queue: b.q}.Act(b.Context(), a)
}

// saves is a report's step that finds a number of changes.
func saves(changes int) queue.Step {
	return func(_ context.Context, c *queue.Claim) (ingest.Result, error) {
		c.Batch.Report, c.Batch.Reports, c.Batch.Changes = "reports/x.json", c.Batch.LastReport()+1, changes
		return ingest.Result{Outcome: ingest.StepNext}, nil
	}
}

// down is a try that fails because the store does not answer.
func down(context.Context, *queue.Claim) (ingest.Result, error) {
	return ingest.Result{}, errors.New("the store does not answer")
}

// failedBatch is a reported batch whose one job failed and can be requeued.
func (b *bench) failedBatch() (batch, job string) {
	b.Helper()
	batch, report := b.toReport()
	b.handle(report, saves(0))
	job = b.edit(ingest.JobID(batch, 1), func(row *queue.Job) { row.NotRecoverable = false })
	return batch, job
}

// complete requeues a job and runs it to its end.
func (b *bench) complete(job string) {
	b.Helper()
	b.requeue(job)
	b.tick()
	b.handle(b.last(), ok)
	b.tick()
	b.through(b.last())
	if j := b.job(job); j.State != ingest.Completed {
		b.Fatalf("the job is %s", j.State)
	}
}

// TestUpdateReport: a failed batch whose job was requeued and completed says so, reports
// again, sends one mail and is Completed.
func TestUpdateReport(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	batch, job := b.failedBatch()
	b.complete(job)
	if got := b.batch(batch); got.State != ingest.BatchFailed {
		t.Fatalf("the batch is %s before its report", got.State)
	}
	x, err := b.q.ExplainBatch(t.Context(), batch)
	if err != nil || !strings.Contains(said(x), "archivist batch update-report "+batch) || x.Waits != explain.Person {
		t.Errorf("explained as %+v, %v", x, err)
	}

	dry, err := b.updateReport(batch, func(a *ingest.Action) { a.DryRun = true })
	if err != nil || dry.Changed || dry.From != "Failed" || dry.To != "UpdateReporting" ||
		b.batch(batch).State != ingest.BatchFailed {
		t.Errorf("dry run: %+v, %v", dry, err)
	}
	did, err := b.updateReport(batch)
	if err != nil || !did.Changed || did.To != "UpdateReporting" || !strings.Contains(did.Summary, "1 completed") {
		t.Fatalf("%+v, %v", did, err)
	}
	again, err := b.updateReport(batch)
	if err != nil || again.Changed || again.To != "" {
		t.Errorf("again: %+v, %v", again, err)
	}
	m := b.last()
	if m.Step != "report" || m.Batch != batch || m.Exec != b.batch(batch).Exec {
		t.Fatalf("started %+v", m)
	}
	b.handle(m, saves(1))
	got := b.batch(batch)
	if got.State != ingest.BatchCompleted || got.LastReport() != 2 || len(p.got) != 3 ||
		!strings.Contains(p.got[2], ".update-report.") {
		t.Errorf("the batch is %s with report %d; sent %v", got.State, got.LastReport(), p.got)
	}
	events, err := b.q.Events(t.Context(), event.Subject{Type: event.Batch, ID: batch}, "")
	if err != nil {
		t.Fatal(err)
	}
	var by []string
	for _, e := range events.Items {
		if strings.Contains(e.Detail, `"to":"UpdateReporting"`) {
			by = append(by, e.Actor+": "+e.Detail)
		}
	}
	if len(by) != 1 || !strings.HasPrefix(by[0], "me: ") || !strings.Contains(by[0], "the sources are corrected") {
		t.Errorf("events %v", by)
	}
}

// TestUpdateReportWithoutChange: no mail says that nothing has changed.
func TestUpdateReportWithoutChange(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	batch, _ := b.failedBatch()
	for n := 2; n <= 3; n++ {
		if _, err := b.updateReport(batch); err != nil {
			t.Fatal(err)
		}
		b.handle(b.last(), saves(0))
		if got := b.batch(batch); got.State != ingest.BatchFailed || got.LastReport() != n || len(p.got) != 2 {
			t.Errorf("the batch is %s with report %d; sent %v", got.State, got.LastReport(), p.got)
		}
	}
}

// TestUpdateReportIsRefused: while jobs are open, without jobs, and in other states, with the
// reason and what to do.
func TestUpdateReportIsRefused(t *testing.T) {
	b := newBench(t)
	refused := func(batch string, says ...string) {
		t.Helper()
		before := b.batch(batch)
		_, err := b.updateReport(batch)
		if !fault.Is(err, fault.Conflict) {
			t.Fatalf("%v", err)
		}
		for _, s := range says {
			if !strings.Contains(err.Error(), s) {
				t.Errorf("%v; expected %q", err, s)
			}
		}
		if after := b.batch(batch); after.State != before.State || after.Exec != before.Exec {
			t.Errorf("the batch is %s after the refusal", after.State)
		}
	}
	processing := b.submit(1, "")
	refused(processing, "Processing", "Failed")

	empty := b.submitted()
	b.handle(b.last(), fails(false))
	refused(empty, "has no jobs", "submit it again")

	batch, job := b.failedBatch()
	b.requeue(job)
	refused(batch, "Jobs that have not ended: 1 of 1", "0 of them on hold", "archivist job list -b "+batch)
	if _, err := b.updateReport("01M7ZBMEYHBB62YP6RY21T1GQ6"); !fault.Is(err, fault.NotFound) {
		t.Errorf("no such batch: %v", err)
	}
	if _, err := b.updateReport(batch, func(a *ingest.Action) { a.Role = ingest.Viewer }); !fault.Is(err,
		fault.Denied) {
		t.Errorf("a viewer: %v", err)
	}
}

// TestRequeuedDuringUpdateReport: a job that is requeued while the batch reports keeps it from
// being Completed.
func TestRequeuedDuringUpdateReport(t *testing.T) {
	b := newBench(t)
	batch, job := b.failedBatch()
	if _, err := b.updateReport(batch); err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), func(ctx context.Context, c *queue.Claim) (ingest.Result, error) {
		b.requeue(job)
		return saves(1)(ctx, c)
	})
	if got := b.batch(batch); got.State != ingest.BatchFailed {
		t.Fatalf("the batch is %s with an open job", got.State)
	}
}

// TestUpdateReportThatFails: a report that cannot be made leaves the batch Failed with the
// earlier report, without a mail, and can be asked for again.
func TestUpdateReportThatFails(t *testing.T) {
	b := newBench(t)
	p := &post{to: []string{"a@example.org"}}
	b.q.Compose = p.compose
	batch, _ := b.failedBatch()
	if _, err := b.updateReport(batch); err != nil {
		t.Fatal(err)
	}
	m := b.last()
	for b.batch(batch).State == ingest.BatchUpdateReporting {
		b.now = b.now.Add(b.handle(m, down))
	}
	if got := b.batch(batch); got.State != ingest.BatchFailed || got.LastReport() != 1 || len(p.got) != 2 ||
		!strings.Contains(got.Message, "Correct that, then repeat the action update-report") {
		t.Errorf("the batch is %s, %q, with report %d; sent %v", got.State, got.Message, got.LastReport(), p.got)
	}
	if _, err := b.updateReport(batch); err != nil {
		t.Error(err)
	}
}

// TestDeletedJobsAreTold: a batch whose failed jobs a person has deleted says how many of its jobs stored nothing.
func TestDeletedJobsAreTold(t *testing.T) {
	b := newBench(t)
	batch, job := b.failedBatch()
	if _, err := queuetest.Act(t.Context(), b.q, ingest.ActDelete, job, queuetest.Confirmed); err != nil {
		t.Fatal(err)
	}
	if _, err := b.updateReport(batch); err != nil {
		t.Fatal(err)
	}
	b.handle(b.last(), saves(1))
	if got := b.batch(batch); got.State != ingest.BatchCompleted ||
		!strings.HasPrefix(got.Message, "a person has deleted 1 of 1 job; ") {
		t.Errorf("the batch is %s: %q", got.State, got.Message)
	}
}
