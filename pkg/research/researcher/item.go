package researcher

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"
	"unicode"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/research/analysis"
)

// item is a work item at hand. It is worked on by one goroutine.
type item struct {
	*Researcher
	*Work
	stop   context.Context // then the clip at hand is finished, the rest given back
	status Status
	n      int // results so far
}

// research does a work item. An error is one of this computer, or of the program: the work item was
// given back, and other work items would fail in the same way.
func (r *Researcher) research(ctx, stop context.Context, slot int, w *Work) error {
	i := &item{Researcher: r, Work: w, stop: stop}
	i.status = Status{
		Slot:    slot,
		Episode: cmp.Or(w.Episode.Title, w.Episode.Key),
		Clips:   len(w.Clips),
	}

	err := i.run(ctx)
	if err == nil || ctx.Err() != nil {
		return nil // a process that is ended at once has no time for more
	}
	return errors.Join(err, i.giveBack())
}

// run does the clips. Whatever happens, one report is the last one; an error means that it is still
// to be made.
func (i *item) run(ctx context.Context) error {
	method, ok := i.Analyses[i.Method]
	if !ok {
		return fault.New(fault.Invalid,
			"the project %s needs the analysis %q, which this program does not have; "+
				"use a newer version of it", i.Project, i.Method)
	}

	file, err := i.fetch(i.Episode)
	if err != nil {
		return i.ofEpisode(ctx, err)
	}

	defer file.Close()
	i.status.Doing = Reading
	i.watch(i.status)
	var session analysis.Session
	err = safely(func() (err error) {
		session, err = method.Open(i.stop, file.Path, i.Settings)
		return err
	})
	if err != nil {
		return i.ofEpisode(ctx, err)
	}

	defer session.Close()
	for k := range i.Clips {
		if i.over() {
			return i.giveBack()
		}
		last, err := i.clip(ctx, session, k)
		if err != nil || last {
			return err
		}
	}
	return nil
}

// over reports whether the rest of the work item is given back: the researcher was stopped, or the
// lease has ended, so that others may have the pairs by now.
func (i *item) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.stop.Err() != nil || i.ended[i.Lease]
}

// giveBack says that nothing more comes, so that the server need not wait for the end of the
// lease.
func (i *item) giveBack() error { return i.put(Report{Final: true, Count: i.n}) }

// put keeps a report until it is taken. An error is one of this computer's disk.
func (i *item) put(r Report) error {
	r.Project, r.Lease, r.Researcher, r.Analysis = i.Project, i.Lease, i.Researcher.Name,
		i.Work.Analysis
	r.Episode = i.Episode.Key
	return i.Reports.Put(r)
}

// result numbers a result, and reports it. A number is used up only when the report is kept, so the
// count of the last report is that of the results that come.
func (i *item) result(r Report, last bool) error {
	r.Sequence = i.n + 1
	if last {
		r.Final, r.Count = true, r.Sequence
	}
	err := i.put(r)
	if err != nil {
		return err
	}
	i.n++
	return nil
}

// fetch downloads a recording unless the cache has it.
func (i *item) fetch(s Subject) (*File, error) {
	i.status.Doing, i.status.Part = Downloading, 0
	i.watch(i.status)
	return i.Cache.Get(i.stop, s.Media, func(done, whole int64) {
		if whole > 0 {
			i.status.Part = float64(done) / float64(whole)
			i.watch(i.status)
		}
	})
}

// ofEpisode reports why there are no results of the episode, as the last report. A stop is no
// problem of the episode: then the work item is given back.
func (i *item) ofEpisode(ctx context.Context, cause error) error {
	if ctx.Err() == nil && i.stop.Err() != nil {
		return i.giveBack() // it was interrupted
	}
	p, err := problem(cause, analysis.Episode)
	if err != nil {
		return err
	}
	return i.result(Report{Problem: p}, true)
}

// clip looks for the clip at k, and reports the result. last means that the work item is done: it
// was the last clip, the rest is given back with this report, or the episode cannot be researched,
// whatever the clip.
func (i *item) clip(ctx context.Context, session analysis.Session, k int) (last bool, err error) {
	i.status.Clip = k + 1
	began := i.Now()
	found, err := i.search(ctx, session, i.Clips[k])
	// The process ends at once: nothing is reported, and the lease expires.
	if err != nil && ctx.Err() != nil {
		return true, ctx.Err()
	}

	if errors.Is(err, errStopped) {
		return true, i.giveBack()
	}

	report := Report{
		Waveform:  i.waveform(session),
		Clip:      i.Clips[k].Key,
		Truncated: found.Truncated,
		Millis:    i.Now().Sub(began).Milliseconds(),
	}

	for _, h := range found.Hits {
		report.Hits = append(report.Hits, v1.ResearchHit{
			Offset: h.Offset,
			Length: h.Length,
			Score:  h.Score,
		})
	}

	// A problem is a result, too. If it is one of the episode, no other clip can be looked for in
	// it.
	if err != nil {
		report.Problem, err = problem(err, analysis.Clip)
		if err != nil {
			return true, err
		}
		if report.Problem.Of == analysis.Episode {
			report.Clip = ""
		}
	}

	i.status.Hits += len(found.Hits)
	last = k == len(i.Clips)-1 || i.over() || report.Clip == ""
	return last, i.result(report, last)
}

// longest is the longest recording that a report can have a waveform of.
const longest = 100 * time.Hour

// waveform is how the episode sounds, with the first result of a work item: the server has no
// recording. It is nil if the analysis does not know that, or if the recording is too long for a
// report: the result is stored without it.
func (i *item) waveform(session analysis.Session) *v1.ResearchWaveform {
	s, heard := session.(analysis.Heard)
	if !heard || i.n > 0 {
		return nil
	}
	peaks, length := s.Loudness(), s.Duration()
	if len(peaks) == 0 || length <= 0 || length > longest {
		return nil
	}
	return &v1.ResearchWaveform{Length: int64(length), Peaks: peaks}
}

// errStopped means that the researcher was stopped before the search began.
var errStopped = errors.New("stopped")

// search downloads a clip, and looks for it. Once it has begun it is finished, also after a stop,
// but not after ctx has ended. A search that takes longer than clipLimit is a problem of the clip:
// the lease may have ended by then.
func (i *item) search(ctx context.Context, session analysis.Session,
	s Subject) (found analysis.Result, err error) {
	file, err := i.fetch(s)
	if err != nil && i.stop.Err() != nil {
		return found, errStopped
	}

	if err != nil {
		return found, err
	}

	defer file.Close()
	ctx, cancel := context.WithTimeoutCause(ctx, clipLimit,
		fmt.Errorf("the search took longer than %s", clipLimit))
	defer cancel()
	began := i.Now()
	err = safely(func() (err error) {
		found, err = session.Clip(ctx, file.Path,
			func(part float64) { i.searched(session, part, i.Now().Sub(began)) })
		return err
	})
	if ctx.Err() != nil && err != nil {
		err = context.Cause(ctx)
	}
	return found, err
}

// timed is a session that knows how long its recording is. Not every analysis has one.
type timed interface{ Duration() time.Duration }

// searched shows how far a search is.
func (i *item) searched(session analysis.Session, part float64, took time.Duration) {
	i.status.Doing, i.status.Part, i.status.Speed = Searching, part, 0
	if t, ok := session.(timed); ok && took > 0 {
		i.status.Speed = part * t.Duration().Seconds() / took.Seconds()
	}
	i.watch(i.status)
}

// safely makes an error of a panic: a damaged recording must not end all researchers, one after the
// other.
func safely(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the analysis failed: %v", p)
		}
	}()
	return f()
}

// problem is what an error says of an episode or clip. An error of this computer is returned: it
// says nothing of the recording.
func problem(cause error, of string) (*v1.ResearchProblem, error) {
	var rejected *analysis.Rejected
	var disk *fs.PathError
	switch {
	case errors.As(cause, &rejected):
		return &v1.ResearchProblem{
			Of:     rejected.Of,
			Kind:   Rejected,
			Reason: line(rejected.Reason),
		}, nil
	case errors.Is(cause, errLocal):
		return nil, cause
	case errors.As(cause, &disk): // an analysis reads and writes files only
		return nil, fault.New(fault.Unavailable, "the analysis cannot use the disk: %w", cause)
	}
	return &v1.ResearchProblem{Of: of, Kind: Failed, Reason: line(cause.Error())}, nil
}

// Limits of a reason, as package research has them: MaxName characters and MaxReason bytes.
const (
	reasonRunes = 300
	reasonBytes = 500
)

// line makes a reason of a text: one line, not too long, and never empty. The server refuses any
// other (package research, Report.Check), and the result would be lost.
func line(text string) string {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, "?"))

	out, n := "", 0
	for _, r := range strings.TrimSpace(clean) {
		n++
		if n > reasonRunes || len(out)+len(string(r)) > reasonBytes {
			break
		}
		out += string(r)
	}
	return cmp.Or(strings.TrimSpace(out), "it failed without a reason")
}
