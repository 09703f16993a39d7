package feed

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/passes"
	"archivist/pkg/kernel/table"
	"archivist/pkg/research"
)

// Times of the function that looks at feeds. A look that has begun in the last moment of the budget
// ends before the function does, and its claim after it.
const (
	Function = 5 * time.Minute                     // the time-out of the function
	Budget   = Function - Timeout - 30*time.Second // no look begins after it
	Claim    = Function + 5*time.Second            // how long a look has its feed, if it dies
)

// by is who changes episodes and clips for a feed.
var by = research.By{Actor: "curation", Component: "curation"}

// Looker looks at the feeds of projects when they are due, and keeps what is known of each in a
// row. Ticks may overlap: each look takes a claim on its row. A look that dies loses nothing: what
// it curated stays, and the next one curates the rest.
type Looker struct {
	Reader   Reader
	Research *research.Store
	Table    *table.Table
	Now      func() time.Time
	NewID    func() string
	Log      *slog.Logger

	// Metric, if it is set, is told by each tick how many feeds need a person, if there are any.
	Metric func(name string, value float64)
}

// MetricFailing is the number of feeds that have ended, or whose newest looks failed.
const MetricFailing = "ResearchFeedsFailing"

// mostFailures is how many looks in a row may fail before a person is told: a bit more than an
// hour.
const mostFailures = 5

// Tick looks at the feeds that are due, the longest due first, and begins none after until. A feed
// that fails is no error: its row says why, and when it is looked at again. The error joins those
// of all projects; a project that fails does not keep the others back.
func (l *Looker) Tick(ctx context.Context, until time.Time) error {
	turns := passes.Turns{Table: l.Table, NewID: l.NewID, Now: l.Now}
	return turns.Each(ctx, "feeds", l.Research.Projects, until, func(name string) error {
		err := l.tick(ctx, name, until)
		if err != nil {
			return fault.New(kindOf(err), "feeds of the project %s: %w", name, err)
		}
		return nil
	})
}

// kindOf is the kind of an error, Unavailable if it has none.
func kindOf(err error) fault.Kind {
	if k := fault.Of(err); k != "" {
		return k
	}
	return fault.Unavailable
}

// tick looks at the feeds of a project that are due.
func (l *Looker) tick(ctx context.Context, project string, until time.Time) error {
	rows, err := l.rows(ctx, project)
	if err != nil {
		return err
	}

	err = l.follow(ctx, project, &rows)
	if err != nil {
		return err
	}

	l.count(rows)
	now := l.Now()
	rows = slices.DeleteFunc(rows,
		func(r *row) bool { return r.Live(now) || r.next() > now.UnixMilli() })
	slices.SortFunc(rows, func(a, b *row) int { return int(a.next() - b.next()) })
	var errs []error
	for _, r := range rows {
		if !l.Now().Before(until) {
			break
		}
		err = l.look(ctx, r, until) // one that fails does not keep the others back
		if err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// count counts the feeds that need a person. A row that is damaged is an error of its look.
func (l *Looker) count(rows []*row) {
	failing := 0
	for _, r := range rows {
		s, err := r.state()
		if err == nil && (s.Gone || s.Failures >= mostFailures) {
			failing++
		}
	}

	put := l.Metric
	if put != nil && failing > 0 {
		put(MetricFailing, float64(failing))
	}
}

// follow makes the rows those of the feeds in the project's definition: it removes those of feeds
// that are no longer there, makes those that are new, and sets what is configured in each. Its
// error joins those of all feeds. What a removed feed has curated stays.
func (l *Looker) follow(ctx context.Context, project string, rows *[]*row) error {
	p, err := l.Research.Project(ctx, project)
	if fault.Is(err, fault.NotFound) { // it is not defined yet
		return nil
	}

	if err != nil {
		return err
	}

	feeds := map[string]research.Feed{}
	for _, f := range p.Feeds {
		feeds[keyOf(f)] = f
	}

	*rows = slices.DeleteFunc(*rows, func(r *row) bool {
		f, still := feeds[r.Name]
		r.feed = f
		delete(feeds, r.Name)
		if !still {
			err = errors.Join(err, l.remove(ctx, r))
		}
		return !still
	})

	for key, f := range feeds {
		r := newRow(project, key, f)
		tx := l.Table.Begin(l.NewID())
		tx.Insert(r)
		made := tx.Commit(ctx)
		switch {
		case made == nil:
			*rows = append(*rows, r)
		case !fault.Is(made, fault.Stale): // another tick made it
			err = errors.Join(err, made)
		}
	}
	return err
}

// look looks at a feed. Of two looks at once, one has the claim; the other ends without an error.
// What the feed says wrongly is stored in its row; an error is one of the table, or of a damaged
// row.
func (l *Looker) look(ctx context.Context, r *row, until time.Time) error {
	began := l.Now()
	state, err := r.state()
	if err != nil {
		return err
	}

	// The claim is stored before the request is made: of two ticks at once, one asks the server.
	tx := l.Table.Begin(l.NewID())
	r.Take(tx.ID(), began, Claim)
	tx.Save(r)
	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil
	}

	if err != nil {
		return err
	}

	found, err := l.Reader.Look(ctx, r.feed.URL,
		fetch.Validators{ETag: r.ETag, Modified: r.Modified})
	state.Looked = began.UnixMilli()
	m := merged{}
	if err == nil && !found.Unchanged {
		m.known, err = l.known(ctx, r)
		if err != nil {
			return err
		}
		l.merge(ctx, r, found, &m, state.Looked, until)
		err = m.err
	}

	state.record(found, m, err)
	l.Log.Info("looked at a feed", "project", r.Project, "feed", fetch.Redact(r.feed.URL),
		"unchanged", found.Unchanged,
		"entries", len(found.Entries), "changed", m.changed, "left", m.left, "error", err)

	return l.finish(ctx, r, state, found, m)
}

// merge curates the entries that are not known as they are. Their date is when the look began,
// before the feed was read: so a look that is slow does not undo what a later one read. When the
// time is up, what is left is counted, and known entries are still noted. An entry that cannot be
// kept is counted as refused, and tried again by each look that reads the feed; any other error
// ends the merge.
func (l *Looker) merge(ctx context.Context, r *row, found Look, m *merged, began int64,
	until time.Time) {
	known := m.known.digests()
	for i, e := range found.Entries {
		d := digestOf(e)
		if known[d] {
			m.digests = append(m.digests, d)
			continue
		}

		if !l.Now().Before(until) {
			m.left++
			continue
		}

		_, err := l.Research.Curate(ctx, research.Curated{
			Project: r.Project,
			Kind:    research.Kind(r.feed.Kind),
			Source:  r.feed.Source,
			ID:      e.ID,
			Title:   e.Title,
			URL:     e.URL,
			Curated: began,
			Initial: e.Published,
		}, by)

		switch {
		case err == nil:
			m.digests = append(m.digests, d)
			m.changed++
		case fault.Is(err, fault.Invalid):
			m.refused = count(m.refused, err.Error(), e.ID)
		default:
			stored := rest(found.Entries[i+1:], known)
			m.digests = append(m.digests, stored...)
			m.left = len(found.Entries) - i - len(stored)
			m.err = fault.New(kindOf(err), "entry %q: %w", clip(e.ID), err)
			return
		}
	}
}

// rest are the digests of entries that are known as they are.
func rest(entries []Entry, known map[digest]bool) (all []digest) {
	for _, e := range entries {
		if d := digestOf(e); known[d] {
			all = append(all, d)
		}
	}
	return all
}

// finish stores what the look found, and gives the claim back. If another look has the claim by
// now, it knows more. Validators are kept only if all was taken from the document that they are of:
// otherwise the server would answer that it is unchanged, and what is left would never be stored.
func (l *Looker) finish(ctx context.Context, r *row, s State, found Look, m merged) error {
	// All was taken; entries are left; or the feed could not be read, and its validators are still
	// right.
	r.Looked, r.Wait = s.Looked, 0
	switch {
	case s.Problem == "" && m.left == 0:
		r.ETag, r.Modified = short(found.ETag), short(found.Modified)
	// Entries are left, for which the feed has to be read again.
	case s.Problem == "" || m.err != nil:
		r.Wait, r.ETag, r.Modified = s.Looked+s.wait.Milliseconds(), "", ""
	default:
		r.Wait = s.Looked + s.wait.Milliseconds()
	}

	r.Release()
	err := r.pack(s)
	if err != nil {
		return err
	}

	tx := l.Table.Begin(l.NewID())
	tx.Save(r)
	if m.known != nil {
		m.remember(tx)
	}

	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) {
		return nil
	}
	return err
}

// longest is how many bytes of a validator are kept. Without it the feed is read each time.
const longest = 1024

// short is a validator, "" if it is too long to be kept.
func short(validator string) string {
	if len(validator) > longest {
		return ""
	}
	return validator
}

// rows are the rows of a project's feeds.
func (l *Looker) rows(ctx context.Context, project string) (all []*row, err error) {
	q := table.Query{PK: partition(project), Prefix: prefix}
	for {
		var page []*row
		q.Cursor, err = l.Table.Page(ctx, q, &page)
		all = append(all, page...)
		if err != nil || q.Cursor == "" {
			return all, err
		}
	}
}

// remove removes the rows of a feed that the project does not have any more. A look that is at work
// finds that its row is gone, and stores nothing.
func (l *Looker) remove(ctx context.Context, r *row) error {
	known, err := l.known(ctx, r)
	if err != nil {
		return err
	}

	tx := l.Table.Begin(l.NewID())
	tx.Remove(r)
	if known.Rev > 0 {
		tx.Remove(known)
	}

	err = tx.Commit(ctx)
	if fault.Is(err, fault.Stale) { // the next tick removes it
		return nil
	}
	return err
}

// known reads what is known of the entries of a feed; Rev 0 if nothing is.
func (l *Looker) known(ctx context.Context, r *row) (*knownRow, error) {
	k := table.Key{PK: r.PK, SK: "known#" + r.Name}
	known := &knownRow{Head: table.Head{PK: k.PK, SK: k.SK}}
	err := l.Table.Get(ctx, k, known)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return known, err
}
