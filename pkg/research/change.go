package research

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"
	"time"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/definition"
	"archivist/pkg/envelope"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// episodeRow is the row of an episode.
type episodeRow struct {
	table.Head
	Project    string `dynamo:"project_name"`
	Name       string `dynamo:"media_key"`
	Number     int64  `dynamo:"version"` // of its events
	Text       string `dynamo:"media_json"`
	Round      int64  `dynamo:"round_no"`             // of what follows
	Researched []byte `dynamo:"researched,omitempty"` // numbers of clips, a roaring bitmap
	Held       []held `dynamo:"held,omitempty"`       // by leases that have not ended
	Place      string `dynamo:"place_in"`             // in the line of the project
	Counted    int64  `dynamo:"counted_n"`            // researched pairs with clips that are live, as in roundRow

	media      Media
	researched *roaring.Bitmap
}

// held is a lease on pairs of an episode.
type held struct {
	Lease string `dynamo:"lease_id"`
	Until int64  `dynamo:"until_ms"`
	Clips []byte `dynamo:"clip_nos"`
}

// clipRow is the row of a clip.
type clipRow struct {
	table.Head
	Project string `dynamo:"project_name"`
	Name    string `dynamo:"media_key"`
	Number  int64  `dynamo:"version"` // of its events
	Text    string `dynamo:"media_json"`
	Clip    uint32 `dynamo:"clip_no"`    // in bitmaps
	Listed  int64  `dynamo:"catalog_no"` // where it is in the catalog

	media Media
}

// placesRow has the numbers of a part of the episodes at each place of the line.
type placesRow struct {
	table.Head
	Ready  int64 `dynamo:"ready_n"`
	Closed int64 `dynamo:"closed_n"`
	Away   int64 `dynamo:"away_n"`
}

// roundRow has numbers of a part of the pairs in one round.
type roundRow struct {
	table.Head
	Pairs   int64 `dynamo:"pairs_n"`   // researched, of episodes and clips that are live
	Results int64 `dynamo:"results_n"` // stored, problems too
}

func countsPK(project string) string { return "RESEARCHCOUNTS#" + project }

func placesKey(project string, shard uint32) table.Key {
	return table.Key{PK: countsPK(project), SK: fmt.Sprintf("places#%02d", shard)}
}

func roundKey(project string, round int64, shard uint32) table.Key {
	return table.Key{PK: countsPK(project), SK: fmt.Sprintf("round#%06d#%02d", round, shard)}
}

// shard is the part of the counts in which an episode is counted.
func shard(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return h.Sum32() % countShards
}

func mediaSubject(t event.Type, project, key string) event.Subject {
	return subject(t, project+"/"+key)
}

// bits decodes a bitmap.
func bits(data []byte) (*roaring.Bitmap, error) {
	b := roaring.New()
	if len(data) == 0 {
		return b, nil
	}
	_, err := b.FromBuffer(slices.Clone(data))
	if err == nil {
		err = b.Validate()
	}
	return b, err
}

// packed encodes a bitmap; the same numbers always give the same bytes.
func packed(b *roaring.Bitmap) ([]byte, error) {
	if b.IsEmpty() {
		return nil, nil
	}
	b.RunOptimize()
	return b.ToBytes()
}

// taken are the clips of an episode that are researched, or under a lease that has not ended. A lease whose
// time has passed must be ended first: a result that is on its way could still extend it.
func (e *episodeRow) taken() (*roaring.Bitmap, error) {
	b := e.researched.Clone()
	for _, h := range e.Held {
		clips, err := bits(h.Clips)
		if err != nil {
			return nil, err
		}
		b.Or(clips)
	}
	return b, nil
}

// change is one change, being composed. What is set in the rows that were read is written.
type change struct {
	ctx context.Context
	s   *Store
	tx  *table.Tx
	now int64
	by  By

	project *projectRow
	cat     *catalog
	episode *episodeRow
	clip    *clipRow
	lease   *leaseRow
	rows    rows  // that were read
	stored  int64 // the round of the result that is stored; 0: none is

	was struct{ episode, clip, lease string } // as they were read
}

// want names the rows that a change is about. Empty: none. Without a project it is that of the lease.
type want struct {
	project, episode, clip, lease string
	also                          table.Key // one of another kind, which f decodes
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
	if w.also != (table.Key{}) {
		all = append(all, w.also)
	}
	return all
}

// apart is how much longer a change may wait before each further try: else many researchers of one episode
// would meet at its row again and again. The second try is made at once.
const apart = 10 * time.Millisecond

// change reads rows, lets f change them, and writes them with their places, counts and events in one
// transaction. If another change was first, all is done again. A change that leaves everything as it
// was writes nothing. Rows that do not exist are given to f with Rev 0; what f leaves at Number 0 is
// not written.
func (s *Store) change(ctx context.Context, w want, by By, f func(c *change) error) error {
	var err error
	for n := range maxTries {
		err = s.tryChange(ctx, w, by, f)
		if !fault.Is(err, fault.Stale) {
			return err
		}
		err = cmp.Or(s.Table.Wait(ctx, time.Duration(s.Table.Jitter()*float64(apart)*float64(n))), err)
	}
	return fault.New(fault.Unavailable, "research %+v keeps changing; try again in a moment (%v)", w, err)
}

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

// read reads the rows. Each is as it is at some moment of the read, and not all are at the same.
func (c *change) read(w want) error {
	all, err := c.s.read(c.ctx, w.keys()...)
	c.rows = all
	if err == nil && w.lease != "" {
		c.lease, err = all.lease(w.lease)
		c.was.lease = text(c.lease)
	}
	if err == nil && w.project == "" {
		w.project, err = c.lease.Project, c.lease.found()
	}
	if err == nil && w.clip != "" {
		c.clip, err = all.clip(w.project, w.clip)
		c.was.clip = text(c.clip)
	}
	if err == nil && w.episode != "" {
		c.episode, err = all.episode(w.project, w.episode)
		c.was.episode = text(c.episode)
	}
	if err == nil {
		c.project, c.cat, err = c.s.load(c.ctx, w.project)
	}
	if err == nil && c.episode != nil && c.episode.Round < c.project.Round { // the analysis is another
		c.episode.Round, c.episode.researched = c.project.Round, roaring.New()
		c.episode.Held = nil // pairs of the analysis before exclude none of these
		c.episode.Counted = 0
	}
	return err
}

// text is what a row says, to find out whether it changed.
func text(row any) string {
	data, _ := json.Marshal(row) // rows have only plain fields
	return string(data)
}

// put writes a row that f has changed.
func (c *change) put(row table.Row, rev int64) {
	if rev == 0 {
		c.tx.Insert(row)
	} else {
		c.tx.Save(row)
	}
}

// save commits what has changed.
func (c *change) save() error {
	changed := false
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

// saveClip writes the clip, and its new row in the catalog if selection sees the difference.
func (c *change) saveClip() (bool, error) {
	r := c.clip
	if r == nil || r.Number == 0 {
		return false, nil
	}
	data, err := json.Marshal(r.media)
	if err != nil {
		return false, err
	}
	before := due{}
	if r.Rev > 0 {
		var m Media
		err = json.Unmarshal([]byte(r.Text), &m)
		before = due{r.Name, m.Deferred}
	}
	r.Text = string(data)
	setAway(&r.Head, Clip, r.Project, r.Name, &r.media)
	if err != nil || text(r) == c.was.clip {
		return false, err
	}
	c.moveDue("clip", before, due{r.Name, r.media.Deferred})
	now := listed{r.Clip, r.media.order(), r.media.live()}
	was, _ := c.cat.clips.Get(r.Clip)
	if r.Rev == 0 || was != now {
		c.list(now)
	}
	c.put(r, r.Rev)
	return true, nil
}

// list gives the clip a new row in the catalog.
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
	c.tx.Insert(&catalogRow{Head: newHead(k), Owner: r.Name, Number: now.number, Order: now.order, Live: now.live})
	c.tx.Save(p)
}

// due is the end of a deferral.
type due struct {
	id string
	at int64
}

// moveDue keeps the row in the line that ends a deferral.
func (c *change) moveDue(kind string, from, to due) {
	if from.at == to.at {
		return
	}
	if from.at > 0 {
		c.removeLine(dueKey(from.at, kind, from.id), from.id)
	}
	if to.at > 0 {
		c.addLine(dueKey(to.at, kind, to.id), to.id)
	}
}

// class is the kind of a place in the line.
func class(place string) string {
	name, _, _ := strings.Cut(place, "#")
	return cmp.Or(name, away)
}

// place is where the episode belongs in the line.
func (c *change) place() (string, error) {
	e := c.episode
	if !e.media.live() {
		return "", nil
	}
	taken, err := e.taken()
	if err != nil {
		return "", err
	}
	if len(c.cat.due(taken, 1)) > 0 && len(e.Held) < MaxHeld {
		return ready + "#" + e.media.order(), nil
	}
	return closed + "#" + e.media.order(), nil
}

// saveEpisode writes the episode, its place in the line and its counts.
func (c *change) saveEpisode() (bool, error) {
	e := c.episode
	if e == nil || e.Number == 0 {
		return false, nil
	}
	to, err := c.place()
	if err != nil {
		return false, err
	}
	from, before, pairs := e.Place, due{}, e.Counted
	if e.Rev > 0 {
		var m Media
		err = json.Unmarshal([]byte(e.Text), &m)
		before = due{e.Name, m.Deferred}
	}
	e.Place, e.Counted = to, 0
	if e.media.live() {
		e.Counted = int64(e.researched.AndCardinality(c.cat.live))
	}
	if err == nil {
		err = e.pack()
	}
	if err != nil || text(e) == c.was.episode {
		return false, err
	}
	c.moveDue("episode", before, due{e.Name, e.media.Deferred})
	c.move(from, to, e.Counted-pairs)
	c.put(e, e.Rev)
	return true, nil
}

// pack puts what is known of the episode into the attributes of its row.
func (e *episodeRow) pack() error {
	data, err := json.Marshal(e.media)
	if err != nil {
		return err
	}
	e.Text = string(data)
	setAway(&e.Head, Episode, e.Project, e.Name, &e.media)
	e.Researched, err = packed(e.researched)
	return err
}

// move moves the episode in the line, and counts it there. An episode that has nothing due stays closed
// until the catalog grows, so it must have been decided by the newest one.
func (c *change) move(from, to string, pairs int64) {
	e := c.episode
	if from != to && from != "" {
		c.removeLine(from, e.Name)
	}
	if from != to && to != "" {
		c.addLine(to, e.Name)
	}
	if class(to) == closed && c.project.Catalog == c.cat.number { // else the project's row is written: its rev decides
		c.tx.Require(c.project.Key(), "catalog_no = ?", c.cat.number)
	}
	k := placesKey(c.project.Name, shard(e.Name))
	switch {
	case e.Rev == 0:
		c.tx.Count(k, map[string]int64{class(to) + "_n": 1})
	case class(from) != class(to):
		c.tx.Count(k, map[string]int64{class(from) + "_n": -1, class(to) + "_n": 1})
	}
	c.addRound(e, pairs)
}

// addRound counts what is stored of the round.
func (c *change) addRound(e *episodeRow, pairs int64) {
	add := map[string]int64{}
	if pairs != 0 {
		add["pairs_n"] = pairs
	}
	switch c.stored {
	case 0:
	case e.Round:
		add["results_n"] = 1
	default: // of an earlier analysis
		c.tx.Count(roundKey(c.project.Name, c.stored, shard(e.Name)), map[string]int64{"results_n": 1})
	}
	if len(add) > 0 {
		c.tx.Count(roundKey(c.project.Name, e.Round, shard(e.Name)), add)
	}
}

// event adds an event to the change.
func (c *change) event(t event.Type, id string, number *int64, eventType string, detail any) error {
	*number++
	return event.Append(c.tx, subject(t, id), *number, event.New{Type: eventType, Time: c.now, Detail: detail,
		Actor: c.by.Actor, Component: c.by.Component,
		Parents: []envelope.Ref{{Type: event.ResearchProject.String(), ID: c.project.Name}}})
}

func (c *change) episodeEvent(eventType string, detail any) error {
	e := c.episode
	return c.event(event.Episode, e.Project+"/"+e.Name, &e.Number, eventType, detail)
}

func (c *change) clipEvent(eventType string, detail any) error {
	return c.event(event.Clip, c.clip.Project+"/"+c.clip.Name, &c.clip.Number, eventType, detail)
}

func (c *change) leaseEvent(eventType string, detail any) error {
	return c.event(event.ResearchLease, c.lease.ID, &c.lease.Number, eventType, detail)
}

// missing is the answer to a request about an episode or a clip that there is not.
func missing(kind Kind, project, key string) error {
	return fault.New(fault.NotFound, "there is no %s %s in the project %s", kind, definition.Clip(key, 60),
		definition.Clip(project, 60))
}
