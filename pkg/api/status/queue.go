package status

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
)

// failures are the jobs and batches that have failed recently and are failed still, by their
// causes, and how many jobs are failed since before that.
func (s *Service) failures(ctx context.Context, out *section) error {
	causes, jobs, more, err := s.Queue.Failures(ctx, out.now.Add(-recently))
	if err != nil {
		return err
	}
	out.cut(more, "not all jobs were looked at that failed in the last 24 hours; the causes are "+
		"those of the newest %s", ingest.Number(jobs))
	for _, c := range causes {
		line := v1.StatusLine{Text: c.Example(), Attention: true, Count: int64(c.Jobs),
			Since:   since(c.Since),
			Command: "archivist job list --state failed"}
		if text := c.Common(); text != "" {
			line.Command += " --message '" + text + "'"
		}
		out.add(line)
	}

	rejected, err := s.rejected(ctx, out)
	if err != nil {
		return err
	}
	atLeast := ""
	if more {
		atLeast = "at least "
	}
	switch {
	case jobs+rejected == 0 && !more:
		out.Summary = "nothing failed in the last 24 hours"
	default:
		out.Summary = fmt.Sprintf("failed in the last 24 hours, and still so: %s%s, %s", atLeast,
			ingest.Counted(jobs, "job"), countedBatches(rejected))
	}
	return s.failedBeside(ctx, out, jobs, more)
}

// mostFailed is how many failed jobs are counted, whenever they failed.
const mostFailed = 200

// failedBeside adds the jobs that failed before the recent ones: nothing but a person ends that. If
// not all recent ones were looked at, they can be among these.
func (s *Service) failedBeside(ctx context.Context, out *section, recent int, unread bool) error {
	n, more, all, err := s.Queue.FailedBeside(ctx, recent, out.now.Add(-recently), mostFailed)
	if err != nil || n == 0 {
		return err
	}
	text, when := "a job that failed more than 24 hours ago", "before"
	if unread {
		text, when = "a job that is failed, and is not among those whose causes are told", "beside"
	}
	out.cut(!all && !unread, "jobs that failed more than 24 hours ago and have work files are not "+
		"counted until the doctor has listed all jobs")
	out.cut(more && !unread, "more than %s jobs are failed", ingest.Number(mostFailed))
	out.add(v1.StatusLine{Text: text + "; requeue or delete it",
		Attention: true, Count: int64(n), Command: "archivist job list --state failed"})
	out.Summary += "; " + ingest.Counted(n, "job") + " " + when
	return nil
}

func countedBatches(n int) string {
	if n == 1 {
		return "1 batch without jobs"
	}
	return ingest.Number(n) + " batches without jobs"
}

// rejected adds the batches that failed before they had jobs, e.g. since their manifest was
// rejected.
func (s *Service) rejected(ctx context.Context, out *section) (int, error) {
	batches, more, err := s.Queue.Rejected(ctx, out.now.Add(-recently))
	if n := len(batches); n > 0 {
		out.cut(more && out.Cut == "", "there are more failed batches than were read")
		newest, oldest := &batches[0], &batches[n-1]
		example := ingest.Cut(newest.Batch.ID+": "+newest.Message, 300)
		out.add(v1.StatusLine{Text: "failed before there were jobs, e.g. " + example,
			Attention: true, Count: int64(n), Since: since(oldest.Created),
			Command: "archivist batch list --state failed"})
	}
	return len(batches), err
}

// silent is from when on a scheduler that has not swept is silent: it sweeps each minute.
const silent = 5 * time.Minute

// waiting is what waits at the gates, and whether the scheduler admits it.
func (s *Service) waiting(ctx context.Context, out *section) error {
	o, err := s.overview(ctx)
	if err != nil {
		return err
	}

	switch swept, err := time.Parse(time.RFC3339, o.LastSweep); {
	case o.LastSweep == "":
		out.add(v1.StatusLine{Text: "the scheduler has not swept yet: nothing is admitted",
			Attention: true, Count: 1})
	case err == nil && out.now.Sub(swept) > silent:
		out.add(v1.StatusLine{Text: "the scheduler is silent: nothing is admitted or repaired",
			Attention: true,
			Count:     1, Since: o.LastSweep})
	}

	all, parts, more := 0, []string{}, ""
	for _, place := range []string{ingest.WorkPending, ingest.WorkProvisioning, ingest.WorkParked} {
		if n := o.Waiting[place]; n > 0 {
			all += n
			text := ingest.Number(n) + " " + place
			if slices.Contains(o.MoreThan, place) {
				text, more = "more than "+text, "more than "
			}
			parts = append(parts, text)
		}
	}
	out.Summary = "nothing waits"
	if all > 0 {
		out.Summary = fmt.Sprintf("%s%s: %s", more, waitText(all), strings.Join(parts, ", "))
	}

	if o.OldestWaiting != "" {
		waits, err := time.Parse(time.RFC3339, o.OldestSince)
		out.add(v1.StatusLine{Text: "the oldest: " + o.OldestWaiting, Count: 1,
			Since:     o.OldestSince,
			Attention: err == nil && out.now.Sub(waits) > recently,
			Command:   "archivist explain " + o.OldestWaiting})
	}
	return s.heads(ctx, out)
}

func waitText(n int) string {
	if n == 1 {
		return "1 job waits"
	}
	return ingest.Number(n) + " jobs wait"
}

// heads adds the first job at each gate, and why it does not pass.
func (s *Service) heads(ctx context.Context, out *section) error {
	if s.attention {
		return nil
	}
	now, err := s.inWork(ctx)
	for _, h := range now.Heads {
		if h.N > 1 {
			continue
		}
		out.add(v1.StatusLine{Text: fmt.Sprintf("first of the %s: %s", h.Gate, h.Why), Count: 1,
			Since: since(h.Job.Entered), Command: "archivist explain " + h.Job.Job.ID})
	}
	return err
}

// holds are the pauses and holds. A person has decided each, so none needs one by itself.
func (s *Service) holds(ctx context.Context, out *section) error {
	o, err := s.overview(ctx)
	if err != nil {
		return err
	}
	for i := range o.Holds {
		h := &o.Holds[i]
		line := v1.StatusLine{Text: fmt.Sprintf("%s, by %s: %s", h.Target(), h.Actor, h.Reason),
			Count: 1,
			Since: since(h.Since)}
		if h.Until > 0 {
			line.Text += ", until " + ingest.Timestamp(h.Until)
		}
		out.add(line)
	}

	if n := o.Waiting[ingest.WorkHeld]; n > 0 {
		text := "jobs and batches that are on hold"
		if slices.Contains(o.MoreThan, ingest.WorkHeld) {
			text += "; there are more"
		}
		out.add(v1.StatusLine{Text: text, Count: int64(n),
			Command: "archivist job list --state held"})
	}
	out.Summary = "nothing is paused or on hold"
	if len(out.Lines) > 0 {
		out.Summary = ingest.Counted(len(o.Holds), "pause or hold")
		if len(o.Holds) != 1 {
			out.Summary = ingest.Number(len(o.Holds)) + " pauses and holds"
		}
	}
	return nil
}

// mostRunning is how many jobs are shown of those that run.
const mostRunning = 5

// running are the jobs that run, the one that has been in its state longest first.
func (s *Service) running(ctx context.Context, out *section) error {
	o, err := s.overview(ctx)
	if err != nil {
		return err
	}
	out.Summary = "nothing runs"
	if o.Running > 0 {
		out.Summary = fmt.Sprintf("%s in %d slots", ingest.Counted(o.Running, "job"),
			s.Queue.Settings.MaxInFlight)
	}
	if s.attention {
		return nil
	}
	now, err := s.inWork(ctx)
	if err != nil {
		return err
	}
	for _, j := range now.Running[:min(len(now.Running), mostRunning)] {
		text := fmt.Sprintf("%s: %s of %s", j.State, j.Job.ID, j.Collection)
		if j.Checkpoint != "" {
			text += ", " + j.Checkpoint
		}
		out.add(v1.StatusLine{Text: text, Count: 1, Since: since(j.Entered),
			Command: "archivist job show " + j.Job.ID + " --watch"})
	}

	out.cut(o.Running > mostRunning, "%s not shown", ingest.Counted(o.Running-mostRunning, "more job"))
	return s.operations(ctx, out)
}

// operations adds the bulk operations that run. They are among the newest.
func (s *Service) operations(ctx context.Context, out *section) error {
	page, err := queue.Admin{Queue: s.Queue}.Operations(ctx, "")
	n := 0
	for i := range page.Items {
		o := &page.Items[i].Operation
		if o.State != ingest.OperationRunning {
			continue
		}
		n++
		out.add(v1.StatusLine{Text: fmt.Sprintf("operation %s: %s, %s", o.Name, o.ID, o.Progress),
			Count: 1,
			Since: since(o.Created), Command: "archivist operation show " + o.ID + " --watch"})
	}
	if n > 0 {
		out.Summary += ", " + ingest.Counted(n, "operation")
	}
	return err
}
