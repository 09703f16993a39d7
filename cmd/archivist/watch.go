package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/fault"
)

type batchWatchCmd struct {
	IDs []string `arg:"" name:"id"`
}

func (c *batchWatchCmd) Run(a *app) error { return a.watchBatches(c.IDs) }

type jobWatchCmd struct {
	ID string `arg:""`
}

func (c *jobWatchCmd) Run(a *app) error {
	return a.watch(func() (s sight, err error) {
		j, err := a.client.Job(a.ctx, c.ID)
		text := strings.TrimSpace(j.State + " " + j.Progress.Done + " " + j.Message)
		s = sight{things: []any{j}, of: 1, text: printable(text)}
		s.over = v1.Ended(j.State)
		if j.State == v1.Failed {
			s.failed = fault.New(fault.Conflict, "job %s failed: %s", j.ID, printable(j.Message))
		}
		return s, err
	})
}

// sight is what one look at things sees.
type sight struct {
	things   []any
	text     string
	done, of int64 // jobs
	over     bool
	failed   error // of things that are over
}

// watchBatches shows batches until they have ended. It fails if one did. A look is one
// request for each: their counts are enough.
func (a *app) watchBatches(ids []string) error {
	return a.watch(func() (sight, error) {
		batches := make([]v1.Batch, len(ids))
		for i, id := range ids {
			var err error
			batches[i], err = a.client.Batch(a.ctx, id)
			if err != nil {
				return sight{}, err
			}
		}
		return sightOf(batches), nil
	})
}

// sightOf sums batches up.
func sightOf(batches []v1.Batch) (s sight) {
	var processing, held, completed, failed int64
	states := map[string]int{}
	for _, b := range batches {
		n := b.Counts
		s.things = append(s.things, b)
		s.done += n.Completed + n.Failed + n.Deleted
		s.of += max(int64(n.Expected), n.Processing+n.Held+n.Completed+n.Failed+n.Deleted)
		processing, held, completed, failed = processing+n.Processing, held+n.Held, completed+n.Completed, failed+n.Failed
		states[b.State]++
	}
	s.text = fmt.Sprintf("%d of %d jobs done", s.done, s.of)
	for _, c := range []struct {
		n    int64
		what string
	}{{processing, "processing"}, {held, "held"}, {completed, "completed"}, {failed, "failed"}} {
		if c.n > 0 {
			s.text += fmt.Sprintf(", %d %s", c.n, c.what)
		}
	}
	s.over = states[v1.Completed]+states[v1.Failed]+states[v1.Deleted]+states[v1.Held] == len(batches)
	if n := states[v1.Failed]; n > 0 {
		s.failed = fault.New(fault.Conflict, "%d of %d batches failed; archivist batch show says why", n, len(batches))
	}
	return s
}

// mostMissed is how many looks in a row may get no answer.
const mostMissed = 5

// watch looks until what is watched is over, and less often the longer it lasts.
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

// pause after the nth look: half a second, and 10 seconds after about two minutes.
func pause(n int) time.Duration {
	d := 500 * time.Millisecond
	for ; n > 0 && d < 10*time.Second; n-- {
		d += d / 10
	}
	return min(d, 10*time.Second)
}

// wait waits for a time, or until the context ends.
func wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}

// shower shows what changed since the look before: as JSON lines, as a bar on a
// terminal, else as lines of text.
func (a *app) shower() func(sight) {
	if a.json {
		seen := map[int]string{}
		return func(s sight) {
			for i, thing := range s.things {
				var line bytes.Buffer
				_ = json.NewEncoder(&line).Encode(thing) // a wire type has a form
				if line.String() != seen[i] {
					seen[i] = line.String()
					_, _ = line.WriteTo(a.out)
				}
			}
		}
	}
	seen := ""
	lines := func(s sight) {
		if s.text != seen {
			seen = s.text
			fmt.Fprintln(a.out, s.text)
		}
	}
	if a.bars == nil {
		return lines
	}
	bar := progressbar.NewOptions64(1, progressbar.OptionSetWriter(a.bars), progressbar.OptionSetWidth(30),
		progressbar.OptionSetPredictTime(true), progressbar.OptionClearOnFinish())
	return func(s sight) {
		if s.over {
			_ = bar.Finish()
			lines(s)
			return
		}
		bar.Describe(s.text)
		bar.ChangeMax64(max(1, s.of))
		_ = bar.Set64(s.done)
	}
}
