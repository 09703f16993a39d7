package researchsim

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// checker checks every committed write against the invariants of research. It keeps the first violation.
type checker struct {
	*state
	now   func() time.Time
	err   error
	exact bool // nothing else happens while a lease is made: selection must be exact
	// revisions: those of rows are not compared, so that the rule itself has to find it
	revisions bool
	met       func(string)
	was       []presence
	created   int // leases

	alive      *roaring.Bitmap // numbers of the clips that are live
	generation int64           // of the analysis
	grown      int64           // the number of the catalog when one of these last grew

	reviews map[place]bool // what persons have said of places: whether they are accepted
	ever    map[place]bool // places that some person has ever accepted

	waves map[string]waveRow // how episodes sound, by their keys
}

// presence is when a researcher was present.
type presence struct {
	from, until int64
	takes       int
}

func newChecker(now func() time.Time) *checker {
	return &checker{state: newState(), now: now, alive: roaring.New(), met: func(string) {},
		reviews: map[place]bool{}, ever: map[place]bool{}, waves: map[string]waveRow{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
	}
}

// commit is called with each write, with all of its changes.
func (c *checker) commit(changes []tabletest.Change) {
	c.before(changes)
	touched := false
	for _, ch := range changes {
		row := either(ch)
		if ch.After != nil && ch.Before != nil && !c.revisions &&
			number(ch.After, "rev") != number(ch.Before, "rev")+1 {
			c.fail("%s/%s: rev went from %d to %d", text(row, "pk"), text(row, "sk"), number(ch.Before, "rev"),
				number(ch.After, "rev"))
		}
		c.follow(ch)
		c.decision(ch)
		touched = c.apply(ch) || touched
	}
	for _, ch := range changes { // after the episode, which a transaction may write, too
		c.hear(ch)
	}
	if touched {
		c.all()
	}
}

// before checks what a transaction does with what there was.
func (c *checker) before(changes []tabletest.Change) {
	owner := ""
	for _, ch := range changes {
		if strings.HasPrefix(text(either(ch), "pk"), "RESULTS#") {
			if ch.Before != nil || ch.After == nil {
				c.fail("a result was changed: %s", text(either(ch), "sk"))
				return
			}
			owner = decode[research.Report](text(ch.After, "report_json")).Lease
		}
	}
	for _, ch := range changes {
		id, is := strings.CutPrefix(text(either(ch), "pk"), leasePK)
		if !is || text(either(ch), "sk") != "RESEARCHLEASE" {
			continue
		}
		if owner != "" && id != owner {
			c.fail("a result of the lease %s has touched the lease %s", owner, id)
		}
		if ch.Before == nil {
			c.born(ch.After)
		}
	}
}

// follow checks that a row goes on from what it was.
func (c *checker) follow(ch tabletest.Change) {
	pk, sk := text(either(ch), "pk"), text(either(ch), "sk")
	key, isEpisode := strings.CutPrefix(pk, episodePK)
	switch {
	case isEpisode && sk == "EPISODE" && ch.Before != nil:
		was, is := c.episodes[key], readEpisode(ch.After)
		c.dates(was.media, is.media)
		if is.Generation < was.Generation || is.Generation == was.Generation &&
			was.researched.AndCardinality(is.researched) != was.researched.GetCardinality() {
			c.fail("episode %s has lost researched pairs: %v, then %v", key, was.researched, is.researched)
		}
	case strings.HasPrefix(pk, clipPK) && sk == "CLIP" && ch.Before != nil:
		c.dates(decode[research.Media](text(ch.Before, "media_json")),
			decode[research.Media](text(ch.After, "media_json")))
	case strings.HasPrefix(pk, leasePK) && sk == "RESEARCHLEASE" && ch.Before != nil:
		s := newState()
		s.apply(ch)
		id := strings.TrimPrefix(pk, leasePK)
		c.leaseGoesOn(c.leases[id], s.leases[id])
	case pk == "RESEARCHERS#"+songs && ch.After != nil:
		s := newState()
		s.apply(ch)
		r := s.present[sk]
		c.was = append(c.was, presence{c.now().UnixMilli(), r.Until, r.Capacity})
	}
}

func (c *checker) dates(was, is research.Media) {
	if is.Initial > was.Initial || is.Latest < was.Latest || is.PriorityAt < was.PriorityAt {
		c.fail("dates of %s: %+v, then %+v", was.ID, was, is)
	}
}

func (c *checker) leaseGoesOn(was, is *leaseRow) {
	switch {
	case was.Ended > 0:
		c.fail("the lease %s has ended (%s), and was changed: %+v", was.ID, was.Why, is.Lease)
	case is.Until < was.Until || is.Stored < was.Stored:
		c.fail("the lease %s: %+v, then %+v", was.ID, was.Lease, is.Lease)
	case was.Accepted > 0 && (is.Token != was.Token || is.Researcher != was.Researcher):
		c.fail("the lease %s was accepted by %s, then by %s", was.ID, was.Researcher, is.Researcher)
	case is.Why == research.Expired && c.now().UnixMilli() < is.Until-skewed:
		c.fail("the lease %s has expired before its time", was.ID)
	case is.Why == research.Final:
		c.ended(is)
	}
	if is.Until > was.Until && c.now().UnixMilli() >= was.Until+slowest {
		c.fail("the lease %s was over and was extended", was.ID)
	}
}

// ended checks that all results that a lease has announced are stored. The newest is stored in the same
// transaction, whose rows come in any order.
func (c *checker) ended(l *leaseRow) {
	n := 1
	for _, r := range c.results {
		if r.Lease == l.ID {
			n++
		}
	}
	if l.Results == nil || n < *l.Results {
		c.fail("the lease %s is final with %d results: %+v", l.ID, n, l.Lease)
	}
}

// skewed is the greatest difference of two clocks, and slowest the longest that a transaction can take after
// its process has looked at its clock.
const (
	skewed  = 5_000
	slowest = 10 * 60_000
)

// born checks a new lease against what there was before.
func (c *checker) born(row tabletest.Item) {
	s := newState()
	s.apply(tabletest.Change{After: row})
	l := s.leases[strings.TrimPrefix(text(row, "pk"), leasePK)]
	c.created++
	e := c.episodes[l.Episode]
	if e == nil || !live(e.media) || len(l.Clips) == 0 || len(l.Clips) > research.MaxMaxClips {
		c.fail("lease %s: of episode %+v with clips %v", l.ID, e, l.Clips)
		return
	}
	for _, key := range l.Clips {
		clip := c.clips[key]
		switch {
		case clip == nil:
			c.fail("lease %s: there is no clip %s", l.ID, key)
		case e.Generation == l.Generation && e.researched.Contains(clip.Clip):
			c.fail("lease %s: the pair %s %s is researched", l.ID, l.Episode, key)
		case e.Generation == l.Generation && e.differs.Contains(clip.Clip):
			c.fail("lease %s: a person has to decide on the pair %s %s", l.ID, l.Episode, key)
		case c.leased(e, l.Generation).Contains(clip.Clip):
			c.fail("lease %s: the pair %s %s is under another lease", l.ID, l.Episode, key)
		}
	}
	c.capacity(l)
	if c.exact {
		key, clips := c.choose()
		again := key == "" && c.def.Quorum > 1 && !slices.ContainsFunc(l.Clips, func(clip string) bool {
			return !e.waiting.Contains(c.clips[clip].Clip)
		})
		if again {
			c.met("lease of pairs that have a result")
		} else if key != l.Episode || !slices.Equal(clips, l.Clips) {
			c.fail("lease %s: %s %v was chosen, should be %s %v", l.ID, l.Episode, l.Clips, key, clips)
		}
	}
}

// leased are the pairs of an episode, in a generation, under leases that have not ended.
func (s *state) leased(e *episodeRow, generation int64) *roaring.Bitmap {
	b := roaring.New()
	for _, h := range e.Leased {
		if e.Generation == generation {
			b.Or(bits(h.Clips))
		}
	}
	return b
}

// window is how long ago the assigner may have counted the researchers, at most.
const window = slowest

// capacity checks that there is no work item too many in the queue.
func (c *checker) capacity(l *leaseRow) {
	now, items, researchers := c.now().UnixMilli(), 0, 0
	for sk := range c.line {
		var at int64
		_, err := fmt.Sscanf(sk, "pending#%d#", &at)
		if err == nil && at > now+skewed {
			items++
		}
	}
	for _, p := range c.was {
		if p.from <= now && p.until > now-window {
			researchers += p.takes
		}
	}
	if items > 0 && items > researchers {
		c.fail("lease %s: there were %d work items for %d researchers", l.ID, items, researchers)
	}
}

// choose is the choice of the requirement, by looking at all pairs.
func (s *state) choose() (episode string, clips []string) {
	for _, key := range slices.SortedFunc(maps.Keys(s.episodes), func(a, b string) int {
		return before(s.episodes[a].media, s.episodes[b].media, a, b)
	}) {
		clips = s.due(s.episodes[key])
		if len(clips) > 0 {
			return key, clips[:min(len(clips), s.def.MaxClips)]
		}
	}
	return "", nil
}

// due are the clips that are due with an episode, in order; those of which some researcher has a result, but not as
// many as the project wants, are not among them.
func (s *state) due(e *episodeRow) (due []string) {
	if !live(e.media) {
		return nil
	}
	leased := s.leased(e, s.project.Generation)
	for _, key := range slices.SortedFunc(maps.Keys(s.clips), func(a, b string) int {
		return before(s.clips[a].media, s.clips[b].media, a, b)
	}) {
		r := s.clips[key]
		said := roaring.FastOr(e.researched, e.differs, e.waiting)
		researched := e.Generation == s.project.Generation && said.Contains(r.Clip)
		if live(r.media) && !researched && !leased.Contains(r.Clip) {
			due = append(due, key)
		}
	}
	return due
}

// before is the order of the requirement.
func before(a, b research.Media, keyA, keyB string) int {
	return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(b.Initial, a.Initial), cmp.Compare(keyA, keyB))
}
