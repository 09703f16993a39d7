package research

import (
	"cmp"
	"context"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
	"archivist/pkg/kernel/table"
)

// A project with a quorum does not trust one researcher: a pair is researched once as many of them, of different
// names, have found the same. Until then it is due for those who have said nothing of it; if as many have said
// something, and not all the same, a person decides (Decide).

// MaxQuorum bounds the researchers of a pair.
const MaxQuorum = 5

// quorum is how many researchers have to agree.
func (p *Project) quorum() int { return max(p.Quorum, 1) }

// opinionRow says of which pairs of an episode a researcher has a result. It is written with each result.
type opinionRow struct {
	table.Head
	Generation int64  `dynamo:"round_no"` // of what follows
	Clips      []byte `dynamo:"clip_nos"` // a bitmap, as episodeRow.Researched

	clips *roaring.Bitmap
}

// pairRow is what became of a pair that several researchers have a result of. While these differ it is in the index
// "list", until a person has decided; then, and if they agree, it has the lease whose result counts.
type pairRow struct {
	table.Head
	Generation int64  `dynamo:"round_no"`
	Episode    string `dynamo:"episode_key"`
	Clip       string `dynamo:"clip_key"`
	Since      int64  `dynamo:"since_ms"`            // when it began to wait for a person, milliseconds since 1970
	Lease      string `dynamo:"lease_id,omitempty"`  // whose result counts
	Sequence   int    `dynamo:"result_no,omitempty"` // of that lease; 0 in rows of earlier versions
	Decided    bool   `dynamo:"by_person,omitempty"` // by a person

	// In a project with a review: a mark for each place of that result, who has made the newest of
	// them and when, and by which requests.
	Marks    string            `dynamo:"hit_marks,omitempty"`
	Empty    bool              `dynamo:"no_hits,omitempty"` // the result has no places
	Reviewer string            `dynamo:"reviewer,omitempty"`
	Reviewed int64             `dynamo:"reviewed_ms,omitempty"`
	Requests registry.Requests `dynamo:"requests,omitempty"`
}

// list puts a pair into the list of those that a person has to decide on.
func (r *pairRow) list(e *episodeRow, clip string, generation, now int64) {
	r.ListPK, r.ListSK = differsPK(e.Project), e.Name+"/"+clip
	r.Generation, r.Episode, r.Clip, r.Lease, r.Decided, r.Since = generation, e.Name, clip, "", false, now
	r.Sequence, r.Marks, r.Empty, r.Reviewer, r.Reviewed = 0, "", false, "", 0
}

// lists reports whether the pair is in that list of a project, by its present analysis.
func (r *pairRow) lists(p *projectRow) bool {
	return r.ListPK == differsPK(p.Name) && r.Generation == p.Generation
}

// opinionsPK is the partition of what researchers have said of an episode.
func opinionsPK(project, episode string) string { return "RESEARCHOPINIONS#" + project + "/" + episode }

// byResearcher and ofPair begin the sort keys of the two kinds of rows there.
const (
	byResearcher = "by#"
	ofPair       = "pair#"
)

// opinionKey is the key of what a researcher has said of an episode.
func opinionKey(project, episode, researcher string) table.Key {
	return table.Key{PK: opinionsPK(project, episode), SK: byResearcher + researcher}
}

// pairKey is the key of what has become of a pair.
func pairKey(project, episode, clip string) table.Key {
	return table.Key{PK: opinionsPK(project, episode), SK: ofPair + clip}
}

// differsPK is the partition of the index "list" with the pairs that a person has to decide on.
func differsPK(project string) string { return "RESEARCHDIFFERS#" + project }

// unpack decodes a row; one of an earlier analysis, or that does not exist, says nothing.
func (r *opinionRow) unpack(generation int64) (err error) {
	r.clips = roaring.New()
	if r.Generation == generation {
		r.clips, err = bits(r.Clips)
	}
	return err
}

// sameHit is how far apart two hits may be that are the same one, in nanoseconds: researchers decode with other
// programs.
const sameHit = 500_000_000

// agree reports whether two results say the same: as many hits, each at the same place. Scores may differ.
func agree(a, b *Report) bool {
	near := func(x, y int64) bool { return max(x, y)-min(x, y) <= sameHit }
	inOrder := func(hits []Hit) []Hit {
		return slices.SortedFunc(slices.Values(hits), func(x, y Hit) int { return cmp.Compare(x.Offset, y.Offset) })
	}
	return a.Truncated == b.Truncated && slices.EqualFunc(inOrder(a.Hits), inOrder(b.Hits), func(x, y Hit) bool {
		return near(int64(x.Offset), int64(y.Offset)) && near(int64(x.Length), int64(y.Length))
	})
}

// opinions are the newest results of a pair by each researcher, by the present analysis, without those that are
// problems. They are read after the row of the episode, which each result writes: one that comes meanwhile makes the
// change a Stale.
func (s *Store) opinions(ctx context.Context, row *projectRow, episode, clip string) (map[string]Result, error) {
	newest := map[string]Result{}
	q := table.Query{PK: resultsPK(row.Name, episode), Prefix: row.def.Analysis.String() + "#" + clip + "#"}
	for {
		var rows []resultRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}

		for i := range rows {
			r, err := rows[i].result()
			if err != nil {
				return nil, err
			}
			if was, there := newest[r.Researcher]; r.Problem == nil && (!there || was.At <= r.At) {
				newest[r.Researcher] = r
			}
		}

		if next == "" {
			return newest, nil
		}
		q.Cursor = next
	}
}

// opinion records that a researcher has a result of a pair, and what all of them together say.
func (c *change) opinion(r *Report) error {
	e, n := c.episode, c.clip.Clip
	if e.researched.Contains(n) {
		return nil // it is one more
	}

	said, err := c.s.opinions(c.ctx, c.project, e.Name, r.Clip)
	if err != nil {
		return err
	}

	if err := c.noteOpinion(r); err != nil {
		return err
	}

	agreeing := 1
	delete(said, r.Researcher)
	for _, other := range said {
		if agree(&other.Report, r) {
			agreeing++
		}
	}

	quorum := c.project.def.quorum()
	switch {
	case agreeing >= quorum:
		return c.agreed(r, false)
	case len(said)+1 >= quorum && !e.differs.Contains(n):
		return c.differ(r, said)
	case len(said)+1 < quorum:
		e.waiting.Add(n)
	}
	return nil
}

// noteOpinion notes that the researcher of a report has said something of its pair.
func (c *change) noteOpinion(r *Report) error {
	row, err := c.opinionsOf(c.episode.Name, r.Researcher)
	if err != nil {
		return err
	}

	row.clips.Add(c.clip.Clip)
	row.Generation = c.project.Generation
	row.Clips, err = packed(row.clips)
	c.tx.InsertOrSave(row)
	return err
}

// pairRow reads what has become of a pair; Rev 0 if there is nothing.
func (c *change) pairRow(clip string) (*pairRow, error) {
	k := pairKey(c.project.Name, c.episode.Name, clip)
	row := &pairRow{Head: newHead(k)}
	all, err := c.s.read(c.ctx, k)
	if err != nil {
		return nil, err
	}
	return row, all.decode(k, row)
}

// agreed makes a pair researched, by the result that counts: the last of those that agree, or the
// one that a person has chosen. In a project with a review, the places of that result wait for a
// person.
func (c *change) agreed(r *Report, person bool) error {
	e, n := c.episode, c.clip.Clip
	e.research(n, len(r.Hits))
	e.waiting.Remove(n)
	e.differs.Remove(n)
	row, err := c.pairRow(r.Clip)
	if err != nil {
		return err
	}
	row.Generation, row.Episode, row.Clip, row.Decided = c.project.Generation, e.Name, r.Clip,
		person
	row.Lease, row.Sequence = r.Lease, r.Sequence
	c.await(row, len(r.Hits))
	c.tx.InsertOrSave(row)
	return nil
}

// differ leaves a pair to a person. said are the results of the others.
func (c *change) differ(r *Report, said map[string]Result) error {
	e, n := c.episode, c.clip.Clip
	row, err := c.pairRow(r.Clip)
	if err != nil {
		return err
	}

	e.differs.Add(n)
	e.waiting.Remove(n)
	row.list(e, r.Clip, c.project.Generation, c.now)
	c.tx.InsertOrSave(row)
	names := []string{r.Researcher}
	for name := range said {
		names = append(names, name)
	}
	slices.Sort(names)
	return c.episodeEvent("episode.differs", Differing{Clip: r.Clip, Analysis: r.Analysis, Researchers: names})
}

// Decision is what a person decides about a pair.
type Decision struct {
	Lease   string // whose result counts
	Another bool   // one more researcher is asked, in place of that
}

// Decide ends the wait of a pair: the result of a lease counts, or one more researcher is asked. It is a Conflict if
// the pair does not wait for a person or another researcher, a NotFound if there is no such episode, clip, or result of
// the pair, and an Invalid without a reason.
func (s *Store) Decide(ctx context.Context, project, episode, clip string, d Decision, by By) error {
	if err := by.Check(); err != nil {
		return err
	}
	if (d.Lease == "") != d.Another {
		return fault.New(fault.Invalid, "lease: name the lease whose result counts, or ask for another researcher")
	}

	err := s.change(ctx, want{project: project, episode: episode, clip: clip}, by, func(c *change) error {
		return c.decide(d, by)
	})
	if err != nil {
		return err
	}
	s.wake(ctx, project)
	return nil
}

// decide makes the change of Decide.
func (c *change) decide(d Decision, by By) error {
	e, n := c.episode, c.clip.Clip
	switch {
	case e.Rev == 0:
		return missing(Episode, e.Project, e.Name)
	case c.clip.Rev == 0:
		return missing(Clip, c.clip.Project, c.clip.Name)
	case d.Another && !e.differs.Contains(n):
		return fault.New(fault.Conflict, "the results of this pair do not differ: nothing was changed")
	case !e.differs.Contains(n) && !e.waiting.Contains(n):
		return fault.New(fault.Conflict, "this pair waits for no decision: nothing was changed")
	}

	detail := Decided{Clip: c.clip.Name, Lease: d.Lease, Another: d.Another, Reason: by.Reason}
	if d.Another {
		e.differs.Remove(n)
		e.waiting.Add(n)
		return cmp.Or(c.unlist(), c.episodeEvent("episode.decided", detail))
	}

	said, err := c.s.opinions(c.ctx, c.project, e.Name, c.clip.Name)
	if err != nil {
		return err
	}

	all := sorted(said)
	i := slices.IndexFunc(all, func(r Result) bool { return r.Lease == d.Lease })
	if i < 0 {
		return fault.New(fault.NotFound, "there is no result of the lease %s among the newest ones of this pair",
			definition.Clip(d.Lease, 60))
	}
	detail.Researcher = all[i].Researcher
	return cmp.Or(c.agreed(&all[i].Report, true), c.episodeEvent("episode.decided", detail))
}

// unlist takes the pair out of the list of those that a person has to decide on.
func (c *change) unlist() error {
	row, err := c.pairRow(c.clip.Name)
	if err != nil || row.Rev == 0 {
		return err
	}
	row.ListPK, row.ListSK = "", ""
	c.tx.Save(row)
	return nil
}
