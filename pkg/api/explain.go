package api

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/formats/ark"
	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/research"
)

// ExplainInput names a thing, and what is to be said of it.
type ExplainInput struct {
	ID         string `path:"id" maxLength:"1300"`
	Collection string `query:"collection" maxLength:"100"`
	Component  string `query:"component" maxLength:"100"`
	Consumer   string `query:"consumer" maxLength:"100"`
	Event      int64  `query:"event" minimum:"1"`
	Clip       string `query:"clip" maxLength:"40"`
}

// explaining registers the route that explains anything. Ids can have slashes, so the id is the rest of the path.
func (a *API) explaining(h huma.API) {
	get(a, h, "/v1/explain/{id...}", "explain", "Explain what a thing waits for",
		func(ctx context.Context, in *ExplainInput) (v1.Explanation, error) {
			x, err := a.explain(ctx, in)
			if err == nil {
				x, err = a.withinLimits(ctx, x)
			}
			if err != nil {
				return v1.Explanation{}, err
			}
			return wireExplanation(x), nil
		})
}

// explanationExample is a job that waits for another one.
var explanationExample = v1.Explanation{
	ExplainedLink: waitingExample,
	Chain: []v1.ExplainedLink{waitingExample,
		{Kind: explain.Job, ID: "01M7ZBMEYHBB62YP6RY21T1GQ5-00001", State: v1.Held, WaitsFor: string(explain.Hold),
			Why: "On hold since 2026-11-22T09:30:00Z by ada: rights are unclear. An operator must release the job."}},
	Since: timeExample,
	Ahead: &oneAhead,
	Line: &v1.ExplainedLine{Before: string(explain.ForLock), Name: arkExample,
		First: []v1.ExplainedBefore{{Kind: explain.Job, ID: "01M7ZBMEYHBB62YP6RY21T1GQ5-00001",
			State: v1.Held, Since: timeExample}}},
	Do: []v1.ExplainedStep{{What: "Release the job",
		Command: "archivist job release 01M7ZBMEYHBB62YP6RY21T1GQ5-00001 --reason TEXT"}},
	Facts: []v1.ExplainedFact{{Name: "checked again", Value: "2026-11-22T09:40:00Z"}},
}

var oneAhead = 1

var waitingExample = v1.ExplainedLink{Kind: explain.Job, ID: jobID, State: v1.Provisioning,
	WaitsFor: string(explain.Lock),
	Why: "Waiting to download map.tif from example.org: job 01M7ZBMEYHBB62YP6RY21T1GQ5-00001 works on the same " +
		"object and comes first. This job continues when that one has ended."}

// explain finds out what the id names, and explains that.
func (a *API) explain(ctx context.Context, in *ExplainInput) (x explain.Explanation, err error) {
	if err := in.check(); err != nil {
		return x, err
	}

	switch {
	case in.Collection != "":
		return a.explainLocal(ctx, in.Collection, in.ID)
	case in.Consumer != "":
		return a.explainEvent(ctx, in)
	case in.Clip != "":
		project, key, _ := strings.Cut(afterType(in.ID, explain.Episode), "/")
		return a.Research.ExplainPair(ctx, project, key, in.Clip)
	case in.Component != "":
		return a.Components.ExplainItem(ctx, in.ID, in.Component)
	case strings.HasPrefix(in.ID, "ark:"):
		return a.explainObject(ctx, in.ID)
	}

	if kind, id, typed := strings.Cut(in.ID, ":"); typed {
		return a.explainTyped(ctx, kind, id)
	}
	return a.explainNamed(ctx, in.ID)
}

// check refuses two questions at once, and half of one: a part of it would be ignored.
func (in *ExplainInput) check() error {
	if (in.Event > 0) != (in.Consumer != "") {
		return fault.New(fault.Invalid, "consumer, event: what became of an event is asked with both: its number, "+
			"and the name of a consumer")
	}

	var given []string
	for name, value := range map[string]string{"collection": in.Collection, "component": in.Component,
		"consumer": in.Consumer, "clip": in.Clip} {
		if value != "" {
			given = append(given, name)
		}
	}

	if len(given) > 1 {
		slices.Sort(given)
		return fault.New(fault.Invalid, "%s: give one of them; each asks another question", strings.Join(given, ", "))
	}
	return nil
}

// afterType is an id without the type in front of it, if it has that.
func afterType(id, kind string) string {
	if name, rest, typed := strings.Cut(id, ":"); typed && strings.EqualFold(name, kind) {
		return rest
	}
	return id
}

// explainLocal explains the object that a local id names in a collection.
func (a *API) explainLocal(ctx context.Context, collection, id string) (x explain.Explanation, err error) {
	known, err := a.Inventory.ByLocalID(ctx, collection, id)
	if err != nil {
		return x, err
	}
	if known == "" {
		return x, fault.New(fault.NotFound, "there is no object with the local id %q in the collection %s", id,
			collection)
	}
	return a.explainObject(ctx, known)
}

// explainEvent says why a consumer did or did not get an event, by the consumer's present definition.
func (a *API) explainEvent(ctx context.Context, in *ExplainInput) (x explain.Explanation, err error) {
	subject := in.ID
	if kind := v1.KindOf(subject); kind != v1.KindUnknown { // ids of batches and jobs, and ARKs, say their type
		subject = string(kind) + ":" + subject
	}
	e, err := a.event(ctx, EventInput{Subject: subject, Version: in.Event})
	if err != nil {
		return x, err
	}
	return a.Consumers.Explain(ctx, in.Consumer, e)
}

// kindNames are the names of kinds that events do not know, and short ones.
var kindNames = map[string]string{"componentrun": explain.Run, "run": explain.Run, "researcher": explain.Member,
	"item": explain.Item, "project": explain.Project, "lease": explain.Lease}

// explainTyped explains a thing whose kind is given.
func (a *API) explainTyped(ctx context.Context, kind, id string) (x explain.Explanation, err error) {
	name := kindNames[strings.ToLower(kind)]
	if name == "" {
		s, err := subjectOf(kind + ":" + id)
		if err != nil {
			return x, err
		}
		name = s.Type.String()
	}

	explains := a.explainers(kind)[name]
	if explains == nil {
		return x, fault.New(fault.Invalid, "id: nothing is known of what a %s waits for", name)
	}
	return explains(ctx, id)
}

// explainer explains a thing of one kind by its id.
type explainer func(ctx context.Context, id string) (explain.Explanation, error)

// explainers explain things by their kind; asked is the kind as the caller has written it.
func (a *API) explainers(asked string) map[string]explainer {
	all := map[string]explainer{
		explain.Batch:      a.Queue.ExplainBatch,
		explain.Upload:     a.explainUpload,
		explain.Job:        a.Queue.ExplainJob,
		explain.Operation:  a.Queue.ExplainOperation,
		explain.Collection: a.Queue.ExplainCollection,
		explain.Object:     a.explainObject,
		explain.Version:    a.explainItem(component.KindVersion + ":"),
		explain.Item:       a.explainItem("item:"),
		explain.Consumer:   a.Consumers.ExplainConsumer,
		explain.Project:    a.Research.ExplainProject,
		explain.Episode:    a.inProject(a.explainMedia(research.Episode)),
		explain.Clip:       a.inProject(a.explainMedia(research.Clip)),
		explain.Lease:      a.Research.ExplainLease,
		explain.Member:     a.inProject(a.Research.ExplainResearcher),
	}
	if a.Runs != nil {
		all[explain.Component], all[explain.Run] = a.Runs.Explain, a.Runs.ExplainRun
	}
	if strings.EqualFold(asked, explain.Item) { // ComponentItem:ID, whose id has its kind
		all[explain.Item] = a.explainItem("")
	}
	for _, kind := range []string{explain.Archive, explain.Revision, explain.Task} {
		all[kind] = a.explainRevisions
	}
	return all
}

// explainItem explains items; prefix is what their ids have in front.
func (a *API) explainItem(prefix string) explainer {
	return func(ctx context.Context, id string) (explain.Explanation, error) {
		return a.Components.ExplainItem(ctx, prefix+id, "")
	}
}

// inProject explains what is known by its name in a project: PROJECT/NAME.
func (a *API) inProject(f func(ctx context.Context, project, name string) (explain.Explanation, error)) explainer {
	return func(ctx context.Context, id string) (explain.Explanation, error) {
		project, name, _ := strings.Cut(id, "/")
		return f(ctx, project, name)
	}
}

// explainMedia explains episodes, or clips.
func (a *API) explainMedia(kind research.Kind) func(context.Context, string, string) (explain.Explanation, error) {
	return func(ctx context.Context, project, key string) (explain.Explanation, error) {
		return a.Research.ExplainMedia(ctx, kind, project, key)
	}
}

// explainRevisions explains an archive, a revision or a task.
func (a *API) explainRevisions(ctx context.Context, id string) (explain.Explanation, error) {
	if a.Revisions == nil {
		return explain.Explanation{}, errNoRevisions
	}
	return a.Revisions.Explain(ctx, id)
}

// explainNamed explains a thing by its id alone. Ids of jobs have a form of their own. Others, and names, are looked
// up: a name that several things have is a Conflict that says which.
func (a *API) explainNamed(ctx context.Context, id string) (x explain.Explanation, err error) {
	names := []string{explain.Archive, explain.Component, explain.Consumer, explain.Project}
	switch {
	case v1.KindOf(id) == v1.KindJob:
		return a.Queue.ExplainJob(ctx, id)
	case strings.Contains(id, "/"):
		names = []string{explain.Task, explain.Episode, explain.Clip, explain.Member}
	default: // what the system has given an id has one that nothing else has
		for _, kind := range []string{explain.Batch, explain.Upload, explain.Operation, explain.Run,
			explain.Lease} {
			x, err = a.explainTyped(ctx, kind, id)
			if !unknown(err) {
				return x, err
			}
		}
	}

	var found []string
	for _, kind := range names {
		one, err := a.explainTyped(ctx, kind, id)
		if unknown(err) {
			continue
		}
		if err != nil {
			return x, err
		}
		x, found = one, append(found, kind+":"+id)
	}

	switch len(found) {
	case 0:
		return x, fault.New(fault.NotFound, "id: %q names nothing that is known here; expected the id of a batch, a "+
			"job, an object (an ARK, or a local id with its collection), an upload, an operation, a run or a lease; "+
			"the name of a component, a consumer, an archive or a research project; ARCHIVE/REVISION, "+
			"ARCHIVE/REVISION/TASK, PROJECT/KEY or PROJECT/RESEARCHER; or TYPE:ID, e.g. Collection:maps", id)
	case 1:
		return x, nil
	}
	return x, fault.New(fault.Conflict, "id: several things have this name; ask for one of them: %s",
		strings.Join(found, ", "))
}

// explainUpload explains an upload, and the batch that has it.
func (a *API) explainUpload(ctx context.Context, id string) (x explain.Explanation, err error) {
	part, err := a.Uploads.Explain(ctx, id)
	if err != nil || part.On == "" {
		return explain.Only(part), err
	}

	of, err := a.Queue.ExplainBatch(ctx, part.On)
	if fault.Is(err, fault.NotFound) { // it has ended since
		return explain.Only(part), nil
	}
	x = explain.Only(part)
	x.Chain = append(x.Chain, of.Chain...)
	x.Since, x.Until, x.Do, x.Cut = of.Since, of.Until, of.Do, of.Cut
	return x, err
}

// unknown reports whether an error means that an id names no thing of a kind.
func unknown(err error) bool {
	return fault.Is(err, fault.NotFound) || fault.Is(err, fault.Invalid) || errors.Is(err, errNoRevisions)
}

// explainObject says which job works on an object; if none does, which of its components needs something, and whether
// its files are given out.
func (a *API) explainObject(ctx context.Context, id string) (x explain.Explanation, err error) {
	given, err := ark.Parse(id)
	if err != nil {
		return x, fault.New(fault.Invalid, "id: %w", err)
	}

	o, err := a.Inventory.Object(ctx, given.String())
	if err != nil {
		return x, err
	}

	x, err = a.Queue.ExplainObject(ctx, o.ARK)
	if err != nil {
		return x, err
	}

	x.State = a.stateOf(o)
	if x.On == "" {
		x.Why = fmt.Sprintf("Version %d is preserved; no job works on it.", o.HeadOf)
		lines, err := a.lines(ctx, o.ARK, &x)
		if err != nil {
			return x, err
		}
		x.Add("components", lines)
	}

	x.Chain[0] = x.Link
	x.Add("collection", o.Collection)
	x.Add("title", o.Title)
	return x, nil
}

// stateOf is whether the files of an object are given out.
func (a *API) stateOf(o *inventory.Object) string {
	switch {
	case o.Withdrawal != nil:
		return "withdrawn"
	case o.EmbargoUntil(a.Queue.Now()) != "":
		return "embargoed"
	}
	return "preserved"
}

// lines says where an object stands in the lines of components. One that needs a person is what the object waits for.
func (a *API) lines(ctx context.Context, id string, x *explain.Explanation) (string, error) {
	of, err := a.Components.ExplainItem(ctx, component.KindObject+":"+id, "")
	if fault.Is(err, fault.NotFound) { // the components have not seen it yet
		return "", nil
	}
	if err != nil {
		return "", err
	}

	if of.Waits == explain.Person {
		x.Waits, x.Do = of.Waits, of.Do
		x.Why += " " + of.Why
	}

	var all []string
	for _, f := range of.Facts {
		all = append(all, f.Name+": "+f.Value)
	}
	return strings.Join(all, ", "), nil
}

// wireExplanation is the wire form of an explanation.
func wireExplanation(x explain.Explanation) v1.Explanation {
	out := v1.Explanation{
		ExplainedLink: wireLink(x.Link),
		Chain:         each(x.Chain, wireLink),
		Cut:           x.Cut,
		Since:         timestamp(x.Since),
		Until:         timestamp(x.Until),
		Do:            each(x.Do, func(s explain.Step) v1.ExplainedStep { return v1.ExplainedStep(s) }),
		Facts:         each(x.Facts, func(f explain.Fact) v1.ExplainedFact { return v1.ExplainedFact(f) }),
	}
	if x.Ahead != nil {
		out.Ahead, out.MoreAhead = &x.Ahead.N, x.Ahead.More
		out.Line = wireLine(x.Ahead)
	}
	return out
}

// wireLine is the wire form of a line, nil if who stands in it is not known.
func wireLine(a *explain.Ahead) *v1.ExplainedLine {
	if a.Line == "" {
		return nil
	}
	return &v1.ExplainedLine{Before: string(a.Line), Name: a.Of, Stop: a.Stop,
		First: each(a.First, func(b explain.Before) v1.ExplainedBefore {
			return v1.ExplainedBefore{Kind: b.Kind, ID: b.ID, State: b.State,
				Since: timestamp(b.Since), Has: b.Has}
		})}
}

// wireLink is the wire form of a thing that waits.
func wireLink(l explain.Link) v1.ExplainedLink {
	return v1.ExplainedLink{Kind: l.Kind, ID: l.ID, State: l.State, WaitsFor: string(l.Waits), Why: l.Why}
}
