package research

import (
	"context"
	"fmt"
	"strings"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
)

// A project with a review does not trust an analysis: each place that a result has waits for a
// person, who accepts or rejects it, and only what is accepted is exported. The result of a pair
// that counts never becomes another within a version of the analysis, so a mark stands for the same
// place as long as its row has it.

// Marks of places, as the row of a pair has them.
const (
	waits    = 'w'
	accepted = 'a'
	rejected = 'r'
)

// markNames are what people and programs read of a mark.
var markNames = map[byte]string{waits: "waits", accepted: "accepted", rejected: "rejected"}

// waiting is how many places of the pair wait for a person.
func (r *pairRow) waiting() int { return strings.Count(r.Marks, string(waits)) }

// mark is that of a place, by its number from 0. A place without one waits: nobody has accepted it.
func (r *pairRow) mark(n int) byte {
	if n < 0 || n >= len(r.Marks) {
		return waits
	}
	return r.Marks[n]
}

// reviewsPK is the partition of the index "list" with the pairs of a generation that have places
// that wait.
func reviewsPK(project string, generation int64) string {
	return fmt.Sprintf("RESEARCHREVIEWS#%s/%06d", project, generation)
}

// setReviews lists the pair if places of it wait. One whose results differ has no marks, and is in
// another list.
func (r *pairRow) setReviews(project string) {
	r.ListPK, r.ListSK = "", ""
	if r.waiting() > 0 {
		r.ListPK, r.ListSK = reviewsPK(project, r.Generation), r.Episode+"/"+r.Clip
	}
}

// await lets so many places of a pair wait for a person, if the project asks for that.
func (c *change) await(row *pairRow, places int) {
	row.Marks, row.Reviewer, row.Reviewed = "", "", 0
	row.Empty = c.project.def.Review && places == 0
	if c.project.def.Review && places > 0 {
		row.Marks, row.Since = strings.Repeat(string(waits), places), c.now
	}
	c.reviews += int64(row.waiting())
	row.setReviews(c.project.Name)
}

// Review is what a person says of places of a pair.
type Review struct {
	Lease  string // whose result the person has seen
	Hit    int    // the place, numbered from 1 in the order of the result; 0: all that wait
	Accept bool   // it counts; else it is rejected
	Change bool   // also what was decided otherwise before
}

// Review accepts or rejects places of a pair. The same again changes nothing. It is a Conflict if
// the result is not the one that counts, if another person has decided otherwise meanwhile, or if
// the project asks for no review; a NotFound if there is no such episode or clip, and an Invalid
// without a reason.
func (s *Store) Review(ctx context.Context, project, episode, clip string, r Review, by By) error {
	if err := by.Check(); err != nil {
		return err
	}
	return s.change(ctx, want{project: project, episode: episode, clip: clip}, by,
		func(c *change) error {
			return c.review(r, by)
		})
}

// review makes the change of Review.
func (c *change) review(r Review, by By) error {
	e := c.episode
	switch {
	case e.Rev == 0:
		return missing(Episode, e.Project, e.Name)
	case c.clip.Rev == 0:
		return missing(Clip, c.clip.Project, c.clip.Name)
	}

	row, err := c.pairRow(c.clip.Name)
	if err != nil {
		return err
	}

	if done, err := row.Requests.Done(by); done || err != nil {
		return err
	}

	if err := c.reviewable(row, r); err != nil {
		return err
	}

	before := row.waiting()
	hits, err := row.review(r, by.Actor)
	if err != nil {
		return err
	}

	if len(hits) == 0 && by.Request == "" {
		return nil
	}
	row.Requests, c.noted = row.Requests.With(by), true
	if len(hits) == 0 {
		c.tx.Save(row) // a repetition changes nothing either, whatever others change meanwhile
		return nil
	}

	row.Reviewer, row.Reviewed = by.Actor, c.now
	row.setReviews(c.project.Name)
	c.reviews += int64(row.waiting() - before)
	c.tx.Save(row)
	return c.episodeEvent("episode.reviewed",
		Reviewed{Clip: row.Clip, Lease: row.Lease, Hits: hits, Accepted: r.Accept,
			Reason: by.Reason})
}

// reviewable is a Conflict if the result that a person has seen is not one whose places can be
// reviewed.
func (c *change) reviewable(row *pairRow, r Review) error {
	n, analysis := c.clip.Clip, c.project.def.Analysis.String()
	switch {
	case !c.project.def.Review:
		return fault.New(fault.Conflict, "the project %s asks for no review: all places count",
			c.project.Name)
	case c.episode.differs.Contains(n):
		return fault.New(fault.Conflict,
			"the results of this pair differ: decide first which one counts")
	case !c.episode.researched.Contains(n) || row.Generation != c.project.Generation:
		return fault.New(fault.Conflict,
			"no result of this pair counts by %s, the present analysis: nothing was changed",
			analysis)
	case row.Lease != r.Lease:
		return fault.New(fault.Conflict,
			"the result of the lease %s counts, not that of %s: look at it first", row.Lease,
			definition.Clip(r.Lease, 60))
	case row.Marks == "":
		return fault.New(fault.Conflict,
			"the result of the lease %s has no places: there is nothing to review",
			row.Lease)
	}
	return invalidIf(r.Hit < 0 || r.Hit > len(row.Marks),
		"hit: found %d; the result has %d places", r.Hit,
		len(row.Marks))
}

// review marks places, and returns the numbers of those whose marks are others than before. It is a
// Conflict if a person has decided otherwise: nobody overrules another without knowing it.
func (r *pairRow) review(v Review, actor string) (hits []int, err error) {
	to := byte(rejected)
	if v.Accept {
		to = accepted
	}

	marks, otherwise := []byte(r.Marks), 0
	for i, is := range marks {
		switch {
		case v.Hit > 0 && i != v.Hit-1 || is == to:
		case is == waits || v.Change:
			marks[i] = to
			hits = append(hits, i+1)
		default:
			otherwise = i + 1
		}
	}

	// Who says the same again of all that wait is told nothing of the places that it left out the
	// first time.
	if otherwise > 0 && len(hits) == 0 && (v.Hit > 0 || r.Reviewer != actor) {
		return nil, fault.New(fault.Conflict,
			"place %d is %s already; the last decision about this pair is by %s, at %s: "+
				"ask for a change to overrule it",
			otherwise, markNames[marks[otherwise-1]], r.Reviewer, timeText(r.Reviewed))
	}
	r.Marks = string(marks)
	return hits, nil
}
