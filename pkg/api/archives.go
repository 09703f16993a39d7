package api

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/archive"
	"archivist/pkg/event"
	"archivist/pkg/fault"
	"archivist/pkg/graph"
	"archivist/pkg/revision"
	"archivist/pkg/workflow"
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
	Caller
	Body v1.ArchiveDefinition
}

// ArchiveAction is a request to act on an archive.
type ArchiveAction struct {
	ArchiveInput
	Caller
	Body v1.ArchiveAction
}

// RevisionNotice is a request that says that a revision was committed.
type RevisionNotice struct {
	ArchiveInput
	Caller
	Run  string `header:"Archivist-Run" maxLength:"400"`
	Body v1.RevisionNotice
}

// RevisionInput names a revision.
type RevisionInput struct {
	ArchiveInput
	Revision int64 `path:"revision" minimum:"1"`
}

// RevisionCursor names a revision and a page of its events.
type RevisionCursor struct {
	RevisionInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// PlanInput names a revision, and the run that is going to wait for it.
type PlanInput struct {
	RevisionInput
	Run string `header:"Archivist-Run" maxLength:"400"`
}

// PreviewInput names a revision that is not planned yet.
type PreviewInput struct {
	ArchiveInput
	Revision int64 `query:"revision" minimum:"0"`
}

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
	register(a, h, huma.Operation{Method: http.MethodPut, Path: one, OperationID: "putArchive",
		Summary: "Register an archive, or change its settings"}, a.putArchive)
	register(a, h, huma.Operation{Method: http.MethodPost, Path: one + "/actions", OperationID: "actOnArchive",
		Summary: "Act on an archive"}, a.actOnArchive)
	get(a, h, one+"/events", "listArchiveEvents", "List the events of an archive",
		func(ctx context.Context, in *ArchiveCursor) (v1.List[v1.Event], error) {
			return a.events(event.Archive)(ctx, &IDCursor{ID: in.Archive, Cursor: in.Cursor})
		})
	get(a, h, one+"/explain", "explainArchive", "Explain what an archive waits for",
		func(ctx context.Context, in *ArchiveInput) (v1.WaitExplanation, error) {
			return wireWaits(a.Revisions.Explain(ctx, in.Archive))
		})
	get(a, h, one+"/preview", "previewRevision", "Say what a revision would plan", a.preview)
	a.revisions(h, one+"/revisions")
	a.tasks(h, one)
}

// revisions registers the routes of revisions.
func (a *API) revisions(h huma.API, path string) {
	register(a, h, huma.Operation{Method: http.MethodPost, Path: path, OperationID: "notifyRevision",
		Summary: "Say that a revision was committed"}, a.notify)
	get(a, h, path, "listRevisions", "List the revisions of an archive",
		func(ctx context.Context, in *ArchiveCursor) (out v1.List[v1.ArchiveRevision], err error) {
			page, next, err := a.Revisions.Revisions(ctx, in.Archive, in.Cursor)
			out.Items, out.Cursor = each(page, wireRevision), next
			return out, err
		})
	get(a, h, path+"/{revision}", "getRevision", "Get a revision with its tasks", a.plan)
	get(a, h, path+"/{revision}/graph", "getRevisionGraph", "Get a revision as a graph", a.revisionGraph)
	get(a, h, path+"/{revision}/explain", "explainRevision", "Explain what a revision waits for",
		func(ctx context.Context, in *RevisionInput) (v1.WaitExplanation, error) {
			return wireWaits(a.Revisions.Explain(ctx, in.id()))
		})
	get(a, h, path+"/{revision}/events", "listRevisionEvents", "List the events of a revision",
		func(ctx context.Context, in *RevisionCursor) (v1.List[v1.Event], error) {
			p, err := a.Revisions.Plan(ctx, in.Archive, in.Revision) // it knows the epoch
			if err != nil {
				return v1.List[v1.Event]{}, err
			}
			id := revision.ID{Ref: p.Archive, N: in.Revision}.String()
			return a.events(event.Revision)(ctx, &IDCursor{ID: id, Cursor: in.Cursor})
		})
}

func (in RevisionInput) id() string { return in.Archive + "/" + strconv.FormatInt(in.Revision, 10) }

// asks is who asks for a change of the revision queue, and why.
func (c Caller) asks(reason string) (revision.By, error) {
	actor, err := c.actor()
	return revision.By{Actor: actor, Reason: reason}, err
}

func (a *API) archive(ctx context.Context, in *ArchiveInput) (out v1.ArchiveStatus, err error) {
	st, err := a.Revisions.Status(ctx, in.Archive)
	if err != nil {
		return out, err
	}
	out = v1.ArchiveStatus{Archive: wireArchive(st.Archive), Open: map[string]int{}, More: st.More,
		RunningNow: each(st.Running, wireTask), Limit: st.Limit, Locks: []v1.ArchiveLock{},
		Schedules: []v1.ArchiveSchedule{}}
	for state, n := range st.Open {
		out.Open[string(state)] = n
	}
	if g := st.Gap; g != nil {
		out.Gap = &v1.ArchiveGap{Missing: g.Missing, Behind: g.Behind, Since: timestamp(g.Since),
			Looks: timestamp(g.Looks)}
	}
	for _, l := range st.Locks {
		out.Locks = append(out.Locks, v1.ArchiveLock(l))
	}
	for _, d := range st.Due {
		out.Schedules = append(out.Schedules, v1.ArchiveSchedule{Task: d.Task, Cron: d.Cron, Zone: d.Zone,
			Overlap: string(d.Overlap), Next: timestamp(d.Next)})
	}
	if st.Filling != nil {
		b := v1.ArchiveBackfill(*st.Filling)
		out.Backfill = &b
	}
	return out, nil
}

func wireArchive(x revision.Archive) v1.Archive {
	out := v1.Archive{Name: x.Name, ArchiveDefinition: v1.ArchiveDefinition{Title: x.Title,
		Location: v1.ArchiveLocation(x.Location), Baseline: x.Baseline, ReconcileSeconds: seconds(x.Reconcile),
		Running: x.Running}, Mode: string(x.Mode), Why: x.Why, Ref: x.Ref(), First: x.First, Watermark: x.Watermark,
		Head: x.Newest, Looked: timestamp(x.Looked), Created: timestamp(x.Created)}
	if t := x.Trouble; t != nil {
		out.Trouble = &v1.ArchiveTrouble{Revision: t.Revision, Reason: t.Reason, Since: timestamp(t.Since),
			Tries: t.Tries, Next: timestamp(t.Next)}
	}
	return out
}

// mostSeconds is the longest time between two looks at an archive: 30 days.
const mostSeconds = 30 * 24 * 3600

// never is the time between two looks at an archive that is never looked at.
const never = -1

func seconds(ms int64) int64 {
	if ms == never {
		return never
	}
	return ms / 1000
}

func (a *API) putArchive(ctx context.Context, in *PutArchive) (v1.Archive, error) {
	d := in.Body
	set := revision.Settings{Location: archive.Location(d.Location), Title: d.Title, Baseline: d.Baseline,
		Reconcile: d.ReconcileSeconds, Running: d.Running}
	if n := d.ReconcileSeconds; n > mostSeconds || n < 60 && n != 0 && n != never {
		return v1.Archive{}, fault.New(fault.Invalid, "reconcileSeconds: found %d; expected 60 to %d, or -1 for never",
			n, mostSeconds)
	}
	if set.Reconcile != never {
		set.Reconcile *= 1000
	}
	err := set.Location.Check(false)
	if err != nil {
		return v1.Archive{}, fault.New(fault.Invalid, "location.%w", err)
	}
	by, err := in.asks("")
	if err != nil {
		return v1.Archive{}, err
	}
	x, err := a.Revisions.Add(ctx, in.Archive, set, by)
	return wireArchive(x), err
}

// fieldsOf are the fields of each action on an archive.
var fieldsOf = map[string][]string{"resume": {"restart"}, "skip": {"revision"}, "backfill": {"from", "to"}}

// checkFields refuses fields that an action does not have, and requires those that it needs.
func checkFields(in v1.ArchiveAction) error {
	given := map[string]int64{"restart": in.Restart, "revision": in.Revision, "from": in.From, "to": in.To}
	for _, name := range []string{"restart", "revision", "from", "to"} {
		has := slices.Contains(fieldsOf[in.Action], name)
		if given[name] != 0 && !has {
			return fault.New(fault.Invalid, "%s: the action %s has no such field", name, in.Action)
		}
		if given[name] == 0 && has && name != "restart" {
			return fault.New(fault.Invalid, "%s: the action %s needs it", name, in.Action)
		}
	}
	return nil
}

func (a *API) actOnArchive(ctx context.Context, in *ArchiveAction) (v1.Archive, error) {
	err := checkFields(in.Body)
	if err != nil {
		return v1.Archive{}, err
	}
	by, err := in.asks(in.Body.Reason)
	if err != nil {
		return v1.Archive{}, err
	}
	var x revision.Archive
	switch in.Body.Action {
	case "pause":
		x, err = a.Revisions.Pause(ctx, in.Archive, by)
	case "resume":
		x, err = a.Revisions.Resume(ctx, in.Archive, in.Body.Restart, by)
	case "skip":
		err = a.Revisions.Skip(ctx, in.Archive, in.Body.Revision, by)
		if err == nil {
			x, err = a.Revisions.Archive(ctx, in.Archive)
		}
	case "backfill":
		x, err = a.Revisions.Fill(ctx, in.Archive, in.Body.From, in.Body.To, by)
	case "delete":
		x, err = a.Revisions.Delete(ctx, in.Archive, by)
	}
	return wireArchive(x), err
}

func (a *API) notify(ctx context.Context, in *RevisionNotice) (v1.ArchiveRevision, error) {
	by, err := in.asks("")
	if err != nil {
		return v1.ArchiveRevision{}, err
	}
	x, err := a.Revisions.Archive(ctx, in.Archive)
	if err == nil {
		err = x.Location.CheckTransaction(in.Body.Transaction)
	}
	if err != nil {
		return v1.ArchiveRevision{}, err
	}
	r, err := a.Revisions.Notify(ctx, in.Archive, revision.Notice{Revision: in.Body.Revision,
		Transaction: in.Body.Transaction, Token: in.Run}, by)
	return wireRevision(revision.Numbered{Revision: r}), err
}

func wireRevision(r revision.Numbered) v1.ArchiveRevision {
	return v1.ArchiveRevision{ID: revision.ID{Ref: r.Archive, N: r.Number}.String(), Revision: r.Number, State: r.State,
		Transaction: r.Transaction, Author: r.Author, Message: r.Message, Time: timestamp(r.Time),
		Notified: timestamp(r.Notified), Planned: timestamp(r.Planned), Definition: r.Definition,
		Problems: wireProblems(r.Problems), Reason: r.Reason, MadeBy: r.MadeBy, Chain: r.Chain, Tasks: r.Instances,
		Ended: r.Ended}
}

func wireProblems(from []workflow.Problem) (all []v1.DefinitionProblem) {
	for _, p := range from {
		all = append(all, v1.DefinitionProblem(p))
	}
	return all
}

func (a *API) plan(ctx context.Context, in *PlanInput) (out v1.RevisionPlan, err error) {
	why, err := a.Revisions.Same(ctx, in.Archive, in.Revision, in.Run)
	if err == nil && why != "" {
		err = fault.New(fault.Conflict, "%s", why)
	}
	if err != nil {
		return out, err
	}
	p, err := a.Revisions.Plan(ctx, in.Archive, in.Revision)
	return v1.RevisionPlan{ArchiveRevision: wireRevision(p.Numbered), Plan: each(p.Tasks, wireTask), More: p.More}, err
}

func (a *API) revisionGraph(ctx context.Context, in *RevisionInput) (v1.RevisionGraph, error) {
	g, err := a.Revisions.Graph(ctx, in.Archive, in.Revision)
	if err != nil {
		return v1.RevisionGraph{}, err
	}
	return v1.RevisionGraph{DOT: g.DOT(), Mermaid: g.Mermaid(), SVG: g.SVG(),
		Nodes: each(g.Nodes, func(n graph.Node) v1.GraphNode { return v1.GraphNode(n) }),
		Links: each(g.Links, func(l graph.Link) v1.GraphLink {
			return v1.GraphLink{From: l.From, To: l.To, Kind: string(l.Kind), Label: l.Label}
		})}, nil
}

func (a *API) preview(ctx context.Context, in *PreviewInput) (v1.RevisionPreview, error) {
	p, err := a.Preview(ctx, in.Archive, in.Revision)
	out := v1.RevisionPreview{Revision: p.Revision, Problems: []v1.DefinitionProblem{},
		Tasks: []v1.PreviewTask{}}
	out.Problems = append(out.Problems, wireProblems(p.Problems)...)
	for _, t := range p.Tasks {
		one := v1.PreviewTask{Task: t.Task, Awaits: []v1.PreviewRelation{}, Cancels: []v1.PreviewRelation{}}
		for _, w := range t.Awaits {
			one.Awaits = append(one.Awaits, v1.PreviewRelation{Task: w.Task, Revision: w.Revision, Why: w.Why})
		}
		for _, s := range t.Cancels {
			one.Cancels = append(one.Cancels, v1.PreviewRelation(s))
		}
		out.Tasks = append(out.Tasks, one)
	}
	return out, err
}

func wireLink(l revision.Link) v1.WaitLink {
	return v1.WaitLink{ID: l.ID, State: l.State, WaitsFor: string(l.Waits), Why: l.Why}
}

func wireWaits(x revision.Explanation, err error) (v1.WaitExplanation, error) {
	return v1.WaitExplanation{WaitLink: wireLink(x.Link), Root: wireLink(x.Root), Chain: each(x.Chain, wireLink),
		Cut: x.Cut, Since: timestamp(x.Since), Until: timestamp(x.Until)}, err
}

// verdictOf is the verdict of an edge as it is shown.
func verdictOf(v workflow.Verdict) string { return cmp.Or(string(v), "open") }
