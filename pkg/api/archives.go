package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
)

// ArchiveInput names an archive.
type ArchiveInput struct {
	Archive string `path:"archive" maxLength:"60"`
}

// ArchiveCursor names an archive and a page of one of its lists.
type ArchiveCursor struct {
	ArchiveInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// ArchivesCursor names a page of the list of archives.
type ArchivesCursor struct {
	Cursor string `query:"cursor" maxLength:"4000"`
}

// PutArchive is a request to register an archive or to change its settings.
type PutArchive struct {
	ArchiveInput
	Acting
	Body v1.ArchiveDefinition
}

// ArchiveAction is a request to act on an archive.
type ArchiveAction struct {
	ArchiveInput
	Acting
	Body v1.ArchiveAction
}

// archives registers the routes of archives: what has revisions, in the revision queue. Where a
// deployment has no revision queue, deployed refuses them all.
func (a *API) archives(h huma.API) {
	const path = "/v1/archives"
	const one = path + "/{archive}"
	get(a, h, path, "listArchives", "List the archives",
		func(ctx context.Context, in *ArchivesCursor) (out v1.List[v1.Archive], err error) {
			page, next, err := a.Revisions.Archives(ctx, in.Cursor)
			out.Items, out.Cursor = each(page, wireArchive), next
			return out, err
		})

	get(a, h, one, "getArchive", "Get an archive", a.archive)
	put(a, h, one, "putArchive", "Register an archive, or change its settings", a.putArchive)
	post(a, h, one+"/actions", "actOnArchive", "Act on an archive", a.actOnArchive)
	get(a, h, one+"/events", "listArchiveEvents", "List the events of an archive",
		func(ctx context.Context, in *ArchiveCursor) (v1.List[v1.Event], error) {
			return a.events(event.Archive)(ctx, &IDCursor{ID: in.Archive, Cursor: in.Cursor})
		})
}

// archive is the status of an archive: its settings, how far it is, and what runs now.
func (a *API) archive(ctx context.Context, in *ArchiveInput) (out v1.ArchiveStatus, err error) {
	st, err := a.Revisions.Status(ctx, in.Archive)
	if err != nil {
		return out, err
	}

	out = v1.ArchiveStatus{
		Archive:    wireArchive(st.Archive),
		Open:       map[string]int{},
		More:       st.More,
		RunningNow: each(st.Running, wireTask),
		Limit:      st.Limit,
		Locks:      []v1.ArchiveLock{},
		Schedules:  []v1.ArchiveSchedule{},
	}

	for state, n := range st.Open {
		out.Open[string(state)] = n
	}

	if g := st.Gap; g != nil {
		out.Gap = &v1.ArchiveGap{
			Missing: g.Missing,
			Behind:  g.Behind,
			Since:   timestamp(g.Since),
			Looks:   timestamp(g.Looks),
		}
	}

	for _, l := range st.Locks {
		out.Locks = append(out.Locks, v1.ArchiveLock(l))
	}

	for _, d := range st.Due {
		out.Schedules = append(out.Schedules, v1.ArchiveSchedule{
			Task:    d.Task,
			Cron:    d.Cron,
			Zone:    d.Zone,
			Overlap: string(d.Overlap),
			Next:    timestamp(d.Next),
		})
	}

	if st.Filling != nil {
		b := v1.ArchiveBackfill(*st.Filling)
		out.Backfill = &b
	}
	return out, nil
}

// wireArchive is the wire form of an archive. Times are milliseconds in rows, seconds and ISO 8601 on
// the wire.
func wireArchive(x revision.Archive) v1.Archive {
	out := v1.Archive{
		Name: x.Name,
		ArchiveDefinition: v1.ArchiveDefinition{
			Title:            x.Title,
			Location:         v1.ArchiveLocation(x.Location),
			Baseline:         x.Baseline,
			ReconcileSeconds: seconds(x.Reconcile),
			Running:          x.Running,
		},
		Mode:      string(x.Mode),
		Why:       x.Why,
		Ref:       x.Ref(),
		First:     x.First,
		Watermark: x.Watermark,
		Head:      x.Newest,
		Looked:    timestamp(x.Looked),
		Created:   timestamp(x.Created),
	}

	if t := x.Trouble; t != nil {
		out.Trouble = &v1.ArchiveTrouble{
			Revision: t.Revision,
			Reason:   t.Reason,
			Since:    timestamp(t.Since),
			Tries:    t.Tries,
			Next:     timestamp(t.Next),
		}
	}
	return out
}

// mostSeconds is the longest time between two looks at an archive.
const mostSeconds = revision.MaxReconcile / 1000

// never is the time between two looks at an archive that is never looked at.
const never = -1

// seconds is the time between two looks as the wire has it; never stays never.
func seconds(ms int64) int64 {
	if ms == never {
		return never
	}
	return ms / 1000
}

// putArchive registers an archive or changes its settings. Its bounds are checked here, since -1 and 0
// have meanings of their own besides the range. The location is checked by its form only: whether there
// is a repository, the first look finds out.
func (a *API) putArchive(ctx context.Context, in *PutArchive) (v1.Archive, error) {
	d := in.Body
	set := revision.Settings{
		Location:  archive.Location(d.Location),
		Title:     d.Title,
		Baseline:  d.Baseline,
		Reconcile: d.ReconcileSeconds,
		Running:   d.Running,
	}

	if n := d.ReconcileSeconds; n > mostSeconds || n < 60 && n != 0 && n != never {
		return v1.Archive{}, fault.New(fault.Invalid,
			"reconcileSeconds: found %d; expected 60 to %d, or -1 for never",
			n, mostSeconds)
	}

	if set.Reconcile != never {
		set.Reconcile *= 1000
	}

	err := set.Location.Check(false)
	if err != nil {
		return v1.Archive{}, fault.New(fault.Invalid, "location.%w", err)
	}

	by, err := in.by("")
	if err != nil {
		return v1.Archive{}, err
	}

	x, err := a.Revisions.Add(ctx, in.Archive, set, by)
	return wireArchive(x), err
}

// fieldsOf are the fields of each action on an archive.
var fieldsOf = map[string][]string{"resume": {"restart"}, "skip": {"revision"},
	"backfill": {"from", "to"}}

// checkFields refuses fields that an action does not have, and requires those that it needs. Restart may
// be missing: then a stopped archive goes on as it was.
func checkFields(in v1.ArchiveAction) error {
	given := map[string]int64{"revision": in.Revision, "from": in.From, "to": in.To}
	for _, name := range fieldsOf[in.Action] {
		if given[name] == 0 && name != "restart" {
			return fault.New(fault.Invalid, "%s: the action %s needs it", name, in.Action)
		}
	}
	return only(in, in.Action, fieldsOf[in.Action])
}

// actOnArchive acts on an archive, and answers with the archive after it.
func (a *API) actOnArchive(ctx context.Context, in *ArchiveAction) (v1.Archive, error) {
	err := checkFields(in.Body)
	if err != nil {
		return v1.Archive{}, err
	}

	if err := in.mayDo(in.Body.Action); err != nil {
		return v1.Archive{}, err
	}

	by, err := in.by(in.Body.Reason)
	if err != nil {
		return v1.Archive{}, err
	}

	x, err := a.doToArchive(ctx, in.Archive, in.Body, by)
	return wireArchive(x), err
}

// doToArchive does an action, and returns the archive after it. The schema has refused other actions.
func (a *API) doToArchive(ctx context.Context, name string, in v1.ArchiveAction,
	by revision.By) (x revision.Archive, err error) {
	switch in.Action {
	case "pause":
		return a.Revisions.Pause(ctx, name, by)
	case "resume":
		return a.Revisions.Resume(ctx, name, in.Restart, by)
	case "skip":
		if err := a.Revisions.Skip(ctx, name, in.Revision, by); err != nil {
			return x, err
		}
		return a.Revisions.Archive(ctx, name)
	case "backfill":
		return a.Revisions.Backfill(ctx, name, in.From, in.To, by)
	case "delete":
		return a.Revisions.Delete(ctx, name, by)
	}
	return x, nil
}
