package main

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
	"archivist/pkg/terminal"
)

// batchWatchCmd follows several batches together.
type batchWatchCmd struct {
	IDs []string `arg:"" name:"batch" help:"Ids of batches."`
}

func (batchWatchCmd) prints() any { return v1.Batch{} }

// Run fails if a batch fails, so that scripts can detect it.
func (c *batchWatchCmd) Run(a *app) error { return a.watchBatches(c.IDs) }

// jobWatchCmd follows one job, and shows its current step.
type jobWatchCmd struct {
	ID string `arg:"" name:"job" help:"Id of a job."`
}

func (jobWatchCmd) prints() any { return v1.Job{} }

// Run shows no percentage: the duration of the steps is not known.
func (c *jobWatchCmd) Run(a *app) error {
	return a.watch(func() (s sight, err error) {
		j, err := a.client.Job(a.ctx, c.ID)
		s = sight{things: []any{j}, text: jobText(j), state: j.State, over: v1.Ended(j.State)}
		if j.State == v1.Failed {
			s.failed = fault.New(fault.Conflict, "job %s failed: %s; "+
				"correct it and run: archivist job requeue %s --reason TEXT",
				c.ID, terminal.Printable(strings.TrimRight(j.Message, ".")), c.ID)
		}
		return s, err
	})
}

// jobPath is the states of a successful job.
var jobPath = []string{v1.Pending, v1.Estimating, v1.Provisioning, v1.Downloading, v1.Processing,
	v1.Storing, v1.Recording, v1.Notify, v1.Completed}

// jobText describes the current step of a job.
func jobText(j v1.Job) string {
	text := j.State
	if step := slices.Index(jobPath, j.State); step >= 0 {
		text = fmt.Sprintf("%s (%d of %d)", j.State, step+1, len(jobPath))
	}
	if j.Progress.Files > 0 {
		text += fmt.Sprintf(", %s, %s", terminal.Count(j.Progress.Files, "file"), terminal.Size(j.Progress.Bytes))
	}
	for _, part := range []string{j.Progress.Done, j.Message, resultText(j)} {
		if part != "" {
			text += ", " + part
		}
	}
	return text
}

// resultText is the version that a job created.
func resultText(j v1.Job) string {
	if j.State != v1.Completed {
		return ""
	}
	return strings.TrimSpace(j.Identifiers.Primary + " " + versionText(j.Version))
}

// sight is the result of one poll.
type sight struct {
	things   []any
	text     string
	rows     []string // below the text
	state    string   // a change is shown at once
	done, of int64    // jobs; none for things that do not say how much is left
	bar      bool     // to be shown on a terminal, with the rate
	over     bool
	failed   error // the failure, once all have ended
}

// watchBatches shows batches until they have ended. It fails if one of them failed. A poll
// is one request per batch: the counts are enough.
func (a *app) watchBatches(ids []string) error {
	batches := make([]v1.Batch, len(ids))
	err := a.watch(func() (sight, error) {
		for i, id := range ids {
			var err error
			if batches[i], err = a.client.Batch(a.ctx, id); err != nil {
				return sight{}, err
			}
		}
		return sightOf(batches), nil
	})
	for _, b := range batches {
		a.warnOf(b)
	}
	return err
}

// warnedJobs is the maximum number of jobs in a batch for which warnings are shown at its
// end. The report always has them.
const warnedJobs = 20

// warnOf shows the warnings of a watched batch, and of its jobs if they are few. Jobs that
// cannot be read are left out.
func (a *app) warnOf(b v1.Batch) {
	if a.json != nil || !v1.Ended(b.State) {
		return // JSON has them as fields
	}
	for _, w := range b.Warnings {
		a.warn("%s", w)
	}
	if b.Counts.Expected > warnedJobs {
		return
	}
	jobs, err := a.client.Jobs(a.ctx, v1.Filter{Batch: b.ID, Limit: warnedJobs})
	if err != nil {
		return
	}
	for _, j := range jobs {
		for _, w := range j.Warnings {
			a.warn("job %s: %s", j.ID, w)
		}
	}
}

// sightOf summarizes batches.
func sightOf(batches []v1.Batch) (s sight) {
	var sum v1.Counts
	ended, failed, held := 0, []string{}, []string{}
	for _, b := range batches {
		n := b.Counts
		s.things = append(s.things, b)
		s.state += b.State + " "
		s.done += n.Completed + n.Failed + n.Deleted
		s.of += max(int64(n.Expected), n.Processing+n.Held+n.Completed+n.Failed+n.Deleted)
		sum.Processing, sum.Held = sum.Processing+n.Processing, sum.Held+n.Held
		sum.Completed, sum.Failed = sum.Completed+n.Completed, sum.Failed+n.Failed

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
	s.over = ended == len(batches)
	s.text = s.summary(sum)
	if len(held) > 0 {
		s.text += fmt.Sprintf(", on hold: archivist explain %s says why", held[0])
	}
	s.failed = failure(failed, len(batches))
	return s
}

// summary is the progress of the batches in one line.
func (s *sight) summary(sum v1.Counts) string {
	if s.of == 0 && !s.over {
		return "the manifest is being read"
	}
	text := fmt.Sprintf("%d of %s done", s.done, terminal.Count(int(s.of), "job"))
	if _, parts, some := strings.Cut(countsText(sum), ", "); some {
		text += ": " + parts
	}
	if s.done == s.of && !s.over {
		text += ", the report is being created"
	}
	return text
}

// failure is the error for failed batches, with the command that shows the reasons.
func failure(failed []string, of int) error {
	switch {
	case len(failed) == 0:
		return nil
	case of == 1:
		return fault.New(fault.Conflict, "the batch failed; archivist batch report %s shows why", failed[0])
	}
	return fault.New(fault.Conflict, "%d of %d batches failed; archivist batch report %s shows why",
		len(failed), of, failed[0])
}

// mostMissed is how many polls in a row may fail.
const mostMissed = 5

// watch polls until everything has ended, less often the longer it takes.
func (a *app) watch(look func() (sight, error)) error {
	show, missed := a.shower(), 0
	for n := 0; ; n++ {
		s, err := look()
		switch {
		case a.ctx.Err() != nil:
			return a.ctx.Err()
		case fault.Is(err, fault.Unavailable) && missed < mostMissed:
			missed++
		case err != nil:
			return err
		default:
			missed = 0
			show(s)
			if s.over {
				return s.failed
			}
		}
		if err := a.wait(a.ctx, pause(n)); err != nil {
			return err
		}
	}
}

// pause is the wait after the nth poll: half a second at first, and 10 seconds after about
// two minutes.
func pause(n int) time.Duration {
	d := 500 * time.Millisecond
	for ; n > 0 && d < 10*time.Second; n-- {
		d += d / 10
	}
	return min(d, 10*time.Second)
}

// shower shows the result of a poll: as a line of JSON for each item that has changed,
// or else as a status line. The last result is a line of the output.
func (a *app) shower() func(sight) {
	if a.json != nil {
		return a.jsonShower()
	}
	line, speed, state := a.statusTo(a.screen), terminal.Meter{Now: a.now}, ""
	return func(s sight) {
		text := s.text
		if s.of > 0 {
			speed.Add(s.done)
			text = terminal.Percent(s.done, s.of) + "  " + s.text
		}
		if s.over {
			line.End()
			for _, row := range append([]string{text}, s.rows...) {
				fmt.Fprintln(a.screen, terminal.Printable(row))
			}
			return
		}
		if s.bar && s.of > 0 && a.err.Width > 0 {
			text = terminal.Bar(s.done, s.of) + " " + text + perSecond(speed.Rate())
		}
		if s.done < s.of {
			text += speed.Left(s.of)
		}
		line.Show(text, s.state != state, s.rows...)
		state = s.state
	}
}

// perSecond is a rate: ", 12 a second", or "" if it is not known.
func perSecond(rate float64) string {
	switch {
	case rate <= 0:
		return ""
	case rate < 10:
		return fmt.Sprintf(", %.1f a second", rate)
	}
	return fmt.Sprintf(", %.0f a second", rate)
}

// jsonShower prints each item whenever it has changed.
func (a *app) jsonShower() func(sight) {
	seen := map[int]string{}
	return func(s sight) {
		for i, thing := range s.things {
			var line bytes.Buffer
			_ = a.printLine(&line, thing) // a wire type can always be encoded
			if line.String() != seen[i] {
				seen[i] = line.String()
				_, _ = line.WriteTo(a.out)
			}
		}
	}
}
