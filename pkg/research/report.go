package research

import (
	"cmp"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/definition"
)

// Report is what a researcher says of a work item (source: the requirement, "Work Completion
// Process"). Sequence numbers the results of a lease from 1; problems are results. A report with
// Final alone gives the rest of the work item back.
//
// It comes by a queue: late, more than once, and in any order. So it names all that is needed to
// store it without its lease, and the final one has the count of all, by which it is known
// whether some are still on the way.
type Report v1.ResearchReport

// maxResults bounds the results of one lease: its clips, and the episode.
const maxResults = MaxMaxClips + 1

// maxOffset is the longest recording: a hundred hours.
const maxOffset = 100 * 3600 * 1_000_000_000

// Check returns an Invalid if the report cannot be stored, whatever is in the table: the same
// report is refused again.
func (r *Report) Check() error {
	err := cmp.Or(
		invalidIf(!Names.MatchString(r.Project), "project: found %q; expected the name of a project",
			definition.Clip(r.Project, 60)),
		invalidIf(!keys.MatchString(r.Episode), "episode: found %q; expected a key of 24 characters",
			definition.Clip(r.Episode, 60)),
		invalidIf(!oneLine("lease", r.Lease, 60), "lease: found %q; expected the id of the lease",
			definition.Clip(r.Lease, 60)),
		invalidIf(!oneLine("researcher", r.Researcher, MaxResearcher),
			"researcher: found %q; expected a name of at most %d "+
				"bytes", definition.Clip(r.Researcher, 60), MaxResearcher),
		r.checkNumbers(), r.checkWaveform())

	switch {
	case err != nil:
		return err
	case r.Sequence == 0:
		return invalidIf(r.hasResult() || !r.Final,
			"sequence is missing; number the results of a lease from 1")
	}
	return cmp.Or(r.checkResult(), r.checkProblem(), r.checkHits())
}

// hasResult reports whether the report says something of a clip or of the episode.
func (r *Report) hasResult() bool { return r.Clip != "" || len(r.Hits) > 0 || r.Problem != nil }

// maxPeaks bounds the parts of a waveform: more than a screen can show.
const maxPeaks = 1000

// checkWaveform checks how the episode sounds.
func (r *Report) checkWaveform() error {
	w := r.Waveform
	if w == nil {
		return nil
	}
	return cmp.Or(
		invalidIf(r.Sequence == 0, "waveform: found without a result; send it with one"),
		invalidIf(w.Length <= 0 || w.Length > maxOffset,
			"waveform.length: found %d; expected nanoseconds, at most 100 hours", w.Length),
		invalidIf(len(w.Peaks) == 0 || len(w.Peaks) > maxPeaks,
			"waveform.peaks: found %d bytes; expected 1 to %d", len(w.Peaks), maxPeaks))
}

// checkNumbers checks the sequence number, and the number of all results, which only a final report
// has.
func (r *Report) checkNumbers() error {
	counts := r.Final && r.Count >= r.Sequence && r.Count <= maxResults
	return cmp.Or(
		invalidIf(r.Sequence < 0 || r.Sequence > maxResults, "sequence: found %d; expected 1 to %d",
			r.Sequence,
			maxResults),
		invalidIf(!counts && (r.Final || r.Count != 0),
			"count: found %d; expected, with final, the number of results of "+
				"the lease, at most %d", r.Count, maxResults))
}

// checkResult checks what a result is of: a clip, unless the problem is one of the episode.
func (r *Report) checkResult() error {
	ofEpisode := r.Problem != nil && r.Problem.Of == string(Episode)
	return cmp.Or(
		invalidIf(ofEpisode && r.Clip != "",
			"clip: found %q; expected none with a problem of the episode",
			definition.Clip(r.Clip, 60)),
		invalidIf(!ofEpisode && !keys.MatchString(r.Clip),
			"clip: found %q; expected a key of 24 characters",
			definition.Clip(r.Clip, 60)),
		invalidIf(!oneLine("analysis", r.Analysis, 80), "analysis: found %q; expected name@version",
			definition.Clip(r.Analysis, 60)),
		invalidIf(r.Millis < 0, "millis: found %d; expected no negative number", r.Millis))
}

// checkProblem checks why there is no result; with a problem there are no hits.
func (r *Report) checkProblem() error {
	p := r.Problem
	if p == nil {
		return nil
	}
	return cmp.Or(definition.Choice("problem.of", p.Of, string(Episode), string(Clip)),
		definition.Choice("problem.kind", p.Kind, Rejected, Failed),
		invalidIf(len(r.Hits) > 0, "problem: found with %d hits; expected none", len(r.Hits)),
		invalidIf(!oneLine("reason", p.Reason, MaxReason),
			"problem.reason: found %q; expected a line of at most %d bytes",
			definition.Clip(p.Reason, 60), MaxReason))
}

// checkHits checks how many hits there are, and that each is in a recording that is not longer than
// possible. A score that is not a number fails, too, because it compares as false.
func (r *Report) checkHits() error {
	err := invalidIf(len(r.Hits) > MaxHits, "hits: found %d; report the best %d, and truncated",
		len(r.Hits), MaxHits)
	for i, h := range r.Hits {
		there := h.Offset >= 0 && h.Offset <= maxOffset && h.Length > 0 && h.Length <= maxOffset
		scored := h.Score >= 0 && h.Score <= 1 // not NaN
		err = cmp.Or(err,
			invalidIf(!there || !scored, "hits[%d]: found %+v; expected an offset and a length in "+
				"nanoseconds, at most 100 hours, and a score of 0 to 1", i, h))
	}
	return err
}
