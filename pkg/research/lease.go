package research

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Why a lease ended.
const (
	Final   = "final"   // all results that were announced are stored
	Expired = "expired" // its researcher was not heard of
	Revoked = "revoked" // by a person
)

// keptDays is how long the row of a lease that has ended is kept. Its events stay.
const keptDays = 30

// Lease is a work item: pairs of an episode with clips that one researcher may research. Times are in
// milliseconds since 1970.
type Lease struct {
	ID       string   `dynamo:"lease_id"`
	Project  string   `dynamo:"project_name"`
	Episode  string   `dynamo:"episode_key"`
	Clips    []string `dynamo:"clip_keys"` // in the order of research
	Analysis string   `dynamo:"analysis_name"`
	Round    int64    `dynamo:"round_no"`

	Created   int64 `dynamo:"created_ms"`
	Until     int64 `dynamo:"until_ms"`
	QueueEnd  int64 `dynamo:"queue_end_ms"`           // the message has left the queue by then
	Published int64 `dynamo:"published_ms,omitempty"` // 0: perhaps the message was not sent

	Accepted   int64  `dynamo:"accepted_ms,omitempty"`
	Researcher string `dynamo:"researcher,omitempty"`
	Token      string `dynamo:"accept_token,omitempty"` // of the acceptance, made by the researcher

	Stored  int    `dynamo:"stored_n"`            // results of it
	Last    int64  `dynamo:"last_ms,omitempty"`   // when the newest of them came
	Results *int   `dynamo:"results_n,omitempty"` // as the final one announced
	Ended   int64  `dynamo:"ended_ms,omitempty"`
	Why     string `dynamo:"why_ended,omitempty"`
}

// Live reports whether it excludes others at a time, in milliseconds since 1970.
func (l *Lease) Live(now int64) bool { return l.Ended == 0 && now < l.Until }

// leaseRow is the row of a lease.
type leaseRow struct {
	table.Head
	Number int64 `dynamo:"version"` // of its events
	Lease
}

// found is a NotFound if there is no such lease.
func (r *leaseRow) found() error {
	if r.Rev > 0 {
		return nil
	}
	return fault.New(fault.NotFound, "there is no lease %s", definition.Clip(r.ID, 60))
}

// Lease returns a lease; those that ended some weeks ago are not found.
func (s *Store) Lease(ctx context.Context, id string) (Lease, error) {
	r, err := s.leaseRow(ctx, id)
	if err != nil {
		return Lease{}, err
	}
	return r.Lease, r.found()
}

// saveLease writes the lease, and its rows in the line.
func (c *change) saveLease() (bool, error) {
	r := c.lease
	if r == nil || r.Number == 0 || text(r) == c.was.lease {
		return false, nil
	}
	var was leaseRow
	err := json.Unmarshal([]byte(c.was.lease), &was)
	if err != nil {
		return false, err
	}
	c.moveDue("lease", due{r.ID, was.ends()}, due{r.ID, r.ends()})
	if was.waits() != r.waits() && was.waits() > 0 {
		c.removeLine(pendingKey(was.waits(), r.ID), r.ID)
	}
	if was.waits() != r.waits() && r.waits() > 0 {
		c.addLine(pendingKey(r.waits(), r.ID), r.ID)
	}
	if r.Ended > 0 && was.Ended == 0 {
		r.ExpiresAt = r.Ended/1000 + keptDays*24*3600
	}
	c.put(r, r.Rev)
	return true, nil
}

// ends is when the lease ends, 0 if it has no end in the line.
func (l *Lease) ends() int64 {
	if l.Ended > 0 {
		return 0
	}
	return l.Until
}

// waits is when the work item leaves the queue if nobody accepts it, 0 if it does not wait there.
func (l *Lease) waits() int64 {
	if l.Ended > 0 || l.Accepted > 0 {
		return 0
	}
	return l.QueueEnd
}

// Message is the work item on the queue of pending work (source: the requirement, "Publishing a
// Work-Item"). Acceptance answers with what is needed for the research.
type Message struct {
	Lease   string   `json:"lease"`
	Project string   `json:"project"`
	Episode string   `json:"episode"`
	Clips   []string `json:"clips"`
	Ends    int64    `json:"ends"` // of its time in the queue, in milliseconds since 1970
}

// Assigned is the detail of lease.created.
type Assigned struct {
	Project  string   `json:"project"`
	Episode  string   `json:"episode"`
	Clips    []string `json:"clips"`
	Analysis string   `json:"analysis"`
	Until    int64    `json:"until"`
}

// assign makes a lease on the first clips of an episode that are due. It returns none if there is none after
// all, then the episode is closed; and if the project was paused, or the catalog has grown since the pass saw it:
// then an episode that is closed may come first. The fence excludes other archivists, the row of the episode
// every other lease on these pairs.
func (p *pass) assign(ctx context.Context, key string) (made *leaseRow, err error) {
	id := p.NewID()
	var now *projectRow
	err = p.change(ctx, want{project: p.project, episode: key, lease: id}, By{Actor: archivist, Component: archivist},
		func(c *change) error {
			made, now = nil, c.project
			p.lease.Guard(c.tx)
			if now.Paused != "" || now.grown() > p.walk.Catalog {
				return nil
			}
			e := c.episode
			taken, err := e.taken()
			if err != nil {
				return err
			}
			clips := c.cat.due(taken, c.project.def.MaxClips)
			if !e.media.live() || len(clips) == 0 || len(e.Held) >= MaxHeld {
				return nil
			}
			c.hold(clips)
			made = c.lease
			return c.leaseEvent("lease.created", Assigned{made.Project, made.Episode, made.Clips, made.Analysis,
				made.Until})
		})
	if err == nil {
		p.see(now)
	}
	return made, err
}

// hold fills the lease, and puts it on the episode.
func (c *change) hold(clips []listed) {
	numbers, names := roaring.New(), []string{}
	for _, l := range clips {
		numbers.Add(l.number)
		names = append(names, l.key())
	}
	r, p, t := c.lease, c.project, c.s.Times
	r.Lease = Lease{ID: r.ID, Project: p.Name, Episode: c.episode.Name, Clips: names,
		Analysis: p.def.Analysis.String(), Round: p.Round, Created: c.now, Until: c.now + t.Lease.Milliseconds(),
		QueueEnd: c.now + t.Queue.Milliseconds()}
	data, _ := packed(numbers) // of numbers that were just added
	c.episode.Held = append(c.episode.Held, held{Lease: r.ID, Until: r.Until, Clips: data})
}

// publish sends the work item of a lease, and records that in its row as it was read. If the row has changed
// since, the work item was accepted or has ended, or another archivist has sent it: then nobody sends it again.
func (s *Store) publish(ctx context.Context, r *leaseRow) error {
	err := s.Send(ctx, Message{Lease: r.ID, Project: r.Project, Episode: r.Episode, Clips: r.Clips, Ends: r.QueueEnd})
	if err != nil {
		return err
	}
	r.Published = s.now()
	tx := s.Table.Begin(s.NewID())
	tx.Save(r)
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// Ended is the detail of lease.ended.
type Ended struct {
	Why     string `json:"why"`
	Results int    `json:"results"` // that were stored while it was live
	Reason  string `json:"reason,omitempty"`
}

// end ends the lease of the change. Its pairs without a result are due again.
func (c *change) end(why, reason string) error {
	c.lease.Ended, c.lease.Why = c.now, why
	c.episode.Held = slices.DeleteFunc(c.episode.Held, func(h held) bool { return h.Lease == c.lease.ID })
	return c.leaseEvent("lease.ended", Ended{why, c.lease.Stored, reason})
}

// expire ends a lease whose time has passed.
func (s *Store) expire(ctx context.Context, id string) error {
	l, err := s.Lease(ctx, id)
	if err != nil {
		return err
	}
	ended := false
	err = s.change(ctx, want{project: l.Project, episode: l.Episode, lease: id},
		By{Actor: archivist, Component: archivist}, func(c *change) error {
			ended = c.lease.Rev > 0 && c.lease.Ended == 0 && c.lease.Until <= c.now
			if !ended {
				return nil
			}
			return c.end(Expired, "")
		})
	if err == nil && ended {
		s.count(MetricExpired, 1)
	}
	return err
}

// Revoke ends a lease by hand. What its researcher still reports is stored.
func (s *Store) Revoke(ctx context.Context, id string, by By) error {
	err := checkReason(by)
	if err != nil {
		return err
	}
	l, err := s.Lease(ctx, id)
	if err != nil {
		return err
	}
	err = s.change(ctx, want{project: l.Project, episode: l.Episode, lease: id}, by, func(c *change) error {
		if c.lease.Rev == 0 || c.lease.Ended > 0 {
			return fault.New(fault.Conflict, "the lease %s has ended already: %s", id, c.lease.Why)
		}
		return c.end(Revoked, by.Reason)
	})
	if err == nil {
		s.wake(ctx, l.Project)
	}
	return err
}

// Work is what a researcher needs for a work item.
type Work struct {
	Lease    Lease
	Analysis Analysis
	Episode  Subject
	Clips    []Subject // in the order of research
}

// Subject is an episode or clip with its key.
type Subject struct {
	Key string
	Media
}

// Acceptance is a researcher's request for a work item that it has received.
type Acceptance struct {
	Lease      string
	Researcher string
	Token      string // unique to this acceptance; a request with the same token is answered again

	taken table.Key // where it is remembered which lease was given for the token; empty: nowhere
}

// Accepted is the detail of lease.accepted.
type Accepted struct {
	Researcher string `json:"researcher"`
}

// Accept gives a work item to a researcher, once: the message may come again, or to two. It returns a
// Conflict if it is accepted by another or has ended; then the message is to be deleted.
func (s *Store) Accept(ctx context.Context, a Acceptance) (Work, error) {
	err := checkAcceptance(a.Researcher, a.Token)
	if err != nil {
		return Work{}, err
	}
	var w Work
	err = s.change(ctx, want{lease: a.Lease, also: a.taken}, By{Actor: a.Researcher, Component: "researcher"},
		func(c *change) error {
			r := c.lease
			w.Lease, w.Analysis = r.Lease, c.project.def.Analysis
			again := r.Accepted > 0 && r.Token == a.Token && r.Researcher == a.Researcher
			switch {
			case !r.Live(c.now):
				return fault.New(fault.Conflict, "the lease %s has ended (%s): the work item is no longer valid",
					a.Lease, cmp.Or(r.Why, Expired))
			case r.Analysis != c.project.def.Analysis.String():
				return fault.New(fault.Conflict, "the lease %s is for %s; the project has %s now", a.Lease, r.Analysis,
					c.project.def.Analysis)
			case again:
				return nil
			case r.Accepted > 0:
				return fault.New(fault.Conflict, "the lease %s was accepted by %s", a.Lease, r.Researcher)
			case c.now >= r.QueueEnd:
				return fault.New(fault.Conflict, "the lease %s was not accepted in time", a.Lease)
			}
			r.Accepted, r.Researcher, r.Token = c.now, a.Researcher, a.Token
			w.Lease = r.Lease
			err := c.remember(a)
			if err != nil {
				return err
			}
			return c.leaseEvent("lease.accepted", Accepted{a.Researcher})
		})
	if err != nil {
		return Work{}, err
	}
	return w, s.describe(ctx, &w)
}

// describe reads the episode and the clips of a work item.
func (s *Store) describe(ctx context.Context, w *Work) error {
	l := &w.Lease
	at := []table.Key{episodeKey(l.Project, l.Episode)}
	for _, key := range l.Clips {
		at = append(at, clipKey(l.Project, key))
	}
	all, err := s.read(ctx, at...)
	if err != nil {
		return err
	}
	e, err := all.episode(l.Project, l.Episode)
	if err != nil {
		return err
	}
	w.Episode = Subject{e.Name, e.media}
	for _, key := range l.Clips {
		c, err := all.clip(l.Project, key)
		if err == nil && c.Rev == 0 {
			err = missing(Clip, l.Project, key)
		}
		if err != nil {
			return err
		}
		w.Clips = append(w.Clips, Subject{c.Name, c.media})
	}
	return nil
}
