package revision

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// Limits of views, each with its reason.
const (
	// Rows of a page: one request of DynamoDB reads them.
	listPage = 100

	// Pages that a filter goes through for one page of an answer: some seconds.
	searchPages = 20

	// Events of an instance that are read for its attempts: one has at most some ten for each
	// attempt.
	eventsMost = 1000
)

// Instance returns an instance, also one that is in the bucket. One whose revision is still being
// planned is shown, too, if it is asked for by its id; lists leave it out. One that does not exist is
// a NotFound.
func (s *Store) Instance(ctx context.Context, id string) (Instance, error) {
	r, err := s.found(ctx, id)
	if err != nil || r.State != "" {
		return r.Instance, err
	}
	return r.Instance, fault.New(fault.NotFound, "there is no instance %s",
		definition.Clip(id, 200))
}

// Archive returns an archive. One that was deleted is a NotFound; its revisions are still found by
// the ref of its epoch.
func (s *Store) Archive(ctx context.Context, name string) (Archive, error) {
	r, err := s.known(ctx, name)
	return r.Archive, err
}

// Revision returns a revision of an archive in its epoch. ref is exact: "maps" is the first epoch,
// "maps@2" the second. One that does not exist is a NotFound.
func (s *Store) Revision(ctx context.Context, ref string, n int64) (Revision, error) {
	r, err := s.revisionRow(ctx, ref, n)
	if err != nil || r.Rev > 0 {
		return r.Revision, err
	}
	return r.Revision, fault.New(fault.NotFound, "there is no revision %d of %s", n,
		definition.Clip(ref, 60))
}

// listed reads a page of rows that the index lists, in its order. The index only says which: the
// rows are read consistently, and one that is gone meanwhile is left out. So a page can be short.
func (s *Store) listed(ctx context.Context,
	q table.Query) (rows []table.Raw, next string, err error) {
	q.Index, q.Limit = "list", listPage
	var heads []table.Head
	next, err = s.Table.Page(ctx, q, &heads)
	if err != nil {
		return nil, "", err
	}

	var at []table.Key
	for _, h := range heads {
		at = append(at, h.Key())
	}

	found, err := s.Table.Many(ctx, at)
	for _, k := range at {
		if raw, ok := found[k]; ok {
			rows = append(rows, raw)
		}
	}
	return rows, next, err
}

// Archives lists the archives by name, without those that were deleted. cursor is "" at first, and
// next is "" at the end.
func (s *Store) Archives(ctx context.Context,
	cursor string) (page []Archive, next string, err error) {
	rows, next, err := s.listed(ctx, table.Query{PK: "ARCHIVES", Cursor: cursor})
	for _, raw := range rows {
		r := &archiveRow{}
		err := decode(raw, r, &r.Text, &r.Archive)
		if err != nil {
			return nil, "", err
		}
		if r.Archive.Mode != Deleted {
			page = append(page, r.Archive)
		}
	}
	return page, next, err
}

// WithCounts is a revision with the numbers of its instances, runs included.
type WithCounts struct {
	Revision
	Instances int64 // all
	Ended     int64 // of them
}

// Revisions lists the revisions of an archive, the newest first, also those that are only notified.
// The archive is named as in Explain. cursor is "" at first, and next is "" at the end.
func (s *Store) Revisions(ctx context.Context, archive,
	cursor string) (page []WithCounts, next string, err error) {
	_, at, err := s.locate(ctx, archive)
	if err != nil {
		return nil, "", err
	}

	rows, next, err := s.listed(ctx, table.Query{PK: "REVISIONS#" + at, Desc: true, Cursor: cursor})
	for _, raw := range rows {
		r := &revisionRow{}
		err := decode(raw, r, &r.Text, &r.Revision)
		if err != nil {
			return nil, "", err
		}
		page = append(page, WithCounts{r.Revision, r.All, r.Over})
	}
	return page, next, err
}

// instances reads a page of instances that are in the table.
func (s *Store) instances(ctx context.Context,
	q table.Query) (page []Instance, next string, err error) {
	rows, next, err := s.listed(ctx, q)
	for _, raw := range rows {
		r := &instanceRow{}
		err := decode(raw, r, &r.Text, &r.Instance)
		if err != nil {
			return nil, "", err
		}
		page = append(page, r.Instance)
	}
	return page, next, err
}

// Instances lists the instances of an archive that a filter selects: the newest first, those of one
// revision in their order. What is in the bucket is listed for one revision only, behind what is in
// the table. The archive is named as in Explain. A page may be short, and even empty: only without
// a cursor for the next it is the last.
func (s *Store) Instances(ctx context.Context, archive string, f Filter,
	cursor string) (page []Instance, next string,
	err error) {
	err = f.Check()
	if err != nil {
		return nil, "", err
	}

	a, at, err := s.locate(ctx, archive)
	if err != nil {
		return nil, "", err
	}

	if f.Revision > 0 && strings.HasPrefix(cursor, bucketCursor) {
		return s.instancesInBucket(ctx, at, f, cursor)
	}

	q := table.Query{PK: "TASKS#" + at, Desc: true, Cursor: cursor}
	if f.Revision > 0 {
		q.Prefix, q.Desc = before(f.Revision)+"#", false
	}

	page, next, err = s.search(ctx, q,
		func(in Instance) bool { return f.selects(in) && a.shows(at, in.Revision) })
	if err != nil || f.Revision == 0 || next != "" {
		return page, next, err
	}

	next, err = s.nextInBucket(ctx, at, f.Revision)
	return page, next, err
}

// search reads instances until there are enough for a page, or searchPages were read: a filter that
// selects few must not take longer than a call may. The cursor goes on behind what was read.
func (s *Store) search(ctx context.Context, q table.Query,
	selects func(Instance) bool) (page []Instance, next string,
	err error) {
	for range searchPages {
		var some []Instance
		some, q.Cursor, err = s.instances(ctx, q)
		if err != nil {
			return nil, "", err
		}

		for _, in := range some {
			if selects(in) {
				page = append(page, in)
			}
		}

		if q.Cursor == "" || len(page) >= listPage/2 {
			break
		}
	}
	return page, q.Cursor, nil
}

// shows reports whether the plan of a revision is complete, so that its instances are seen. In an
// epoch that has ended, nothing is planned any more.
func (a *archiveRow) shows(ref string, n int64) bool {
	if ref != a.Ref() {
		return true
	}
	return n <= a.Watermark && (a.Backfill == nil || a.Backfill.Next != n)
}

// Attempts are the attempts of an instance, the oldest first, as its events say: the row has only
// the last one. Events stay in the table when the instance goes into the bucket. An instance
// without any has none, and so has one that does not exist.
func (s *Store) Attempts(ctx context.Context, id string) (all []Attempt, err error) {
	at := func(m Moved) *Attempt {
		for i := range all {
			if all[i].Exec == m.Exec {
				return &all[i]
			}
		}
		all = append(all, Attempt{Number: m.Attempt, Exec: m.Exec, Exit: -1})
		return &all[len(all)-1]
	}

	cursor, read := "", 0
	for read < eventsMost {
		rows, next, err := event.Page(ctx, s.Table, taskSubject(id), cursor)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			var m Moved
			if r.Type != "task.state" || json.Unmarshal([]byte(r.Detail), &m) != nil ||
				m.Exec == "" {
				continue
			}
			at(m).moved(m, r.Time)
		}

		read += len(rows)
		cursor = next
		if cursor == "" {
			break
		}
	}
	return all, nil
}

// moved takes over what an event at a time (milliseconds since 1970) says of an attempt. Its end is
// that of the run, if there was one: else the state in which the instance ended or waited.
func (a *Attempt) moved(m Moved, at int64) {
	switch {
	case m.To == workflow.Dispatched:
		a.Asked = at
	case m.To == workflow.Running:
		a.Began = at
	case m.From.Started():
		a.Ended, a.End, a.Reason = at, string(m.To), m.Reason
		if m.Tried != nil && m.Tried.Attempt == a.Number {
			a.End, a.Exit, a.Outputs, a.OutputCount = m.Tried.End, m.Tried.Exit, m.Tried.Outputs,
				m.Tried.OutputCount
		}
	}
}

// Prefix begins the keys of an attempt of an instance: what it logs and leaves.
func (a Attempt) Prefix(id string) string {
	in := Instance{ID: id, Attempt: a.Number, Exec: a.Exec}
	return in.Prefix()
}

// Same says why a run with a token must not wait for a revision: it would wait for itself or for
// what comes after it. "" if it may. A token that is not one of the archive is none of its runs,
// and no error.
func (s *Store) Same(ctx context.Context, archive string, n int64, token string) (string, error) {
	if token == "" {
		return "", nil
	}

	_, at, err := s.locate(ctx, archive)
	if err != nil {
		return "", err
	}

	maker, err := s.maker(ctx, at, token)
	if fault.Is(err, fault.Denied) {
		return "", nil
	}

	if err != nil {
		return "", err
	}

	if maker == nil || n < maker.Revision {
		return "", nil
	}
	return fmt.Sprintf("%s is a run of revision %d: it would wait for itself", maker.ID,
		maker.Revision), nil
}
