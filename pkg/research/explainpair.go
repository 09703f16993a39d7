package research

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/table"
)

// Standing is whether a pair is due, and why: the first reason that holds.
type Standing struct {
	explain.Part // Ahead counts episodes, and is nil if the pair is not due

	Episode, Clip Known
	Due           bool
	Results       []Result // of the present analysis, at most ten
	Lease         *Lease   // that covers it, if that is the reason
	ClipsBefore   int      // of the same episode, if it is due
}

// Bounds of an explanation.
const (
	mostBefore = 1000 // episodes that are counted before the one of the pair
	mostShown  = 10   // results of the pair
)

// ExplainPair says why a pair is or is not due, as Standing does.
func (s *Store) ExplainPair(ctx context.Context, project, episode, clip string) (explain.Explanation, error) {
	x, err := s.Standing(ctx, project, episode, clip)
	if err != nil {
		return explain.Explanation{}, err
	}

	p := x.Part
	p.Kind, p.ID, p.State = explain.Episode, project+"/"+episode, string(x.Episode.State)
	p.Add("episode", x.Episode.Title)
	p.Add("clip", strings.TrimSpace(clip+" "+x.Clip.Title))
	for _, r := range x.Results {
		p.Add("result", fmt.Sprintf("%s, at %s", saidText([]Result{r}), timeText(r.At)))
	}
	if x.Due {
		p.Add("clips of this episode before it", strconv.Itoa(x.ClipsBefore))
	}
	return explain.Only(p), nil
}

// Standing says why a pair is or is not due, by what is stored now. It costs about six requests. It
// returns a NotFound if there is no such project, episode or clip.
func (s *Store) Standing(ctx context.Context, project, episode,
	clip string) (x Standing, err error) {
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
	err = s.why(ctx, row, e, c, cat, &x)
	return x, err
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
	x *Standing) error {
	e.begin(row.Generation)
	x.Waits = explain.Nothing
	if e.researched.Contains(c.Clip) {
		x.Why = "it is researched" + firstResult(x.Results)
		return s.whyUnreviewed(ctx, row, e, c, x)
	}

	switch {
	case e.differs.Contains(c.Clip):
		x.Waits = explain.Person
		x.Why = fmt.Sprintf("its results differ (%s)", saidText(x.Results))
		decide := fmt.Sprintf("archivist research decide %s %s %s", row.Name, e.Name, c.Name)
		x.Do = []explain.Step{
			{What: "Say which one counts", Command: decide + " --lease ID --reason TEXT"},
			{What: "Ask another researcher", Command: decide + " --another --reason TEXT"}}
		return nil
	case !e.media.live():
		explainAway(&x.Part, Episode, row.Name, e.Name, &e.media)
		return nil
	case !c.media.live():
		explainAway(&x.Part, Clip, row.Name, c.Name, &c.media)
		return nil
	}

	for _, h := range e.Leased {
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

// whyUnreviewed says whether places of a pair that is researched wait for a person.
func (s *Store) whyUnreviewed(ctx context.Context, row *projectRow, e *episodeRow, c *clipRow,
	x *Standing) error {
	k := pairKey(row.Name, e.Name, c.Name)
	all, err := s.read(ctx, k)
	if err != nil {
		return err
	}

	var p pairRow
	err = all.decode(k, &p)
	if err != nil || !row.def.Review || p.Generation != row.Generation || p.Marks == "" {
		return err
	}

	review := fmt.Sprintf("archivist research review %s %s %s --lease %s", row.Name, e.Name,
		c.Name, p.Lease)
	if n := p.waiting(); n > 0 {
		x.Waits, x.Since = explain.Person, p.Since
		x.Why += fmt.Sprintf("; %d of its %d places wait to be accepted or rejected", n,
			len(p.Marks))
		x.Do = []explain.Step{{What: "Accept them", Command: review + " --accept --reason TEXT"},
			{What: "Reject them", Command: review + " --reject --reason TEXT"}}
		return nil
	}
	x.Why += fmt.Sprintf("; %d of its %d places are accepted, %s", strings.Count(p.Marks,
		string(accepted)),
		len(p.Marks), lastReview(&p))
	return nil
}

// lastReview says by whom the newest decision about places of a pair is.
func lastReview(p *pairRow) string {
	return fmt.Sprintf("last decided by %s at %s", p.Reviewer, timeText(p.Reviewed))
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
	case Quarantined:
		return "set aside: " + m.Quarantined
	case Deferred:
		return fmt.Sprintf("deferred until %s: %s", timeText(m.Deferred), m.Problem)
	}
	return "withdrawn"
}

// explainAway explains an episode or a clip that is not live.
func explainAway(p *explain.Part, kind Kind, project, key string, m *Media) {
	p.Why = fmt.Sprintf("the %s is %s", kind, awayText(m))
	retry := explain.Step{What: "Research it again",
		Command: "archivist research " + string(kind) + "s retry " + project + " " + key + " --reason TEXT"}
	switch m.awayState() {
	case Quarantined:
		p.Waits, p.Do = explain.Person, []explain.Step{retry}
	case Deferred:
		p.Waits, p.Until, p.Do = explain.Retry, m.Deferred, []explain.Step{retry}
	default:
		p.Waits = explain.Nothing
	}
}

// whyLeased says under which lease a pair is, and who works on it. A lease without a row is a
// NotFound.
func (s *Store) whyLeased(ctx context.Context, h leasedPairs, x *Standing) error {
	l, err := s.Lease(ctx, h.Lease)
	if err != nil {
		return err
	}

	x.Lease, x.Waits, x.Since, x.Until = &l, explain.Worker, l.Created, h.Until
	x.Do = []explain.Step{l.revoke()}
	who := "no researcher has accepted it yet"
	if l.Accepted > 0 {
		who = "accepted by " + l.Researcher
	}

	// The end that counts is that of the row of the episode, which excludes other leases.
	if h.Until <= s.now() {
		who += "; its time is over, and the next pass of the assigner ends it"
	}

	x.Why = fmt.Sprintf("it is under the lease %s until %s: %s", l.ID, timeText(h.Until), who)
	return nil
}

// whyWaiting says what a pair that is due waits for: the clips before it in its episode, the
// episodes before that, and what keeps all work from being assigned. Episodes are counted up to
// mostBefore, which one query reads.
func (s *Store) whyWaiting(ctx context.Context, row *projectRow, e *episodeRow, c *clipRow,
	cat *catalog,
	x *Standing) error {
	if err := s.ahead(ctx, row, e, c, cat, x); err != nil {
		return err
	}

	present, err := s.Present(ctx, row.Name)
	switch {
	case err != nil:
		return err
	case row.Paused != "":
		x.Waits, x.Do = explain.Hold, []explain.Step{resume(row.Name)}
		x.Why = "it is due, but the project is paused: " + row.Paused
	case len(e.Leased) >= MaxLeases:
		x.Waits, x.Why = explain.Limit, "it is due, but "+e.full()
	case present == 0:
		x.Waits = explain.Researcher
		x.Why = "it is due, but no researcher is present"
	case e.waiting.Contains(c.Clip):
		x.Waits = explain.Researcher
		x.Why = fmt.Sprintf("it has fewer results that agree than the %d of this project (%s): it waits for another "+
			"researcher, behind all pairs without a result", row.def.quorum(), saidText(x.Results))
	default:
		x.Waits = explain.Turn
		x.Why = fmt.Sprintf("it is due: %s and %d clips of this episode come first",
			episodesText(x.Ahead), x.ClipsBefore)
	}
	return nil
}

// ahead counts what comes before a pair that is due.
func (s *Store) ahead(ctx context.Context, row *projectRow, e *episodeRow, c *clipRow, cat *catalog,
	x *Standing) error {
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

	x.Ahead = &explain.Ahead{}
	for _, r := range before {
		if r.Owner != e.Name {
			x.Ahead.N++
		}
	}

	if x.Ahead.N > mostBefore {
		x.Ahead.N, x.Ahead.More = mostBefore, true
	}
	return nil
}

// episodesText says how many episodes come before.
func episodesText(a *explain.Ahead) string {
	if a.More {
		return fmt.Sprintf("more than %d episodes", a.N)
	}
	return fmt.Sprintf("%d episodes", a.N)
}
