package research

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// resultRow is a stored result. It is written once and never changed or removed.
type resultRow struct {
	table.Head
	At   int64  `dynamo:"at_ms"`       // when it was stored, milliseconds since 1970
	Text string `dynamo:"report_json"` // the Report
}

// resultsPK is the partition of the results of an episode.
func resultsPK(project, episode string) string { return "RESULTS#" + project + "/" + episode }

// resultKey is the key of a result: by analysis, clip ("-" if it is of the episode), lease and
// number. A lease reports a pair once; what it repeats has the same number, so the same key. The
// result of another lease for the same pair has a key of its own: a second opinion.
func resultKey(r *Report) table.Key {
	clip := r.Clip
	if clip == "" {
		clip = "-"
	}
	return table.Key{PK: resultsPK(r.Project, r.Episode),
		SK: fmt.Sprintf("%s#%s#%s#%06d", r.Analysis, clip, r.Lease,
			r.Sequence)}
}

// foundPK is the partition of the index "list" with what was found of a clip.
func foundPK(project, clip string) string { return "RESEARCHFOUND#" + project + "/" + clip }

// setFound lists a result that says something of its clip in the index of the clip: hits or a
// problem. Most results have neither, so they cost no place in the index.
func setFound(h *table.Head, r *Report) {
	if r.Clip != "" && (len(r.Hits) > 0 || r.Problem != nil) {
		h.ListPK = foundPK(r.Project, r.Clip)
		h.ListSK = fmt.Sprintf("%s#%s#%s#%06d", r.Analysis, r.Episode, r.Lease, r.Sequence)
	}
}

// result is the result as it was reported. An error means that its row is damaged.
func (r *resultRow) result() (Result, error) {
	out := Result{At: r.At}
	err := json.Unmarshal([]byte(r.Text), &out.Report)
	if err != nil {
		return out, table.Damage(fmt.Errorf("result %s: %w", r.Key(), err))
	}
	return out, nil
}

// Result is a stored result with the time when it was stored, in milliseconds since 1970.
type Result struct {
	Report
	At int64

	// Of each hit, whether a person has accepted it (markNames), if the project asks for that and
	// the result is the one of its pair that counts.
	Reviews []string

	// What has become of the pair (pairCounts and so on), in a project with a quorum or a review, if
	// the result is of the present analysis and no problem.
	Pair string
}

// summary describes a result for its event, which has only the best hit of up to MaxHits.
func summary(r *Report) Researched {
	d := Researched{
		Clip:       r.Clip,
		Analysis:   r.Analysis,
		Hits:       len(r.Hits),
		Problem:    r.Problem,
		Lease:      r.Lease,
		Researcher: r.Researcher,
	}

	for i, h := range r.Hits {
		if d.Best == nil || h.Score > d.Best.Score {
			d.Best = &r.Hits[i]
		}
	}
	return d
}

// Recording says what became of a report.
type Recording struct {
	Known bool // the same report was stored before
	Ended bool // it was the last of its lease

	// It is a problem that defers or quarantines a recording, and no other researcher has had one with that.
	alone bool
}

// Record stores what a researcher reports, whatever became of its lease: a result is never lost. A
// live lease is extended; it ends when all results that its final report announces are stored, in
// that transaction. Leases of others are not touched. It returns a NotFound if there is no such
// episode or clip, an Invalid if the project never had the analysis, and a Conflict if another
// result has its number: none of these can be stored later either. After any other error the
// message is to come again.
func (s *Store) Record(ctx context.Context, r Report) (done Recording, err error) {
	err = r.Check()
	if err != nil {
		return done, err
	}

	w := want{project: r.Project, episode: r.Episode, clip: r.Clip, lease: r.Lease,
		also: []table.Key{conductKey(r.Project, r.Researcher)}}
	if r.Sequence > 0 {
		w.also = append(w.also, resultKey(&r))
	}
	sound := r.Waveform
	r.Waveform = nil // it is of the episode, and no part of the result
	if sound != nil {
		w.also = append(w.also, waveKey(r.Project, r.Episode))
	}

	var known conductRow

	err = s.change(ctx, w, By{Actor: r.Researcher, Component: "completed-work"},
		func(c *change) error {
			done, known = Recording{}, conductRow{}
			err := c.rows.decode(conductKey(r.Project, r.Researcher), &known)
			if err != nil {
				return err
			}
			err = c.record(&r, &done)
			if err != nil || done.Known || sound == nil {
				return err
			}
			return c.hear(&r, sound)
		})
	if err != nil {
		return done, err
	}

	if !done.Known {
		s.judge(ctx, &r, done, &known)
	}

	if done.Ended {
		s.wake(ctx, r.Project)
	}
	return done, nil
}

// record stores the report in the change: the result, what it says of the pair, and what it does to
// its lease. A result that is stored already changes nothing. A final report without a result has
// no row, so it can be counted again, which changes nothing either: settle takes the first count.
func (c *change) record(r *Report, done *Recording) error {
	switch {
	case c.episode.Rev == 0:
		return missing(Episode, r.Project, r.Episode)
	case c.clip != nil && c.clip.Rev == 0:
		return missing(Clip, r.Project, r.Clip)
	case r.Sequence > 0 && !slices.Contains(c.project.Past, r.Analysis):
		return fault.New(fault.Invalid, "analysis: the project %s never had %q", r.Project,
			r.Analysis)
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

	err := c.mark(r, done)
	// A lease that does not exist has no project, so it is not settled either.
	if err != nil || c.lease.Project != r.Project || c.lease.Episode != r.Episode {
		return err
	}
	return c.settle(r, done)
}

// insert puts the result into the change, unless it is stored: then known is true. A result with
// the same key and another content is a Conflict; the first one stays.
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
		return false, fault.New(fault.Conflict,
			"result %d of the lease %s is stored with another content", r.Sequence, r.Lease)
	}
	return true, nil
}

// mark records that the pair is researched, or what is wrong with its media. It does so whatever
// became of the lease: a result makes its pair researched even while another researcher has a lease
// on it.
func (c *change) mark(r *Report, done *Recording) error {
	switch {
	case r.Sequence == 0 || r.Analysis != c.project.def.Analysis.String():
		return nil // a result of an earlier analysis is kept, but does not count
	case r.Problem == nil && c.project.def.quorum() > 1:
		return c.opinion(r)
	case r.Problem == nil && c.project.def.Review && c.episode.researched.Contains(c.clip.Clip):
		return nil // the first one counts
	case r.Problem == nil && c.project.def.Review:
		return c.agreed(r, false)
	case r.Problem == nil:
		c.episode.research(c.clip.Clip, len(r.Hits))
		return nil
	}

	m, _ := c.mediaOf(Kind(r.Problem.Of))
	if !m.fail(*r.Problem, r.Researcher, c.now) {
		return nil
	}

	// Nobody verifies the name in a report: it counts against who has accepted the lease.
	done.alone = names(m.Failures, false) == 1 && c.own(r)

	what := deferredEvent
	if m.Quarantined != "" {
		what = quarantinedEvent
		// It is counted once, however often the change is tried.
		c.tx.OnCommit(func() { c.s.count(MetricQuarantined, 1) })
	}
	return c.mediaEvent(Kind(r.Problem.Of), what, Recorded{*m})
}

// own reports whether a report is of who has accepted its lease, also if that has ended since.
func (c *change) own(r *Report) bool {
	l := c.lease
	return l.Project == r.Project && l.Episode == r.Episode && l.Researcher == r.Researcher
}

// settle counts the result for its lease, if that is live, extends it, and ends it with its last
// result. A lease that has expired or was revoked is not revived (source: the requirement, "Work
// Completion Process").
//
// The final report does not end the lease while earlier results are on the way: its pairs would be
// assigned again although their results come. If one never comes, the lease expires.
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
	i := slices.IndexFunc(c.episode.Leased, func(h leasedPairs) bool { return h.Lease == l.ID })
	if i >= 0 {
		c.episode.Leased[i].Until = until
	}
	return c.leaseEvent("lease.extended", Extended{until})
}
