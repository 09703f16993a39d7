package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/workflow"
)

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

// RevisionAction is a request to act on a revision.
type RevisionAction struct {
	RevisionInput
	Asking
	Repeatable
	Body v1.RevisionAction
}

// revisions registers the routes of revisions.
func (a *API) revisions(h huma.API) {
	const archive = "/v1/archives/{archive}"
	const path = archive + "/revisions"
	get(a, h, archive+"/preview", "previewRevision", "Say what a revision would plan", a.preview)
	post(a, h, path, "notifyRevision", "Say that a revision was committed", a.notify)
	get(a, h, path, "listRevisions", "List the revisions of an archive",
		func(ctx context.Context, in *ArchiveCursor) (out v1.List[v1.ArchiveRevision], err error) {
			page, next, err := a.Revisions.Revisions(ctx, in.Archive, in.Cursor)
			out.Items, out.Cursor = each(page, wireRevision), next
			return out, err
		})

	get(a, h, path+"/{revision}", "getRevision", "Get a revision with its tasks", a.plan)
	post(a, h, path+"/{revision}/actions", "actOnRevision",
		"Run the failed tasks of a revision again", a.actOnRevision)

	get(a, h, path+"/{revision}/graph", "getRevisionGraph", "Get a revision as a graph",
		a.revisionGraph)
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

// notify records that a revision was committed. A transaction that cannot be one of such an archive is
// refused before anything is recorded. The token of a task's run says which task made the revision.
func (a *API) notify(ctx context.Context, in *RevisionNotice) (v1.ArchiveRevision, error) {
	by, err := in.by("")
	if err != nil {
		return v1.ArchiveRevision{}, err
	}

	x, err := a.Revisions.Archive(ctx, in.Archive)
	if err != nil {
		return v1.ArchiveRevision{}, err
	}

	if err := x.Location.CheckTransaction(in.Body.Transaction); err != nil {
		return v1.ArchiveRevision{}, err
	}

	r, err := a.Revisions.Notify(ctx, in.Archive, revision.Notice{
		Revision:    in.Body.Revision,
		Transaction: in.Body.Transaction,
		Token:       in.Run,
	}, by)
	return wireRevision(revision.WithCounts{Revision: r}), err
}

// actOnRevision runs what has failed again, with its dependents. A repetition with the same key goes on
// where the first request ended.
func (a *API) actOnRevision(ctx context.Context, in *RevisionAction) (out v1.RevisionOutcome, err error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	started, left, err := a.Revisions.RunFailed(ctx, in.Archive, revision.Run{
		Revision: in.Revision,
		Force:    in.Body.Force,
		Key:      in.Key,
	}, by)
	return v1.RevisionOutcome{Started: each(started, wireTask), Left: append([]string{}, left...)}, err
}

// wireRevision is the wire form of a revision with the numbers of its tasks.
func wireRevision(r revision.WithCounts) v1.ArchiveRevision {
	return v1.ArchiveRevision{
		ID:          revision.ID{Ref: r.Archive, N: r.Number}.String(),
		Revision:    r.Number,
		State:       r.State,
		Transaction: r.Transaction,
		Author:      r.Author,
		Message:     r.Message,
		Time:        timestamp(r.Time),
		Notified:    timestamp(r.Notified),
		Planned:     timestamp(r.Planned),
		Definition:  r.Definition,
		Problems:    wireProblems(r.Problems),
		Reason:      r.Reason,
		MadeBy:      r.MadeBy,
		Chain:       r.Chain,
		Tasks:       r.Instances,
		Ended:       r.Ended,
	}
}

// wireProblems is nil if a definition has no problems.
func wireProblems(from []workflow.Problem) (all []v1.DefinitionProblem) {
	for _, p := range from {
		all = append(all, v1.DefinitionProblem(p))
	}
	return all
}

// plan is a revision with its tasks. A run that asks in order to wait for the revision, and would wait
// for itself, gets a Conflict instead of a wait without end.
func (a *API) plan(ctx context.Context, in *PlanInput) (out v1.RevisionPlan, err error) {
	why, err := a.Revisions.Same(ctx, in.Archive, in.Revision, in.Run)
	if err != nil {
		return out, err
	}

	if why != "" {
		return out, fault.New(fault.Conflict, "%s", why)
	}

	p, err := a.Revisions.Plan(ctx, in.Archive, in.Revision)
	return v1.RevisionPlan{
		ArchiveRevision: wireRevision(p.WithCounts),
		Plan:            each(p.Tasks, wireTask),
		More:            p.More,
	}, err
}

// revisionGraph draws a revision, as text in three languages and as data. One that is not planned is a
// Conflict.
func (a *API) revisionGraph(ctx context.Context, in *RevisionInput) (v1.RevisionGraph, error) {
	g, err := a.Revisions.Graph(ctx, in.Archive, in.Revision)
	if err != nil {
		return v1.RevisionGraph{}, err
	}
	nodes, links := wireGraph(g)
	return v1.RevisionGraph{
		DOT:     g.DOT(),
		Mermaid: g.Mermaid(),
		SVG:     g.SVG(),
		Nodes:   nodes,
		Links:   links,
	}, nil
}

// preview says what a revision would plan. Another function reads the archive for it, and the request
// waits for that function.
func (a *API) preview(ctx context.Context, in *PreviewInput) (v1.RevisionPreview, error) {
	p, err := a.Preview(ctx, in.Archive, in.Revision)
	out := v1.RevisionPreview{
		Revision: p.Revision,
		Problems: []v1.DefinitionProblem{},
		Tasks:    []v1.PreviewTask{},
	}

	out.Problems = append(out.Problems, wireProblems(p.Problems)...)
	for _, t := range p.Tasks {
		one := v1.PreviewTask{
			Task:    t.Task,
			Awaits:  []v1.PreviewRelation{},
			Cancels: []v1.PreviewRelation{},
		}

		for _, w := range t.Awaits {
			one.Awaits = append(one.Awaits, v1.PreviewRelation{
				Task:     w.Task,
				Revision: w.Revision,
				Why:      w.Why,
			})
		}

		for _, s := range t.Cancels {
			one.Cancels = append(one.Cancels, v1.PreviewRelation(s))
		}

		out.Tasks = append(out.Tasks, one)
	}
	return out, err
}
