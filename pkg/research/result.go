package research

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Hit is a place where a clip occurs in an episode.
type Hit struct {
	Offset int64   `json:"offset"` // nanoseconds from the beginning of the episode
	Length int64   `json:"length"` // nanoseconds
	Score  float64 `json:"score"`  // 0 to 1
}

// Kinds of problems.
const (
	Rejected = "rejected" // the recording cannot be researched: it is silent, too short, no recording
	Failed   = "failed"   // it could not be read now
)

// Problem is why there is no result.
type Problem struct {
	Of     Kind   `json:"of"`
	Kind   string `json:"kind"` // Rejected or Failed
	Reason string `json:"reason"`
}

// Report is what a researcher says of a work item (source: the requirement, "Work Completion Process").
// Sequence numbers the results of a lease from 1; problems are results. A report with Final alone gives
// the rest of the work item back.
type Report struct {
	Project    string `json:"project"`
	Lease      string `json:"lease"`
	Researcher string `json:"researcher"`
	Analysis   string `json:"analysis"` // name@version
	Episode    string `json:"episode"`  // key

	Sequence  int      `json:"sequence,omitempty"` // 0: only Final
	Clip      string   `json:"clip,omitempty"`     // key; none if the problem is of the episode
	Hits      []Hit    `json:"hits,omitempty"`     // none is a result, too
	Truncated bool     `json:"truncated,omitempty"`
	Problem   *Problem `json:"problem,omitempty"`
	Millis    int64    `json:"millis,omitempty"` // that it took

	Final bool `json:"final,omitempty"`
	Count int  `json:"count,omitempty"` // with Final: of the numbered results of the lease
}

// maxResults bounds the results of one lease: its clips, and the episode.
const maxResults = MaxMaxClips + 1

// maxOffset is the longest recording: a hundred hours.
const maxOffset = 100 * 3600 * 1_000_000_000

// wrong is an Invalid if a condition holds.
func wrong(holds bool, format string, args ...any) error {
	if !holds {
		return nil
	}
	return fault.New(fault.Invalid, format, args...)
}

// line reports whether text is one line of 1 to most bytes.
func line(field, text string, most int) bool {
	return text != "" && len(text) <= most && printable(field, text) == nil
}

// Check returns an Invalid if the report cannot be stored.
func (r *Report) Check() error {
	err := cmp.Or(
		wrong(!Names.MatchString(r.Project), "project: found %q; expected the name of a project",
			definition.Clip(r.Project, 60)),
		wrong(!keys.MatchString(r.Episode), "episode: found %q; expected a key of 24 characters",
			definition.Clip(r.Episode, 60)),
		wrong(!line("lease", r.Lease, 60), "lease: found %q; expected the id of the lease",
			definition.Clip(r.Lease, 60)),
		wrong(!line("researcher", r.Researcher, maxResearcher), "researcher: found %q; expected a name of at most %d "+
			"bytes", definition.Clip(r.Researcher, 60), maxResearcher),
		r.checkNumbers())
	switch {
	case err != nil:
		return err
	case r.Sequence == 0:
		return wrong(r.hasResult() || !r.Final, "sequence is missing; number the results of a lease from 1")
	}
	return cmp.Or(r.checkResult(), r.checkProblem(), r.checkHits())
}

// hasResult reports whether the report says something of a clip or of the episode.
func (r *Report) hasResult() bool { return r.Clip != "" || len(r.Hits) > 0 || r.Problem != nil }

// checkNumbers checks the sequence number, and the number of all results.
func (r *Report) checkNumbers() error {
	counts := r.Final && r.Count >= r.Sequence && r.Count <= maxResults
	return cmp.Or(
		wrong(r.Sequence < 0 || r.Sequence > maxResults, "sequence: found %d; expected 1 to %d", r.Sequence,
			maxResults),
		wrong(!counts && (r.Final || r.Count != 0), "count: found %d; expected, with final, the number of results of "+
			"the lease, at most %d", r.Count, maxResults))
}

func (r *Report) checkResult() error {
	ofEpisode := r.Problem != nil && r.Problem.Of == Episode
	return cmp.Or(
		wrong(ofEpisode && r.Clip != "", "clip: found %q; expected none with a problem of the episode",
			definition.Clip(r.Clip, 60)),
		wrong(!ofEpisode && !keys.MatchString(r.Clip), "clip: found %q; expected a key of 24 characters",
			definition.Clip(r.Clip, 60)),
		wrong(!line("analysis", r.Analysis, 80), "analysis: found %q; expected name@version",
			definition.Clip(r.Analysis, 60)),
		wrong(r.Millis < 0, "millis: found %d; expected no negative number", r.Millis))
}

func (r *Report) checkProblem() error {
	p := r.Problem
	if p == nil {
		return nil
	}
	return cmp.Or(definition.Choice("problem.of", string(p.Of), string(Episode), string(Clip)),
		definition.Choice("problem.kind", p.Kind, Rejected, Failed),
		wrong(len(r.Hits) > 0, "problem: found with %d hits; expected none", len(r.Hits)),
		wrong(!line("reason", p.Reason, MaxReason), "problem.reason: found %q; expected a line of at most %d bytes",
			definition.Clip(p.Reason, 60), MaxReason))
}

func (r *Report) checkHits() error {
	err := wrong(len(r.Hits) > MaxHits, "hits: found %d; report the best %d, and truncated", len(r.Hits), MaxHits)
	for i, h := range r.Hits {
		there := h.Offset >= 0 && h.Offset <= maxOffset && h.Length > 0 && h.Length <= maxOffset
		scored := h.Score >= 0 && h.Score <= 1 // not NaN
		err = cmp.Or(err, wrong(!there || !scored, "hits[%d]: found %+v; expected an offset and a length in "+
			"nanoseconds, at most 100 hours, and a score of 0 to 1", i, h))
	}
	return err
}

// resultRow is a stored result.
type resultRow struct {
	table.Head
	At   int64  `dynamo:"at_ms"`
	Text string `dynamo:"report_json"`
}

// resultsPK is the partition of the results of an episode.
func resultsPK(project, episode string) string { return "RESULTS#" + project + "/" + episode }

// resultKey is the key of a result. A lease reports a pair once; what it repeats has the same number.
func resultKey(r *Report) table.Key {
	clip := r.Clip
	if clip == "" {
		clip = "-"
	}
	return table.Key{PK: resultsPK(r.Project, r.Episode), SK: fmt.Sprintf("%s#%s#%s#%06d", r.Analysis, clip, r.Lease,
		r.Sequence)}
}

// Researched is the detail of episode.researched.
type Researched struct {
	Clip       string   `json:"clip,omitempty"`
	Analysis   string   `json:"analysis"`
	Hits       int      `json:"hits"`
	Best       *Hit     `json:"best,omitempty"`
	Problem    *Problem `json:"problem,omitempty"`
	Lease      string   `json:"lease"`
	Researcher string   `json:"researcher"`
}

// summary describes a result for its event.
func summary(r *Report) Researched {
	d := Researched{Clip: r.Clip, Analysis: r.Analysis, Hits: len(r.Hits), Problem: r.Problem, Lease: r.Lease,
		Researcher: r.Researcher}
	for i, h := range r.Hits {
		if d.Best == nil || h.Score > d.Best.Score {
			d.Best = &r.Hits[i]
		}
	}
	return d
}

// Extended is the detail of lease.extended.
type Extended struct {
	Until int64 `json:"until"`
}

// Recording says what became of a report.
type Recording struct {
	Known bool // the same report was stored before
	Ended bool // it was the last of its lease
}

// Record stores what a researcher reports, whatever became of its lease: a result is never lost. A live
// lease is extended; it ends when all results that its final report announces are stored, in that
// transaction. Leases of others are not touched. It returns a NotFound if there is no such episode or
// clip, an Invalid if the project never had the analysis, and a Conflict if another result has its number.
func (s *Store) Record(ctx context.Context, r Report) (done Recording, err error) {
	err = r.Check()
	if err != nil {
		return done, err
	}
	w := want{project: r.Project, episode: r.Episode, clip: r.Clip, lease: r.Lease}
	if r.Sequence > 0 {
		w.also = resultKey(&r)
	}
	err = s.change(ctx, w, By{Actor: r.Researcher, Component: "completed-work"}, func(c *change) error {
		done = Recording{}
		return c.record(&r, &done)
	})
	if err == nil && done.Ended {
		s.wake(ctx, r.Project)
	}
	return done, err
}

func (c *change) record(r *Report, done *Recording) error {
	switch {
	case c.episode.Rev == 0:
		return missing(Episode, r.Project, r.Episode)
	case c.clip != nil && c.clip.Rev == 0:
		return missing(Clip, r.Project, r.Clip)
	case r.Sequence > 0 && !slices.Contains(c.project.Past, r.Analysis):
		return fault.New(fault.Invalid, "analysis: the project %s never had %q", r.Project, r.Analysis)
	}
	if r.Sequence > 0 {
		known, err := c.insert(r)
		if err != nil {
			return err
		}
		done.Known = known
	}
	if done.Known {
		return nil // its transaction did all the rest, too
	}
	err := c.mark(r)
	if err != nil || c.lease.Project != r.Project || c.lease.Episode != r.Episode { // a lease that there is not, too
		return err
	}
	return c.settle(r, done)
}

// insert puts the result into the change, unless it is stored.
func (c *change) insert(r *Report) (known bool, err error) {
	data, err := json.Marshal(r)
	if err != nil {
		return false, err
	}
	k := resultKey(r)
	row := resultRow{Head: newHead(k), At: c.now, Text: string(data)}
	setFound(&row.Head, r)
	var stored resultRow
	err = c.rows.decode(k, &stored)
	switch {
	case err != nil:
		return false, err
	case stored.Rev == 0:
		c.tx.Insert(&row)
		c.stored = 1 + int64(slices.Index(c.project.Past, r.Analysis))
		return false, c.episodeEvent("episode.researched", summary(r))
	case stored.Text != row.Text:
		return false, fault.New(fault.Conflict, "result %d of the lease %s is stored with another content", r.Sequence,
			r.Lease)
	}
	return true, nil
}

// mark records that the pair is researched, or what is wrong with its media.
func (c *change) mark(r *Report) error {
	switch {
	case r.Sequence == 0 || r.Analysis != c.project.def.Analysis.String():
		return nil // a result of an earlier analysis is kept, but does not count
	case r.Problem == nil:
		c.episode.researched.Add(c.clip.Clip)
		return nil
	}
	m, _ := c.mediaOf(r.Problem.Of)
	if !m.fail(*r.Problem, c.now) {
		return nil
	}
	what := deferred
	if m.Aside != "" {
		what = setAside
		c.tx.OnCommit(func() { c.s.count(MetricAside, 1) }) // once, however often the change is tried
	}
	return c.mediaEvent(r.Problem.Of, what, Recorded{*m})
}

// settle counts the result for its lease, if that is live, extends it, and ends it with its last result.
func (c *change) settle(r *Report, done *Recording) error {
	l := c.lease
	foreign := func() bool { return r.Clip != "" && !slices.Contains(l.Clips, r.Clip) }
	if !l.Live(c.now) || l.Researcher != r.Researcher || foreign() {
		return nil // it is stored; the lease of another, or of other clips, is not touched
	}
	if r.Sequence > 0 {
		l.Stored++
		l.Last = c.now
	}
	if r.Final && l.Results == nil {
		l.Results = &r.Count
	}
	if l.Results != nil && l.Stored >= *l.Results {
		done.Ended = true
		return c.end(Final, "")
	}
	until := min(c.now+c.s.Times.Extension.Milliseconds(), l.Created+c.s.Times.Most.Milliseconds())
	if until <= l.Until {
		return nil
	}
	l.Until = until
	i := slices.IndexFunc(c.episode.Held, func(h held) bool { return h.Lease == l.ID })
	if i >= 0 {
		c.episode.Held[i].Until = until
	}
	return c.leaseEvent("lease.extended", Extended{until})
}

// Result is a stored result with the time when it was stored, in milliseconds since 1970.
type Result struct {
	Report
	At int64
}

// Results lists the results of an episode, all analyses, by analysis and clip.
func (s *Store) Results(ctx context.Context, project, episode, cursor string) (all []Result, next string, err error) {
	var rows []resultRow
	next, err = s.Table.Page(ctx, table.Query{PK: resultsPK(project, episode), Cursor: cursor}, &rows)
	for i := range rows {
		r, failed := rows[i].result()
		if failed != nil {
			return nil, "", failed
		}
		all = append(all, r)
	}
	return all, next, err
}
