package research

import (
	"context"
	"encoding/json"
	"maps"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// change is one try of a change, being composed. What is set in the rows that were read is written;
// what belongs to them is derived when they are saved: places in the line, the catalog, the index,
// counts. So no function that changes a row can forget one of these.
type change struct {
	ctx context.Context
	s   *Store
	tx  *table.Tx
	now int64 // milliseconds since 1970; one time for all that is written
	by  By

	project *projectRow
	cat     *catalog    // of the project; not to be changed
	episode *episodeRow // nil if it is not wanted; likewise the next two
	clip    *clipRow
	lease   *leaseRow
	rows    rowSet // all that were read, also the one of another kind
	stored  int64  // the generation of the result that is stored; 0: none is
	reviews int64  // places that wait for a person now, and did not before
	noted   bool   // the transaction has a row of its own, whatever else changes

	was     struct{ episode, clip, lease string }   // as they were read (rowText)
	had     struct{ episode, clip, lease []string } // their places in the line then
	running bool                                    // the lease had not ended then
}

// want names the rows that a change is about: the name of a project, the keys of an episode and a
// clip, the id of a lease. Empty: none. Without a project it is that of the lease.
type want struct {
	project, episode, clip, lease string
	also                          []table.Key // of other kinds, which f decodes from change.rows
}

// keys are the rows that are read together.
func (w want) keys() (all []table.Key) {
	if w.lease != "" {
		all = append(all, leaseKey(w.lease))
	}

	if w.clip != "" {
		all = append(all, clipKey(w.project, w.clip))
	}

	if w.episode != "" {
		all = append(all, episodeKey(w.project, w.episode))
	}

	return append(all, w.also...)
}

// change reads rows, lets f change them, and writes them with their places, counts and events in
// one transaction. If another change was first, all is done again. A change that leaves everything
// as it was writes nothing. Rows that do not exist are given to f with Rev 0; what f leaves at
// Number 0 is not written.
//
// f can be called several times, each time with rows that were read anew: it must set what it
// returns in variables of its caller from the beginning, and have no effect of its own. An error of
// f ends the change and is returned. After many tries the error is an Unavailable: nothing is wrong,
// and the request can be repeated.
func (s *Store) change(ctx context.Context, w want, by By, f func(c *change) error) error {
	what := "project " + w.project
	if w.project == "" {
		what = "lease " + w.lease
	}
	return s.Table.Again(ctx, what, func() error { return s.tryChange(ctx, w, by, f) })
}

// tryChange is one try of a change. A Stale means that another was first.
func (s *Store) tryChange(ctx context.Context, w want, by By, f func(c *change) error) error {
	c := &change{ctx: ctx, s: s, tx: s.Table.Begin(s.NewID()), now: s.now(), by: by}
	// The catalog is read last: it is not older than the rows that were decided by it.
	err := c.read(w)
	if err != nil {
		return err
	}

	err = f(c)
	if err != nil {
		return err
	}
	return c.save()
}

// decide decides the place of an episode by the catalog as it is now, and counts its pairs. A save
// does both, so nothing else is to be done; nothing is written if both are as they should be.
func (s *Store) decide(ctx context.Context, project, key string) error {
	return s.change(ctx, want{project: project, episode: key}, By{},
		func(*change) error { return nil })
}

// read reads the rows. Each is as it is at some moment of the read, and not all are at the same;
// the conditions of the transaction find out whether that matters.
func (c *change) read(w want) error {
	all, err := c.s.read(c.ctx, w.keys()...)
	if err != nil {
		return err
	}

	c.rows = all
	if w.lease != "" {
		c.lease, err = all.lease(w.lease)
		if err != nil {
			return err
		}
		c.was.lease, c.had.lease, c.running = rowText(c.lease), c.lease.places(), c.lease.Ended == 0
	}

	if w.project == "" {
		err = c.lease.found()
		if err != nil {
			return err
		}
		w.project = c.lease.Project
	}

	if w.clip != "" {
		c.clip, err = all.clip(w.project, w.clip)
		if err != nil {
			return err
		}
		c.was.clip, c.had.clip = rowText(c.clip), c.clip.places()
	}

	if w.episode != "" {
		c.episode, err = all.episode(w.project, w.episode)
		if err != nil {
			return err
		}
		c.was.episode, c.had.episode = rowText(c.episode), c.episode.places()
	}

	c.project, c.cat, err = c.s.load(c.ctx, w.project)
	if err != nil {
		return err
	}

	if c.episode != nil {
		c.episode.begin(c.project.Generation)
	}
	return nil
}

// rowText is what a row says, to find out whether it changed. Fields that are not stored are left
// out, so what was decoded has to be packed before.
func rowText(row any) string {
	data, _ := json.Marshal(row) // rows have only plain fields
	return string(data)
}

// put writes a row that f has changed. rev is the row's as it was read, 0 for a new one.
func (c *change) put(row table.Row, rev int64) {
	if rev == 0 {
		c.tx.Insert(row)
	} else {
		c.tx.Save(row)
	}
}

// save commits what has changed. The clip is first: it may write the row of the project, which the
// episode then does not require.
func (c *change) save() error {
	changed := c.noted
	for _, part := range []func() (bool, error){c.saveClip, c.saveEpisode, c.saveLease} {
		did, err := part()
		if err != nil {
			return err
		}
		changed = changed || did
	}

	if !changed {
		return nil
	}
	return c.tx.Commit(c.ctx)
}

// saveClip writes the clip, and its new row in the catalog if selection sees the difference:
// another order, or another state. A new title moves nothing. It reports whether there is something
// to commit.
func (c *change) saveClip() (bool, error) {
	r := c.clip
	if r == nil || r.Number == 0 {
		return false, nil
	}

	data, err := json.Marshal(r.media)
	if err != nil {
		return false, err
	}

	r.Text = string(data)
	setAway(&r.Head, Clip, r.Project, r.Name, &r.media)
	if rowText(r) == c.was.clip {
		return false, nil
	}

	c.moveLine(r.Name, c.had.clip, r.places())
	now := listed{r.Clip, r.media.order(), r.media.live()}
	was, _ := c.cat.clips.Get(r.Clip)
	if r.Rev == 0 || was != now {
		c.list(now)
	}

	c.put(r, r.Rev)
	return true, nil
}

// list gives the clip a new row in the catalog, and a number if it is new, and writes the project's
// row. It notes there what the change does: whether pairs may have become due, and whether pairs
// count otherwise.
func (c *change) list(now listed) {
	r, p := c.clip, c.project
	if r.Rev == 0 {
		p.Numbers++
		r.Clip = uint32(p.Numbers)
		now.number = r.Clip
	} else {
		c.tx.RemoveOwned(catalogKey(p.Name, r.Listed), r.Name)
	}

	p.Catalog++
	was, known := c.cat.clips.Get(r.Clip)
	if known && was.live != now.live {
		p.Recount = max(p.Recount+1, c.now) // pairs of it that are researched count, or do not count any more
	}

	if now.live && !was.live {
		p.Grown = p.Catalog
	}

	if was.live && !now.live {
		p.Shrunk = p.Catalog
	}

	r.Listed = p.Catalog
	k := catalogKey(p.Name, p.Catalog)
	c.tx.Insert(&catalogRow{
		Head:   newHead(k),
		Owner:  r.Name,
		Number: now.number,
		Order:  now.order,
		Live:   now.live,
	})

	c.tx.Save(p)
}

// saveEpisode writes the episode, its place in the line and its counts. It reports whether there is
// something to commit.
func (c *change) saveEpisode() (bool, error) {
	e := c.episode
	if e == nil || e.Number == 0 {
		return false, nil
	}

	to, again, err := e.belongs(c.cat)
	if err != nil {
		return false, err
	}

	from, was := e.Place, e.Tally
	e.Place, e.Further, e.Tally = to, again, e.tally(c.cat.live)

	err = e.pack()
	if err != nil {
		return false, err
	}
	if rowText(e) == c.was.episode {
		c.addGeneration(e, Tally{}) // what is counted of the episode can change, and its row stay
		return false, nil
	}

	c.moveLine(e.Name, c.had.episode, e.places())
	c.move(from, to, e.minus(was))
	c.put(e, e.Rev)
	return true, nil
}

// pack puts what is known of the episode into the attributes of its row; unpack is the reverse.
func (e *episodeRow) pack() error {
	data, err := json.Marshal(e.media)
	if err != nil {
		return err
	}
	e.Text = string(data)
	if !e.tallied {
		e.found.Clear() // numbers of some pairs only
	}
	setAway(&e.Head, Episode, e.Project, e.Name, &e.media)
	for _, b := range []struct {
		to *[]byte
		is *roaring.Bitmap
	}{{&e.Researched, e.researched}, {&e.Waiting, e.waiting}, {&e.Differs, e.differs}, {&e.Found,
		e.found}} {
		if *b.to, err = packed(b.is); err != nil {
			return err
		}
	}
	e.Tallied = 0
	if e.tallied {
		e.Tallied = int64(e.researched.GetCardinality())
	}
	return nil
}

// move counts the episode at its place in the line. An episode that has nothing due stays
// closed until the catalog grows, so it must have been decided by the newest one: if a clip came
// meanwhile, the condition fails, and all is decided again. One that is ready needs no condition: a
// wrong place costs a look.
func (c *change) move(from, to string, more Tally) {
	e := c.episode
	// Otherwise the project's row is written, and its revision decides.
	if class(to) == closed && c.project.Catalog == c.cat.number {
		c.tx.Require(c.project.Key(), "catalog_no = ?", c.cat.number)
	}

	k := placesKey(c.project.Name, shard(e.Name))
	switch {
	case e.Rev == 0:
		c.tx.Count(k, map[string]int64{class(to) + "_n": 1})
	case class(from) != class(to):
		c.tx.Count(k, map[string]int64{class(from) + "_n": -1, class(to) + "_n": 1})
	}

	c.addGeneration(e, more)
}

// addGeneration counts what is stored of the generation: more is how many more pairs than were
// counted are in each state. A row of counts may be written once in a transaction, so all numbers of
// one row are added together.
func (c *change) addGeneration(e *episodeRow, more Tally) {
	add := map[string]int64{"pairs_n": more.Counted, "reviews_n": c.reviews,
		"differ_n": more.CountedDiffer, "waiting_n": more.CountedWaiting}
	maps.DeleteFunc(add, func(_ string, n int64) bool { return n == 0 })

	switch c.stored {
	case 0:
	case e.Generation:
		add["results_n"] = 1
	default: // of an earlier analysis
		c.tx.Count(generationKey(c.project.Name, c.stored, shard(e.Name)),
			map[string]int64{"results_n": 1})
	}

	if len(add) > 0 {
		c.tx.Count(generationKey(c.project.Name, e.Generation, shard(e.Name)), add)
	}
}

// keptDays is how long the row of a lease that has ended is kept, for people who ask what became of
// it. Its events stay.
const keptDays = 30

// saveLease writes the lease, and its rows in the line: its end, and its place in the queue while
// nobody has accepted it. It reports whether there is something to commit.
func (c *change) saveLease() (bool, error) {
	r := c.lease
	if r == nil || r.Number == 0 || rowText(r) == c.was.lease {
		return false, nil
	}

	c.moveLine(r.ID, c.had.lease, r.places())
	if r.Ended > 0 && c.running {
		r.ExpiresAt = r.Ended/1000 + keptDays*24*3600
	}

	c.put(r, r.Rev)
	return true, nil
}

// moveLine makes the rows of an owner in the line those of its places now.
func (c *change) moveLine(owner string, was, is []string) {
	rows := func(places []string) []table.Row {
		keys := make([]table.Key, len(places))
		for i, sk := range places {
			keys[i] = lineKey(c.project.Name, sk)
		}
		return table.OwnedAt(owner, keys...)
	}
	c.tx.Derive(owner, rows(was), rows(is))
}

// event adds an event to the change, and raises the version of its subject. It names the project as
// parent, so that the history of a project has what happened to its episodes, clips and leases.
func (c *change) event(t event.Type, id string, number *int64, eventType string, detail any) error {
	*number++
	return event.Append(c.tx, subject(t, id), *number, event.New{
		Type:      eventType,
		Time:      c.now,
		Detail:    detail,
		Actor:     c.by.Actor,
		Component: c.by.Component,
		Parents:   []envelope.Ref{{Type: event.ResearchProject.String(), ID: c.project.Name}},
	})
}

// episodeEvent adds an event of the episode.
func (c *change) episodeEvent(eventType string, detail any) error {
	e := c.episode
	return c.event(event.Episode, e.Project+"/"+e.Name, &e.Number, eventType, detail)
}

// clipEvent adds an event of the clip.
func (c *change) clipEvent(eventType string, detail any) error {
	return c.event(event.Clip, c.clip.Project+"/"+c.clip.Name, &c.clip.Number, eventType, detail)
}

// leaseEvent adds an event of the lease.
func (c *change) leaseEvent(eventType string, detail any) error {
	return c.event(event.ResearchLease, c.lease.ID, &c.lease.Number, eventType, detail)
}

// missing is the answer to a request about an episode or a clip that does not exist.
func missing(kind Kind, project, key string) error {
	return fault.New(fault.NotFound, "there is no %s %s in the project %s", kind,
		definition.Clip(key, 60),
		definition.Clip(project, 60))
}
