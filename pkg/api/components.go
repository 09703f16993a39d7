package api

import (
	"context"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"golang.org/x/sync/errgroup"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
)

// ComponentInput names a component.
type ComponentInput struct {
	Name string `path:"name" maxLength:"100"`
}

// ComponentCursor names a component and a page of one of its lists.
type ComponentCursor struct {
	ComponentInput
	Cursor string `query:"cursor" maxLength:"4000"`
}

// LineInput selects items of a component's line.
type LineInput struct {
	ComponentCursor
	Class string `query:"class" enum:"ready,later,running,failed" default:"ready"`
}

// ComponentItemInput names a component and an item.
type ComponentItemInput struct {
	ComponentInput
	Item string `query:"item" required:"true" maxLength:"400"`
}

// PutComponent is a request to create or replace a component's definition, or to try one.
type PutComponent struct {
	ComponentCursor
	Acting
	Reason string `query:"reason" maxLength:"500"`
	DryRun bool   `query:"dryRun"`
	Body   v1.ComponentDefinition
}

// ComponentAction is a request to act on a component.
type ComponentAction struct {
	ComponentInput
	Acting
	Body v1.ComponentAction
}

// components registers the routes of components, what is in their lines, and why.
func (a *API) components(h huma.API) {
	const path = "/v1/components"
	get(a, h, path, "listComponents", "List the components", a.listComponents)
	get(a, h, path+"/{name}", "getComponent", "Get a component",
		func(ctx context.Context, in *ComponentInput) (v1.Component, error) {
			return a.component(ctx, in.Name)
		})

	get(a, h, path+"/{name}/events", "listComponentEvents", "List the events of a component",
		func(ctx context.Context, in *ComponentCursor) (v1.List[v1.Event], error) {
			return a.events(event.Component)(ctx, &IDCursor{ID: in.Name, Cursor: in.Cursor})
		})

	get(a, h, path+"/{name}/line", "listLine", "List the items of a component", a.line)
	get(a, h, "/v1/component-graph", "getComponentGraph", "Get the assembly line as a graph",
		a.componentGraph)
	put(a, h, path+"/{name}", "putComponent", "Create or change a component", a.putComponent)
	post(a, h, path+"/{name}/actions", "actOnComponent", "Act on a component", a.actOnComponent)
}

// componentsAtOnce is how many components are counted at once: each costs some calls of the table.
const componentsAtOnce = 8

// listComponents lists all components with the counts of their items. There are few enough for one
// page. The order is that of the store, whichever is counted first.
func (a *API) listComponents(ctx context.Context,
	_ *struct{}) (out v1.List[v1.Component], err error) {
	all, err := a.Components.List(ctx)
	if err != nil {
		return out, err
	}

	out.Items = make([]v1.Component, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(componentsAtOnce)
	for i, c := range all {
		group.Go(func() (err error) {
			out.Items[i], err = a.counted(ctx, c)
			return err
		})
	}
	return out, group.Wait()
}

// component is a component with its counts, a NotFound if there is none of that name.
func (a *API) component(ctx context.Context, name string) (v1.Component, error) {
	c, err := a.Components.Get(ctx, name)
	if err != nil {
		return v1.Component{}, err
	}

	all, err := a.Components.List(ctx)
	if err != nil {
		return v1.Component{}, err
	}

	out, err := a.counted(ctx, c)
	out.Warnings = component.Doubts(c.Definition, each(all, definitionOf))
	return out, err
}

func definitionOf(c component.Component) component.Definition { return c.Definition }

// counted is the wire form of a component, with the counts of its items. The counts are read after the
// definition. Filling is how far the lines are made anew after a change of the definition; it is nil
// when that is done.
func (a *API) counted(ctx context.Context, c component.Component) (v1.Component, error) {
	n, err := a.Components.CountsOf(ctx, c)
	if err != nil {
		return v1.Component{}, err
	}

	out := v1.Component{
		ComponentDefinition: v1.ComponentDefinition(c.Definition),
		Created:             timestamp(c.Created),
		Changed:             timestamp(c.Changed),
		OldestReady:         timestamp(n.Oldest),
		Counts: v1.ComponentCounts{
			Ready:   n.Ready,
			Later:   n.Later,
			Running: n.Running,
			Failed:  n.Failed,
			Done:    n.Done,
		},
	}

	if f := c.Backfill; f != nil {
		out.Filling = &v1.ComponentFilling{
			Parts:  f.Shard,
			Of:     f.Of,
			Items:  f.Items,
			Failed: f.Failed,
			Since:  timestamp(f.Since),
		}
	}
	return out, nil
}

// tried is how many items a dry run lists in one response, at most.
const tried = 100

// putComponent creates or replaces a definition, or only tries it. A dry run needs no name in the
// events, so it does not ask who calls. The name in the body may be left out; if it is there, it has to
// be that of the path.
func (a *API) putComponent(ctx context.Context,
	in *PutComponent) (out v1.ComponentApplied, err error) {
	out.DryRun = in.DryRun
	if in.Body.Name != "" && in.Body.Name != in.Name {
		return out, fault.New(fault.Invalid, "name: %q; the path names %q", in.Body.Name, in.Name)
	}

	in.Body.Name = in.Name
	d := component.Definition(in.Body)
	if in.DryRun {
		out.Ready, out.Cursor, err = a.Components.DryRun(ctx, d, in.Cursor, tried)
		return out, err
	}

	by, err := in.by(in.Reason)
	if err != nil {
		return out, err
	}

	if _, err := a.Components.Apply(ctx, d, by); err != nil {
		return out, err
	}

	c, err := a.component(ctx, in.Name)
	out.Component = &c
	return out, err
}

// actOnComponent acts on a component, and answers with the component after it, unless it is deleted.
func (a *API) actOnComponent(ctx context.Context,
	in *ComponentAction) (out v1.ComponentOutcome, err error) {
	if err := in.mayDo(in.Body.Action); err != nil {
		return out, err
	}

	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	out.Action = in.Body.Action
	out.Summary, err = a.doToComponent(ctx, in.Name, in.Body.Action, by)
	if err != nil || out.Action == "delete" {
		return out, err
	}

	c, err := a.component(ctx, in.Name)
	out.Component = &c
	return out, err
}

// doToComponent does an action, and says in a sentence what was done. The sentence is for people, and
// is also returned beside an error, which then counts alone. What is not one of the three actions is
// "interrupt": the schema allows no other.
func (a *API) doToComponent(ctx context.Context, name, action string,
	by component.By) (string, error) {
	switch action {
	case "pause":
		return name + " is paused: it begins no more runs; its items wait",
			a.Components.Pause(ctx, name, by)
	case "resume":
		return name + " goes on", a.Components.Resume(ctx, name, by)
	case "delete":
		return name + " is deleted; the events that it recorded stay, and count",
			a.Components.Delete(ctx, name, by)
	}

	runs, err := a.Runs.Interrupt(ctx, name, by)
	return "interrupted: " + strings.Join(runs, ", ") +
		"; what their workers still do is not recorded", err
}

// line lists the items of a class in a component's line, the first to be worked on first, 100 to a
// page.
func (a *API) line(ctx context.Context, in *LineInput) (out v1.List[v1.LineItem], err error) {
	page, next, err := a.Components.Line(ctx, in.Name, in.Class, in.Cursor, 100)
	out.Items, out.Cursor = []v1.LineItem{}, next
	for _, p := range page {
		out.Items = append(out.Items, v1.LineItem{
			Item:     p.Item,
			Class:    p.Class,
			Priority: p.Priority,
			First:    timestamp(p.First),
			From:     timestamp(p.From),
			Until:    timestamp(p.Until),
		})
	}
	return out, err
}

// componentGraph draws all components by the events that they wait for and record, as text in two
// languages.
func (a *API) componentGraph(ctx context.Context, _ *struct{}) (v1.ComponentGraph, error) {
	all, err := a.Components.List(ctx)
	g := component.Graph(each(all, definitionOf))
	nodes, links := wireGraph(g)
	return v1.ComponentGraph{DOT: g.DOT(), Mermaid: g.Mermaid(), Nodes: nodes, Links: links}, err
}
