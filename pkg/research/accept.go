package research

import (
	"cmp"
	"context"
	"regexp"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Work is what a researcher needs for a work item: all of it, so that it needs no other request.
type Work struct {
	Lease    Lease
	Analysis Analysis // of the project now, which is that of the lease
	Episode  Subject
	Clips    []Subject // in the order of research
}

// Acceptance is a researcher's request for a work item that it has received.
type Acceptance struct {
	Lease      string // its id
	Researcher string // its name; nobody verifies it
	Token      string // unique to this acceptance; a request with the same token is answered again
	By         string // who asks, for the event, if a token has said it; "" = nobody knows more than the name

	taken table.Key // where it is remembered which lease was given for the token; empty: nowhere
}

// takenRow says which lease a researcher was given for a token, so that a request whose answer was
// lost can be repeated.
type takenRow struct {
	table.Head
	Lease string `dynamo:"lease_id"`
}

// takenDays is how long a token is known. A repetition comes within minutes.
const takenDays = 1

// takenKey is the key of what a token was given. "#" separates: a token has none, so the last one
// does.
func takenKey(project, researcher, token string) table.Key {
	return table.Key{PK: "RESEARCHTAKEN#" + project, SK: researcher + "#" + token}
}

// tokens are the tokens of acceptances. A researcher makes one for each, and sends it again when it
// repeats a request whose answer it did not get.
var tokens = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// checkAcceptance returns an Invalid for a researcher or a token that cannot be kept.
func checkAcceptance(researcher, token string) error {
	if !oneLine("researcher", researcher, MaxResearcher) {
		return fault.New(fault.Invalid, "researcher: found %q; expected a name of at most %d bytes",
			definition.Clip(researcher, 60), MaxResearcher)
	}
	return invalidIf(!tokens.MatchString(token),
		"token: found %q; expected 1 to 100 letters, digits, hyphens and "+
			"underscores", definition.Clip(token, 60))
}

// Accept gives a work item to a researcher, once: the message may come again, or to two. It returns
// a Conflict if it is accepted by another, has ended, was not accepted in time, or is of an earlier
// analysis, and a NotFound if there is no such lease; then the message is to be deleted. It is a Held if another
// researcher is needed (Project.Quorum): then the message stays.
//
// A request with the token of the acceptance is answered again, so that a lost answer loses
// nothing. A work item whose time in the queue is over is refused although its lease is live: the
// archivist counts it as gone already.
func (s *Store) Accept(ctx context.Context, a Acceptance) (Work, error) {
	err := checkAcceptance(a.Researcher, a.Token)
	if err != nil {
		return Work{}, err
	}

	var w Work
	rows := want{lease: a.Lease}
	if a.taken != (table.Key{}) {
		rows.also = []table.Key{a.taken}
	}

	err = s.change(ctx, rows,
		By{Actor: cmp.Or(a.By, a.Researcher), Component: "researcher"},
		func(c *change) error {
			r := c.lease
			w.Lease, w.Analysis = r.Lease, c.project.def.Analysis
			again := r.Accepted > 0 && r.Token == a.Token && r.Researcher == a.Researcher
			// The order decides which answer a person reads: what has ended has ended, whoever
			// asks.
			switch {
			case !r.Live(c.now):
				return fault.New(fault.Conflict,
					"the lease %s has ended (%s): the work item is no longer valid",
					a.Lease, cmp.Or(r.Why, Expired))
			case r.Analysis != c.project.def.Analysis.String():
				return fault.New(fault.Conflict, "the lease %s is for %s; the project has %s now",
					a.Lease, r.Analysis,
					c.project.def.Analysis)
			case again:
				return nil
			case r.Accepted > 0:
				return fault.New(fault.Conflict, "the lease %s was accepted by %s", a.Lease,
					r.Researcher)
			case c.now >= r.QueueEnd:
				return fault.New(fault.Conflict, "the lease %s was not accepted in time", a.Lease)
			}

			err := c.others(a.Researcher)
			if err != nil {
				return err
			}

			r.Recording, err = c.recordingNow()
			if err != nil {
				return err
			}
			r.Accepted, r.Researcher, r.Token = c.now, a.Researcher, a.Token
			w.Lease = r.Lease
			err = c.remember(a)
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

// remember keeps the lease that is given for a token, if that is wanted, in the transaction of the
// acceptance. If the same token was given another lease meanwhile, this one is not accepted: the
// error is an Unavailable, its message stays, and the repeated request is answered with the other
// one.
func (c *change) remember(a Acceptance) error {
	k := a.taken
	if k == (table.Key{}) {
		return nil
	}

	var known takenRow
	err := c.rows.decode(k, &known)
	if err != nil {
		return err
	}

	if known.Rev > 0 && known.Lease != a.Lease {
		return fault.New(fault.Unavailable,
			"the token was used for the lease %s; repeat the request", known.Lease)
	}

	c.tx.Insert(&takenRow{Head: table.Head{
		PK:        k.PK,
		SK:        k.SK,
		ExpiresAt: c.now/1000 + takenDays*24*3600,
	},
		Lease: a.Lease})

	return nil
}

// describe reads the episode and the clips of a work item, after it was accepted: an error here
// loses nothing, because the request can be repeated with the same token. They are read as they are
// now, so that a corrected address is used. A clip without a row is a NotFound.
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
		if err != nil {
			return err
		}
		if c.Rev == 0 {
			return missing(Clip, l.Project, key)
		}
		w.Clips = append(w.Clips, Subject{c.Name, c.media})
	}
	return nil
}
