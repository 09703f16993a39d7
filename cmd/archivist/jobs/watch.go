package jobs

import (
	"fmt"
	"slices"
	"strings"

	"archivist/cmd/archivist/command"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/terminal"
)

// watchJob shows a job until it has ended, without a percentage: the duration of the steps is not known. It fails
// if the job fails, with the command that requeues it.
func watchJob(a *command.App, id string) error {
	return a.Watch(func() (s command.Snapshot, err error) {
		j, err := a.Client.Job(a.Ctx, id)
		s = command.Snapshot{Things: []any{j}, Text: jobText(j), State: j.State, Over: v1.Ended(j.State)}
		if j.State == v1.Failed {
			s.Failed = fault.New(fault.Conflict, "job %s failed: %s; "+
				"correct it and run: archivist job requeue %s --reason TEXT",
				id, terminal.Printable(strings.TrimRight(j.Message, ".")), id)
		}
		return s, err
	})
}

// jobPath is the states of a successful job, in their order, for "(4 of 9)".
var jobPath = []string{v1.Pending, v1.Estimating, v1.Provisioning, v1.Downloading, v1.Processing,
	v1.Storing, v1.Recording, v1.Notify, v1.Completed}

// jobText describes the current step of a job: its place among the states of a successful job, how much it has
// downloaded, what its stage says, and its message or result.
func jobText(j v1.Job) string {
	text := j.State
	if step := slices.Index(jobPath, j.State); step >= 0 {
		text = fmt.Sprintf("%s (%d of %d)", j.State, step+1, len(jobPath))
	}

	if j.Progress.Files > 0 {
		text += fmt.Sprintf(", %s, %s", terminal.Count(j.Progress.Files, "file"),
			terminal.Size(j.Progress.Bytes))
	}

	for _, part := range []string{j.Progress.Done, j.Message, resultText(j)} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}

// resultText is the version that a job created; "" before it has.
func resultText(j v1.Job) string {
	if j.State != v1.Completed {
		return ""
	}
	return strings.TrimSpace(j.Identifiers.Primary + " " + command.VersionText(j.Version))
}

// watchBatches shows batches until they have ended, and then their warnings. It fails if one of them failed. A
// poll is one request per batch, whatever its size: the counts are enough.
func watchBatches(a *command.App, ids []string) error {
	batches := make([]v1.Batch, len(ids))
	err := a.Watch(func() (command.Snapshot, error) {
		for i, id := range ids {
			var err error
			if batches[i], err = a.Client.Batch(a.Ctx, id); err != nil {
				return command.Snapshot{}, err
			}
		}
		return snapshotOf(batches), nil
	})

	for _, b := range batches {
		warnOf(a, b)
	}
	return err
}

// warnedJobs is the maximum number of jobs in a batch for which warnings are shown at its end: more would push
// the result off the screen. The report always has them.
const warnedJobs = 20

// warnOf shows the warnings of a watched batch, and of its jobs if they are few. Jobs that cannot be read are
// left out: the batch has ended, and its result must not become an error.
func warnOf(a *command.App, b v1.Batch) {
	if a.JSON != nil || !v1.Ended(b.State) {
		return // JSON has them as fields
	}

	for _, w := range b.Warnings {
		a.Warn("%s", w)
	}

	if b.Counts.Expected > warnedJobs {
		return
	}

	jobs, err := a.Client.Jobs(a.Ctx, v1.Filter{Batch: b.ID, Limit: warnedJobs})
	if err != nil {
		return
	}

	for _, j := range jobs {
		for _, w := range j.Warnings {
			a.Warn("job %s: %s", j.ID, w)
		}
	}
}

// snapshotOf summarizes batches. How many jobs are expected is known only when the manifest has been read, so those
// that exist can be more than that.
func snapshotOf(batches []v1.Batch) (s command.Snapshot) {
	var sum v1.Counts
	ended, failed, held := 0, []string{}, []string{}
	for _, b := range batches {
		n := b.Counts
		s.Things = append(s.Things, b)
		s.State += b.State + " "
		s.Done += n.Completed + n.Failed + n.Deleted
		s.Of += max(int64(n.Expected), n.Processing+n.Held+n.Completed+n.Failed+n.Deleted)
		sum.Processing, sum.Held = sum.Processing+n.Processing, sum.Held+n.Held
		sum.Completed, sum.Failed = sum.Completed+n.Completed, sum.Failed+n.Failed

		// A held batch waits for a person, so waiting for it here could last for ever.
		if v1.Ended(b.State) || b.State == v1.Held { // a held batch waits for a person
			ended++
		}

		if b.State == v1.Held {
			held = append(held, terminal.Printable(b.ID))
		}

		if b.State == v1.Failed {
			failed = append(failed, terminal.Printable(b.ID))
		}
	}

	s.Over = ended == len(batches)
	s.Text = summaryOf(s, sum)
	if len(held) > 0 {
		s.Text += fmt.Sprintf(", on hold: archivist explain %s says why", held[0])
	}

	s.Failed = failure(failed, len(batches))
	return s
}

// summaryOf is the progress of the batches in one line. Before the manifest is read there is no number to show;
// after the last job, the report is still to be made.
func summaryOf(s command.Snapshot, sum v1.Counts) string {
	if s.Of == 0 && !s.Over {
		return "the manifest is being read"
	}

	text := fmt.Sprintf("%d of %s done", s.Done, terminal.Count(int(s.Of), "job"))
	if _, parts, some := strings.Cut(countsText(sum), ", "); some {
		text += ": " + parts
	}

	if s.Done == s.Of && !s.Over {
		text += ", the report is being created"
	}
	return text
}

// countsText formats a batch's counts, without those that are 0: "3 expected, 2 completed, 1 failed".
func countsText(n v1.Counts) string {
	parts := []string{fmt.Sprintf("%d expected", n.Expected)}
	add := func(n int64, what string) {
		if n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, what))
		}
	}

	add(n.Processing, "processing")
	add(n.Held, "held")
	add(n.Completed, "completed")
	add(n.Failed, "failed")
	add(n.Deleted, "deleted")
	return strings.Join(parts, ", ")
}

// failure is the error for failed batches, of so many, with the command that shows the reasons; nil if none
// failed.
func failure(failed []string, of int) error {
	switch {
	case len(failed) == 0:
		return nil
	case of == 1:
		return fault.New(fault.Conflict, "the batch failed; archivist batch report %s shows why",
			failed[0])
	}
	return fault.New(fault.Conflict, "%d of %d batches failed; archivist batch report %s shows why",
		len(failed), of, failed[0])
}
