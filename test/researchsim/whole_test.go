package researchsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/research"
)

// all checks that the rows agree with each other.
func (c *checker) all() {
	if c.project.Version == 0 || c.err != nil {
		return
	}
	c.versions()
	c.checkCatalog()
	c.grow()
	want := map[string]string{} // the rows that the line should have
	for key, e := range c.episodes {
		c.checkEpisode(key, e, want)
	}
	for key, r := range c.clips {
		if r.media.Deferred > 0 {
			want[fmt.Sprintf("due#%013d#clip#%s", r.media.Deferred, key)] = key
		}
	}
	for id, l := range c.leases {
		c.checkLease(l)
		if l.Ended == 0 {
			want[fmt.Sprintf("due#%013d#lease#%s", l.Until, id)] = id
		}
		if l.Ended == 0 && l.Accepted == 0 {
			want[fmt.Sprintf("pending#%013d#%s", l.QueueEnd, id)] = id
		}
	}
	if !maps.Equal(want, c.line) {
		c.fail("the line has %v; it should have %v", c.line, want)
	}
	c.checkOrder()
	c.checkCounts()
	c.checkReviews()
}

// versions checks that each row has the number of its newest event.
func (c *checker) versions() {
	is := map[string]int64{"RESEARCHPROJECT#" + songs: c.project.Version}
	for key, e := range c.episodes {
		is[episodePK+key] = e.Version
	}
	for key, r := range c.clips {
		is[clipPK+key] = r.Version
	}
	for id, l := range c.leases {
		is[leasePK+id] = l.Version
	}
	if !maps.Equal(is, c.events) {
		c.fail("the rows have the versions %v, their events %v", is, c.events)
	}
}

func (c *checker) checkCatalog() {
	if len(c.catalog) != len(c.clips) || int(c.project.Numbers) != len(c.clips) {
		c.fail("%d clips have %d numbers and %d rows in the catalog", len(c.clips), c.project.Numbers, len(c.catalog))
	}
	for key, r := range c.clips {
		row := c.catalog[fmt.Sprintf("%012d", r.Listed)]
		if row.Owner != key || row.Number != r.Clip || row.Live != live(r.media) || r.Listed > c.project.Catalog {
			c.fail("clip %s is %+v, in the catalog %+v", key, r, row)
		}
	}
}

// grow notes when clips have come or come back, and when the analysis has become another: then closed episodes
// have pairs that are due.
func (c *checker) grow() {
	is := c.numbers()
	if c.generation != c.project.Generation || is.AndCardinality(c.alive) < is.GetCardinality() {
		c.grown = c.project.Catalog
	}
	c.alive, c.generation = is, c.project.Generation
}

// checkEpisode checks the place of an episode, and the leases on it.
func (c *checker) checkEpisode(key string, e *episodeRow, want map[string]string) {
	if e.media.Deferred > 0 {
		want[fmt.Sprintf("due#%013d#episode#%s", e.media.Deferred, key)] = key
	}
	if live(e.media) != (e.Place != "") {
		c.fail("episode %s is at %q: %+v", key, e.Place, e.media)
	}
	if e.Place != "" {
		want[e.Place] = key
	}
	unseen := c.walk.Catalog < c.grown || c.walk.After < e.Place
	if strings.HasPrefix(e.Place, "closed#") && !unseen && len(c.due(e)) > 0 {
		c.fail("episode %s is closed, was looked at (%+v of %d), and has clips that are due: %v", key, c.walk,
			c.grown, c.due(e))
	}
	again := live(e.media) && e.Generation == c.project.Generation &&
		roaring.And(roaring.AndNot(e.waiting, c.leased(e, e.Generation)), c.numbers()).GetCardinality() > 0
	if e.Further != "" {
		want[e.Further] = key
	}
	if strings.HasPrefix(e.Place, "closed#") && e.Further == "" && len(e.Leased) < research.MaxLeases &&
		!unseen && again {
		c.fail("episode %s is closed, and pairs of it wait for other researchers: %v", key, e.waiting)
	}
	c.checkOpinions(key, e)
	taken := roaring.New()
	for _, h := range e.Leased {
		l := c.leases[h.Lease]
		if l == nil || l.Ended > 0 || l.Episode != key || l.Until != h.Until || l.Generation != e.Generation {
			c.fail("episode %s is held by %+v, whose row is %+v", key, h, l)
		}
		if clips := bits(h.Clips); taken.Intersects(clips) {
			c.fail("episode %s: pairs are under two leases: %+v", key, e.Leased)
		} else {
			taken.Or(clips)
		}
	}
}

// checkOpinions checks what is known of the pairs of an episode against their results: a pair is researched if as many
// researchers have found the same as the project wants, or a person has decided; it waits for a person, who can see it,
// only if as many have said something.
func (c *checker) checkOpinions(key string, e *episodeRow) {
	quorum := max(c.def.Quorum, 1)
	if e.Generation != c.project.Generation {
		return
	}
	if e.researched.Intersects(e.waiting) || e.researched.Intersects(e.differs) || e.waiting.Intersects(e.differs) {
		c.fail("episode %s: researched %v, waiting %v, differing %v", key, e.researched, e.waiting, e.differs)
	}
	for clip, r := range c.clips {
		said := c.said(key, clip)
		most, all := 0, map[string]bool{}
		for _, names := range said {
			most = max(most, len(names))
			for name := range names {
				all[name] = true
			}
		}
		row, there := c.differs["RESEARCHOPINIONS#"+songs+"/"+key+" pair#"+clip]
		listed := there && row.Generation == e.Generation && row.List == "RESEARCHDIFFERS#"+songs
		chosen := there && row.Generation == e.Generation && row.Lease != "" && row.Decided
		switch {
		case e.researched.Contains(r.Clip) && (most < quorum && !chosen || listed ||
			(quorum > 1 || c.def.Review) && row.Lease == ""):
			c.fail("the pair %s %s is researched: %v, %+v", key, clip, said, row)
		case e.differs.Contains(r.Clip) && (len(all) < quorum || !listed):
			c.fail("the pair %s %s waits for a person: %v, %+v", key, clip, said, row)
		case e.waiting.Contains(r.Clip) && (len(all) == 0 || listed):
			c.fail("the pair %s %s waits for others: %v, %+v", key, clip, said, row)
		case !e.researched.Contains(r.Clip) && !e.differs.Contains(r.Clip) && !e.waiting.Contains(r.Clip) &&
			(len(all) > 0 || listed):
			c.fail("the pair %s %s is forgotten: %v, %+v", key, clip, said, row)
		}
	}
}

// said are the researchers who have ever said the same of a pair, by what they have said.
func (c *checker) said(episode, clip string) map[string]map[string]bool {
	all := map[string]map[string]bool{}
	for _, r := range c.results {
		if r.Episode != episode || r.Clip != clip || r.Problem != nil || r.Analysis != c.def.Analysis.String() {
			continue
		}
		what := fmt.Sprint(r.Hits)
		if all[what] == nil {
			all[what] = map[string]bool{}
		}
		all[what][r.Researcher] = true
	}
	return all
}

// checkLease checks that a lease that has not ended is on its pairs.
func (c *checker) checkLease(l *leaseRow) {
	e := c.episodes[l.Episode]
	if l.Ended > 0 || e.Generation > l.Generation {
		return
	}
	for _, h := range e.Leased {
		if h.Lease == l.ID {
			numbers := roaring.New()
			for _, key := range l.Clips {
				numbers.Add(c.clips[key].Clip)
			}
			if !numbers.Equals(bits(h.Clips)) {
				c.fail("lease %s of %v holds %v", l.ID, l.Clips, bits(h.Clips))
			}
			return
		}
	}
	c.fail("lease %s is not on its episode", l.ID)
}

// checkOrder checks that the places are in the order of the requirement.
func (c *checker) checkOrder() {
	var places []string
	for key, e := range c.episodes {
		if _, rank, ok := strings.Cut(e.Place, "#"); ok {
			places = append(places, rank+" "+key)
		}
	}
	slices.Sort(places)
	for i := 1; i < len(places); i++ {
		a, b := places[i-1][strings.Index(places[i-1], " ")+1:], places[i][strings.Index(places[i], " ")+1:]
		if before(c.episodes[a].media, c.episodes[b].media, a, b) > 0 {
			c.fail("the line has %s before %s", a, b)
		}
	}
}

// checkCounts compares the counts with a recount.
func (c *checker) checkCounts() {
	var is, want countRow
	var generations, recounted [100]countRow
	for sk, n := range c.counts {
		generation := 0
		if _, err := fmt.Sscanf(sk, "round#%d#", &generation); err == nil {
			generations[generation].Pairs += n.Pairs
			generations[generation].Results += n.Results
			generations[generation].Reviews += n.Reviews
			generations[generation].Differ += n.Differ
			generations[generation].Waiting += n.Waiting
			continue
		}
		is.Ready, is.Closed, is.Away = is.Ready+n.Ready, is.Closed+n.Closed, is.Away+n.Away
	}
	for _, e := range c.episodes {
		switch {
		case strings.HasPrefix(e.Place, "ready#"):
			want.Ready++
		case strings.HasPrefix(e.Place, "closed#"):
			want.Closed++
		default:
			want.Away++
		}
		recounted[e.Generation].Pairs += e.Counted
		recounted[e.Generation].Differ += e.Differ
		recounted[e.Generation].Waiting += e.Partial
	}
	for _, row := range c.differs {
		recounted[row.Generation].Reviews += int64(strings.Count(row.Marks, "w"))
	}
	for _, r := range c.results {
		recounted[slices.Index(c.project.Past, r.Analysis)+1].Results++
	}
	if is != want {
		c.fail("the places are counted as %+v; there are %+v", is, want)
	}
	for n, of := range generations {
		if n != int(c.project.Generation) { // of these, results are counted, and nothing else
			recounted[n] = countRow{Pairs: of.Pairs, Results: recounted[n].Results,
				Reviews: of.Reviews, Differ: of.Differ, Waiting: of.Waiting}
		}
		if of != recounted[n] {
			c.fail("generation %d is counted as %+v; there are %+v", n, of, recounted[n])
		}
	}
}

// counted compares the pairs of each live episode that are researched, differ, or have too few
// results, with its counts.
func (c *checker) counted() error {
	numbers := c.numbers()
	for key, e := range c.episodes {
		if !live(e.media) || e.Generation != c.project.Generation {
			continue
		}
		is := [3]int64{e.Counted, e.Differ, e.Partial}
		var want [3]int64
		for i, of := range []*roaring.Bitmap{e.researched, e.differs, e.waiting} {
			want[i] = int64(of.AndCardinality(numbers))
		}
		if is != want {
			return fmt.Errorf("episode %s: %v pairs are counted, of %v", key, is, want)
		}
	}
	return nil
}

// numbers are those of the clips that are live.
func (c *checker) numbers() *roaring.Bitmap {
	b := roaring.New()
	for _, r := range c.clips {
		if live(r.media) {
			b.Add(r.Clip)
		}
	}
	return b
}

// atRest names what has not come to rest.
func (c *checker) atRest() error {
	numbers := c.numbers()
	for key, e := range c.episodes {
		switch {
		case !live(e.media) && !e.media.Withdrawn:
			return fmt.Errorf("episode %s is set aside: %+v", key, e.media)
		case e.media.Withdrawn:
		case e.Generation != c.project.Generation || e.researched.AndCardinality(numbers) != numbers.GetCardinality():
			return fmt.Errorf("episode %s: researched are %v of %v", key, e.researched, numbers)
		}
	}
	err := c.counted()
	if err != nil {
		return err
	}
	for id, l := range c.leases {
		if l.Ended == 0 {
			return fmt.Errorf("lease %s has not ended", id)
		}
	}
	for sk := range c.line {
		if !strings.HasPrefix(sk, "closed#") {
			return fmt.Errorf("the line has %s", sk)
		}
	}
	return nil
}

// unsent names a work item in the queue that was made before a time, and is not recorded as sent.
func (c *checker) unsent(since int64) string {
	for id, l := range c.leases {
		waits := l.Ended == 0 && l.Accepted == 0 && l.QueueEnd > c.now().UnixMilli()+skewed
		if waits && l.Published == 0 && l.Created < since {
			return id
		}
	}
	return ""
}

// folded is what is known after records, whatever their order: written by the requirement alone.
func folded(records []research.Curated) (m research.Media) {
	var newest, given *research.Curated
	for i := range records {
		r := &records[i]
		initial := r.Initial
		if initial == 0 {
			initial = r.Curated
		}
		if newest == nil || initial < m.Initial {
			m.Initial = initial
		}
		m.Latest = max(m.Latest, r.Curated)
		if newest == nil || r.Curated > newest.Curated || r.Curated == newest.Curated && content(r) > content(newest) {
			newest = r
		}
		if p := r.Priority; p != nil && (given == nil || r.Curated > given.Curated ||
			r.Curated == given.Curated && *p > *given.Priority) {
			given = r
		}
	}
	if given != nil {
		m.Priority, m.PriorityAt = *given.Priority, given.Curated
	}
	m.Source, m.ID, m.Title, m.URL, m.Size, m.SHA256, m.Withdrawn = newest.Source, newest.ID, newest.Title, newest.URL,
		newest.Size, newest.SHA256, newest.Withdrawn
	return m
}

// content orders two records of one time.
func content(r *research.Curated) string {
	return strings.Join([]string{r.URL, r.SHA256, r.Title, fmt.Sprint(r.Size), fmt.Sprint(r.Withdrawn)}, "\x00")
}

// plain is media without what went wrong with it.
func plain(m research.Media) research.Media {
	m.Quarantined, m.Deferred, m.Failures, m.Before, m.Problem = "", 0, nil, nil, ""
	return m
}
