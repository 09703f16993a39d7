// Package feed reads podcast feeds: RSS 2.0, RSS 1.0 and Atom.
//
//	look, err := feed.Reader{Client: client, Now: time.Now}.Look(ctx, url, known)
//	for _, entry := range look.Entries { … }
//
// An entry of a feed is an episode or a clip if it has an identifier and a recording:
//
//   - Its id is the guid of RSS 2.0, the rdf:about of RSS 1.0, or the id of Atom; without one, the address
//     of its recording. Titles and links are no identifiers: they change.
//   - Its recording is the first of its enclosures (or elements media:content) that is audio, by its type,
//     or by the extension of its address if the type says nothing. The length of an enclosure is
//     ignored: publishers insert advertisements, and do not correct it.
//   - Its date is pubDate, dc:date, published or, failing these, updated. A date that is missing, cannot be
//     read, or is not between 1970 and tomorrow, is 0.
//
// An entry without them is skipped, with a reason that is counted. Of two entries with one id, the
// newer one counts, so that the order of entries does not matter. An entry that a feed does not
// list any more is not withdrawn: many feeds list only the newest.
//
// A feed is read whole, or not at all: one that is too large, damaged, or no feed is an Invalid.
// Documents that declare XML entities are refused.
package feed

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
)

// Timeout is the time limit of one look: a slow server does not keep the other feeds waiting.
const Timeout = time.Minute

// Reader looks at feeds.
type Reader struct {
	Client *fetch.Client
	Now    func() time.Time
}

// Look reads a feed, unless it is unchanged since known: then the result has no entries. The error
// is Invalid if another look cannot help, else Unavailable. The address in an error has no query,
// which may have a key.
func (r Reader) Look(ctx context.Context, url string,
	known fetch.Validators) (found Look, err error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()

	// The client may call it again for another try, so it sets all of found.
	read := func(d fetch.Document, content io.Reader) error {
		found, err = Parse(content, d.URL, r.Now())
		if fault.Of(err) != "" {
			return fault.New(fault.Of(err), "%s: %w", fetch.Redact(url), err)
		}
		return err
	}

	found.Document, err = r.Client.IfChanged(ctx, url, known, MostBytes, read)
	return found, err
}

// Parse reads a feed that is at an address. Dates may be at most a day after now. An error without
// a kind is one of r. Beside an error there are no entries: a part of a feed is not used.
func Parse(r io.Reader, address string, now time.Time) (Look, error) {
	p := newParser(r, address)
	found := collection{
		latest:  now.Add(tolerance),
		entries: map[string]Entry{},
		skipped: map[string]*Skipped{},
	}

	for {
		raw, err := p.next()
		if err == io.EOF {
			return found.look(), nil
		}

		if err != nil {
			return Look{}, p.failure(err)
		}

		found.count++
		if found.count > MostEntries {
			return Look{},
				fault.New(fault.Invalid, "the feed has more than %d entries", MostEntries)
		}

		found.add(raw)
	}
}

// tolerance is how far ahead the clock of a publisher may be.
const tolerance = 24 * time.Hour

// collection is the entries of a feed.
type collection struct {
	latest  time.Time // that a date may be
	count   int
	entries map[string]Entry
	skipped map[string]*Skipped
}

// add adds an entry, or counts why it is skipped. Of each reason the first title, in alphabetical
// order, is kept as an example, so that the same feed always says the same.
func (c *collection) add(raw rawEntry) {
	e, reason := raw.entry(c.latest)
	if old, twice := c.entries[e.ID]; reason == "" && twice {
		reason = "another entry has the same id"
		if newer(e, old) {
			c.entries[e.ID] = e
		}
	}

	if reason == "" {
		c.entries[e.ID] = e
		return
	}

	s := c.skipped[reason]
	if s == nil {
		s = &Skipped{Reason: reason, First: raw.name()}
		c.skipped[reason] = s
	}

	s.Count++
	s.First = min(s.First, raw.name())
}

// newer is an order of entries with the same id: by date, then by what else they say, so that one
// wins whichever comes first.
func newer(a, b Entry) bool {
	return cmp.Or(cmp.Compare(a.Published, b.Published), cmp.Compare(a.URL, b.URL),
		cmp.Compare(a.Title, b.Title)) > 0
}

// look puts what was collected into order.
func (c *collection) look() (found Look) {
	for _, e := range c.entries {
		found.Entries = append(found.Entries, e)
		if e.Published == 0 {
			found.Undated++
		}
	}

	for _, s := range c.skipped {
		found.Skipped = append(found.Skipped, *s)
	}

	slices.SortFunc(found.Entries, func(a, b Entry) int { return cmp.Compare(a.ID, b.ID) })
	slices.SortFunc(found.Skipped,
		func(a, b Skipped) int { return cmp.Compare(a.Reason, b.Reason) })
	return found
}
