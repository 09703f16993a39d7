package v1

import (
	"context"

	"archivist/pkg/kernel/definition"
)

// Parts of a definition, as package definition has them.
type (
	// ComponentItems selects items: exactly one field is set.
	ComponentItems = definition.ComponentItems
	// ComponentTimeout ends work that takes too long.
	ComponentTimeout = definition.ComponentTimeout
	// ComponentTask is a container of Amazon ECS on Fargate.
	ComponentTask = definition.ComponentTask
	// ComponentRunnable is what does the work. Exactly one field is set.
	ComponentRunnable = definition.ComponentRunnable
	// ComponentRetry says how often an item that failed is tried again.
	ComponentRetry = definition.ComponentRetry
)

// ComponentDefinition is a component as it is configured. A field that is left out has its default. Empty
// lists are no conditions; all that are not empty must hold.
type ComponentDefinition struct {
	// The name: lower-case letters, digits and hyphens. In a request it may be left out: the path has it.
	Name string `json:"name,omitempty" example:"count-words"`
	// The version of the definition. Each change raises it. It is ignored in requests.
	Version int `json:"version,omitempty" example:"1"`
	// What the component does.
	Description string `json:"description,omitempty" maxLength:"1000" example:"Counts the words of each delivery."`
	// The name of the event that it records. It must be in future or in old: otherwise the component would work on
	// the same items for ever.
	Event string `json:"event" maxLength:"50" example:"Words_counted"`
	// The item has these events, and the newest of each has the outcome success.
	PastSuccess []string `json:"pastSuccess,omitempty" maxItems:"20" example:"[\"Received\"]"`
	// The item has these events, and the newest of each has the outcome failure.
	PastFailure []string `json:"pastFailure,omitempty" maxItems:"20" example:"[\"Metadata_checked\"]"`
	// The item does not have these events, with any outcome.
	Future []string `json:"future,omitempty" maxItems:"20" example:"[\"Words_counted\"]"`
	// The item does not have these events, or its content was changed by another since.
	Old []string `json:"old,omitempty" maxItems:"20" example:"[\"Words_counted\"]"`
	// The item has all of these types.
	Types []string `json:"types,omitempty" maxItems:"20" example:"[\"delivery\"]"`
	// Only these items.
	Items *ComponentItems `json:"items,omitempty"`
	// The number of items that a run works on, at most: to 100,000. By default 1,000.
	MaxItems int `json:"maxItems,omitempty" minimum:"0" example:"1000"`
	// The number of items that a run works on at once: 1 to 40. By default 10.
	Concurrency int `json:"concurrency,omitempty" minimum:"0" example:"10"`
	// The number of runs at once: 1 to 10. By default 1.
	Instances int `json:"instances,omitempty" minimum:"0" example:"1"`
	// When the work on an item, and a run, are given up.
	Timeout *ComponentTimeout `json:"timeout,omitempty"`
	// When it runs: `rate(5 minutes)`, or a cron expression of five fields. Absent: on request, or with wake.
	Schedule string `json:"schedule,omitempty" maxLength:"100" example:"rate(5 minutes)"`
	// The IANA time zone of a cron expression. By default UTC.
	TimeZone string `json:"timeZone,omitempty" maxLength:"100" example:"Europe/Copenhagen"`
	// Whether it runs as soon as an item is ready.
	Wake bool `json:"wake,omitempty"`
	// What does the work.
	Runnable ComponentRunnable `json:"runnable"`
	// How often an item that failed is tried again. Absent: a person, or a change, must come first.
	Retry *ComponentRetry `json:"retry,omitempty"`
	// So many days after its own newest event, whatever the outcome, the component works on the item again. Only with
	// its event in old. Absent: it does not.
	EveryDays int `json:"everyDays,omitempty" minimum:"0" example:"90"`
	// The number of findings that a report keeps: 1 to 1,000. By default 100.
	MaxResults int `json:"maxResults,omitempty" minimum:"0" example:"100"`
	// An item that is ready because of a longer chain of events is not worked on: 1 to 30. By default 20.
	// -1: it is; only components that ship, and change no content, have it.
	MaxDepth int `json:"maxDepth,omitempty" minimum:"-1" example:"20"`
	// Whether it starts paused.
	Paused bool `json:"paused,omitempty"`
}

// ComponentCounts are how many items are in each class of a component's line.
type ComponentCounts struct {
	// Items that it can work on now.
	Ready int64 `json:"ready" example:"12"`
	// Items that it can work on later: it asked for that, or a retry waits.
	Later int64 `json:"later" example:"0"`
	// Items that it is working on.
	Running int64 `json:"running" example:"10"`
	// Items of which its newest event is a failure.
	Failed int64 `json:"failed" example:"1"`
	// Items of which its newest event is a success.
	Done int64 `json:"done" example:"177"`
}

// ComponentFilling is how far a back-fill is, which decides again for all items whether they are ready.
type ComponentFilling struct {
	// The number of parts of the list of items that are done.
	Parts int `json:"parts" example:"3"`
	// The number of all parts.
	Of int `json:"of" example:"16"`
	// The number of items that were looked at.
	Items int64 `json:"items" example:"18750"`
	// The number of items whose rows are damaged.
	Failed int64 `json:"failed" example:"0"`
	// When it began.
	Since string `json:"since" format:"date-time" example:"2026-11-22T09:30:00Z"`
}

// Component is the current state of a component.
type Component struct {
	ComponentDefinition
	// When the definition was made.
	Created string `json:"created" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// When the definition, or whether it is paused, was changed last.
	Changed string `json:"changed" format:"date-time" example:"2026-11-22T09:30:00Z"`
	// Its items.
	Counts ComponentCounts `json:"counts"`
	// The time of the first event of the oldest item that is ready.
	OldestReady string `json:"oldestReady,omitempty" format:"date-time" example:"2026-11-22T09:29:00Z"`
	// What it asks for in vain, as far as is known: names of events that may be misspelt, and what no event has that
	// its filter asks for.
	Warnings []string `json:"warnings,omitempty" example:"[\"no component records Cheked; did you mean Checked?\"]"`
	// Present while the counts are not yet those of the present definition.
	Filling *ComponentFilling `json:"filling,omitempty"`
}

// ComponentApplied is the answer to a request to apply a definition.
type ComponentApplied struct {
	// Whether it was a dry run.
	DryRun bool `json:"dryRun"`
	// The component. Absent for a dry run.
	Component *Component `json:"component,omitempty"`
	// For a dry run: items that the component could work on now.
	Ready []string `json:"ready,omitempty" example:"[\"item:delivery-17\"]"`
	// For a dry run: present if there are more items to look at.
	Cursor string `json:"cursor,omitempty"`
}

// ComponentAction is a request to act on a component.
type ComponentAction struct {
	// pause: it begins no more runs. resume: the pause ends. interrupt: its runs end now; what their workers still do
	// is not recorded. delete: it is removed with its line; the events that it recorded stay.
	Action string `json:"action" enum:"pause,resume,interrupt,delete" example:"pause"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The scanner is being repaired."`
}

// ComponentOutcome is what an action on a component did.
type ComponentOutcome struct {
	// The action.
	Action string `json:"action" example:"pause"`
	// What was done, in a sentence.
	Summary string `json:"summary" example:"count-words is paused: its items wait"`
	// The component after it. Absent if it was deleted.
	Component *Component `json:"component,omitempty"`
}

// LineItem is an item in the line of a component.
type LineItem struct {
	// The id of the item.
	Item string `json:"item" example:"item:delivery-17"`
	// Where it is in the line.
	Class string `json:"class" enum:"ready,later,running,failed" example:"ready"`
	// Of a ready item: 9 is first.
	Priority int `json:"priority,omitempty" example:"5"`
	// Of a ready item: the time of its first event. The oldest are first.
	First string `json:"first,omitempty" format:"date-time" example:"2026-11-22T09:29:00Z"`
	// Of a later item: when it is ready.
	From string `json:"from,omitempty" format:"date-time" example:"2026-11-22T09:35:00Z"`
	// Of a running item: when the lease on it ends.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-22T09:32:00Z"`
}

// ComponentGraph is the assembly line, as the definitions of all components make it.
type ComponentGraph struct {
	// In the language of Graphviz.
	DOT string `json:"dot" example:"digraph components {}"`
	// A flowchart of Mermaid.
	Mermaid string `json:"mermaid" example:"flowchart LR"`
	// The components by their names, and round the events that no component records.
	Nodes []GraphNode `json:"nodes"`
	// From what records an event to the components whose conditions name it.
	Links []GraphLink `json:"links"`
}

// Components lists the components by name.
func (c *Client) Components(ctx context.Context) ([]Component, error) {
	return list[Component](ctx, c, "/v1/components", 0)
}

// Component returns one component.
func (c *Client) Component(ctx context.Context, name string) (Component, error) {
	return get[Component](ctx, c, at("components", name))
}

// ApplyComponent creates or replaces a component's definition.
func (c *Client) ApplyComponent(ctx context.Context, d ComponentDefinition, reason,
	key string) (Component, error) {
	out, err := put[ComponentApplied](ctx, c, at("components", d.Name)+
		query("reason", reason), d, key)
	if err != nil || out.Component == nil {
		return Component{}, err
	}
	return *out.Component, nil
}

// TryComponent returns a page of the items that a component with this definition could work on now. It
// changes nothing.
func (c *Client) TryComponent(ctx context.Context, d ComponentDefinition,
	cursor string) (ComponentApplied, error) {
	return put[ComponentApplied](ctx, c, at("components", d.Name)+
		query("dryRun", "true", "cursor", cursor), d)
}

// ActOnComponent acts on a component. A repeated request with the same key does nothing more.
func (c *Client) ActOnComponent(ctx context.Context, name string, in ComponentAction,
	key string) (ComponentOutcome, error) {
	return post[ComponentOutcome](ctx, c, at("components", name, "actions"), in, key)
}

// ComponentEvents lists the changes of a component by persons, oldest first.
func (c *Client) ComponentEvents(ctx context.Context, name string) ([]Event, error) {
	return list[Event](ctx, c, at("components", name, "events"), 0)
}

// Line lists the items of a class in a component's line, the first to be worked on first.
func (c *Client) Line(ctx context.Context, name, class string, limit int) ([]LineItem, error) {
	return list[LineItem](ctx, c, at("components", name, "line"), limit, "class", class)
}

// ComponentGraph returns the assembly line of all components.
func (c *Client) ComponentGraph(ctx context.Context) (ComponentGraph, error) {
	return get[ComponentGraph](ctx, c, "/v1/component-graph")
}
