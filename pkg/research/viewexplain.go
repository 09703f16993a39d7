package research

import (
	"context"
	"fmt"
	"time"

	"archivist/pkg/kernel/table"
)

// Explanation says why a pair is or is not due.
type Explanation struct {
	Episode, Clip Known
	Due           bool
	Why           string   // in a sentence, the first reason that holds
	Results       []Result // of the present analysis, at most ten
	Lease         *Lease   // that covers it, if that is the reason

	// Of a pair that is due: what comes first.
	EpisodesBefore int
	MoreBefore     bool // there are more episodes
	ClipsBefore    int  // of the same episode
}

// Bounds of an explanation.
const (
	mostBefore = 1000 // episodes that are counted before the one of the pair
	mostShown  = 10   // results of the pair
)

// Explain says why a pair is or is not due, by what is stored now. It costs about six requests. It
// returns a NotFound if there is no such project, episode or clip.
func (s *Store) Explain(ctx context.Context, project, episode,
	clip string) (x Explanation, err error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return x, err
	}

	e, err := s.episodeRow(ctx, project, episode)
	if err != nil {
		return x, err
	}

	if e.Rev == 0 {
		return x, missing(Episode, project, episode)
	}

	c, err := s.clipRow(ctx, project, clip)
	if err != nil {
		return x, err
	}

	if c.Rev == 0 {
		return x, missing(Clip, project, clip)
	}

	x.Clip = c.known()
	x.Episode, err = e.known(row, cat)
	if err != nil {
		return x, err
	}

	x.Results, err = s.ofPair(ctx, row, episode, clip)
	if err != nil {
		return x, err
	}
	return x, s.why(ctx, row, e, c, cat, &x)
}

// ofPair are the results of a pair, by the present analysis.
func (s *Store) ofPair(ctx context.Context, row *projectRow, episode,
	clip string) (all []Result, err error) {
	var rows []resultRow
	_, err = s.Table.Page(ctx, table.Query{
		PK:     resultsPK(row.Name, episode),
		Prefix: row.def.Analysis.String() + "#" + clip + "#",
		Limit:  mostShown,
	}, &rows)

	for i := range rows {
		r, failed := rows[i].result()
		if failed != nil {
			return nil, failed
		}
		all = append(all, r)
	}
	return all, err
}

// why finds the first reason that holds, in this order: it is researched, a person has to decide, it cannot be
// researched, it is under a lease; else it is due, and waits.
func (s *Store) why(ctx context.Context, row *projectRow, e *episodeRow, c *clipRow, cat *catalog,
	x *Explanation) error {
	e.begin(row.Round)
	if e.researched.Contains(c.Clip) {
		x.Why = "it is researched" + firstResult(x.Results)
		return nil
	}

	switch {
	case e.differs.Contains(c.Clip):
		x.Why = fmt.Sprintf("its results differ (%s); archivist research decide says which one counts, or asks "+
			"another researcher", saidText(x.Results))
		return nil
	case !e.media.live():
		x.Why = "the episode is " + awayText(&e.media)
		return nil
	case !c.media.live():
		x.Why = "the clip is " + awayText(&c.media)
		return nil
	}

	for _, h := range e.Held {
		clips, err := bits(h.Clips)
		if err != nil {
			return err
		}
		if clips.Contains(c.Clip) {
			return s.whyLeased(ctx, h, x)
		}
	}

	x.Due = true
	return s.whyWaiting(ctx, row, e, c, cat, x)
}

// firstResult says by whom a pair was researched; "" if its results are not among those that were
// read.
func firstResult(all []Result) string {
	for _, r := range all {
		if r.Problem == nil {
			return fmt.Sprintf(": by %s at %s, lease %s", r.Researcher, timeText(r.At), r.Lease)
		}
	}
	return ""
}

// timeText is a time for people, in UTC.
func timeText(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// awayText says in which state media is that is not live, and why. It continues "the episode is".
func awayText(m *Media) string {
	switch m.awayState() {
	case SetAside:
		return "set aside: " + m.Aside
	case Deferred:
		return fmt.Sprintf("deferred until %s: %s", timeText(m.Deferred), m.Problem)
	}
	return "withdrawn"
}

// whyLeased says under which lease a pair is, and who works on it. A lease without a row is a
// NotFound.
func (s *Store) whyLeased(ctx context.Context, h held, x *Explanation) error {
	l, err := s.Lease(ctx, h.Lease)
	if err != nil {
		return err
	}

	x.Lease = &l
	who := "no researcher has accepted it yet"
	if l.Accepted > 0 {
		who = "accepted by " + l.Researcher
	}

	// The end that counts is that of the row of the episode, which excludes other leases.
	if h.Until <= s.now() {
		who += "; its time is over, and the next pass of the archivist ends it"
	}

	x.Why = fmt.Sprintf("it is under the lease %s until %s: %s", l.ID, timeText(h.Until), who)
	return nil
}

// whyWaiting says what a pair that is due waits for: the clips before it in its episode, the
// episodes before that, and what keeps all work from being assigned. Episodes are counted up to
// mostBefore, which one query reads.
func (s *Store) whyWaiting(ctx context.Context, row *projectRow, e *episodeRow, c *clipRow,
	cat *catalog,
	x *Explanation) error {
	taken, err := e.taken()
	if err != nil {
		return err
	}

	for l := range cat.from("") {
		if l.number == c.Clip {
			break
		}
		if !taken.Contains(l.number) {
			x.ClipsBefore++
		}
	}

	// The episode itself may be among them, and one more says that there are more.
	var before []lineRow
	_, err = s.Table.Page(ctx, table.Query{
		PK:    linePK(row.Name),
		From:  ready + "#",
		To:    ready + "#" + e.media.order(),
		Limit: mostBefore + 2,
	}, &before)
	if err != nil {
		return err
	}

	for _, r := range before {
		if r.Owner != e.Name {
			x.EpisodesBefore++
		}
	}

	if x.EpisodesBefore > mostBefore {
		x.EpisodesBefore, x.MoreBefore = mostBefore, true
	}

	present, err := s.Present(ctx, row.Name)
	switch {
	case err != nil:
		return err
	case row.Paused != "":
		x.Why = "it is due, but the project is paused: " + row.Paused
	case len(e.Held) >= MaxHeld:
		x.Why = "it is due, but " + e.full()
	case present == 0:
		x.Why = "it is due, but no researcher is present"
	case e.waiting.Contains(c.Clip):
		x.Why = fmt.Sprintf("it has fewer results that agree than the %d of this project (%s): it waits for another "+
			"researcher, behind all pairs without a result", row.def.quorum(), saidText(x.Results))
	default:
		x.Why = fmt.Sprintf("it is due: %s and %d clips of this episode come first",
			episodesText(x), x.ClipsBefore)
	}
	return nil
}

// episodesText says how many episodes come before.
func episodesText(x *Explanation) string {
	if x.MoreBefore {
		return fmt.Sprintf("more than %d episodes", x.EpisodesBefore)
	}
	return fmt.Sprintf("%d episodes", x.EpisodesBefore)
}
