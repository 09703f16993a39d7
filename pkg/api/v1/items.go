package v1

import "context"

// ItemMark is the newest event of a name that counts.
type ItemMark struct {
	// The name: that of a component's event, or of a person's, or the type of an event of the object, version or
	// batch that the item follows.
	Name string `json:"name" example:"Metadata_checked"`
	// The outcome.
	Outcome string `json:"outcome" enum:"success,failure" example:"success"`
	// When it was recorded.
	Time string `json:"time" format:"date-time" example:"2026-11-22T09:31:10Z"`
	// The id of the event.
	Event string `json:"event" example:"01M7ZBMEYHBB62YP6RY21T1GQ9.0"`
	// The number of the event among those of the item, or of what it follows.
	Number int64 `json:"number" example:"4"`
	// The number of failures in a row, with this one.
	Failures int `json:"failures" example:"2"`
}

// ItemLine is where an item is in the line of a component.
type ItemLine struct {
	// The component.
	Component string `json:"component" example:"count-words"`
	// Where the item is.
	Class string `json:"class" enum:"ready,later,running,failed,done" example:"running"`
	// Of a running item: the id of the run.
	Run string `json:"run,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ8"`
	// Of a running item: when the lease on it ends.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-22T09:32:00Z"`
	// Why the component works on it later, in its words.
	Waits string `json:"waits,omitempty" example:"two files have not arrived"`
}

// Item is what components work on: an object, a version, a batch, or a custom item.
type Item struct {
	// The id: object:ARK, version:ARK/vN, batch:ID or item:ID.
	ID string `json:"id" example:"item:delivery-17"`
	// The types of the item, sorted.
	Types []string `json:"types" example:"[\"delivery\"]"`
	// What it belongs to, the outermost first.
	Parents []EventRef `json:"parents,omitempty"`
	// All by which it is known.
	Identifiers []string `json:"identifiers,omitempty" example:"[\"item:delivery-17\"]"`
	// From 1 to 9. Components work on items of priority 9 first.
	Priority int `json:"priority" example:"5"`
	// The time of its first event.
	First string `json:"first,omitempty" format:"date-time" example:"2026-11-22T09:29:00Z"`
	// The number of its own events.
	Number int64 `json:"number" example:"4"`
	// Whether the work on it is stopped by a person.
	Stopped bool `json:"stopped,omitempty"`
	// Whether it was forgotten.
	Forgotten bool `json:"forgotten,omitempty"`
	// The newest event of each name that counts, the oldest first.
	Events []ItemMark `json:"events"`
	// Where it is in the lines of the components.
	Lines []ItemLine `json:"lines"`
}

// ItemShape is what a custom item is.
type ItemShape struct {
	// The types: letters, digits and . _ : -, beginning with a letter.
	Types []string `json:"types,omitempty" maxItems:"20" example:"[\"delivery\"]"`
	// What it belongs to: collections, batches, objects, versions and items. The log of its collection has its events.
	Parents []EventRef `json:"parents,omitempty" maxItems:"20"`
	// Other ids by which it is known.
	Identifiers []string `json:"identifiers,omitempty" maxItems:"20" example:"[\"B400022028241-RT1\"]"`
}

// ItemRequest is a request to create a custom item.
type ItemRequest struct {
	// The id: item: and 1 to 200 letters, digits and . _ : / @ + = -.
	ID string `json:"id" maxLength:"400" example:"item:delivery-17"`
	ItemShape
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"It arrived today."`
}

// ItemAction is a request to act on an item.
type ItemAction struct {
	// event: an event is recorded; if it is that of a component, the component's work counts as done. revoke: events
	// count no longer. restart: all events count no longer, from the first failure on or from the event `from`.
	// stop: no component begins work on it. prioritize: it gets another priority. release: the lease of a component
	// on it ends; what the worker still does is not recorded. change: a custom item gets other types, parents and
	// identifiers. forget: a custom item is removed from all lines; its history stays.
	Action string `json:"action" enum:"event,revoke,restart,stop,prioritize,release,change,forget" example:"restart"`
	// The reason. It is kept in the events.
	Reason string `json:"reason" minLength:"1" maxLength:"500" example:"The metadata is corrected."`
	// For event: its name, of letters, digits, hyphens and underscores.
	Event string `json:"event,omitempty" maxLength:"50" example:"Metadata_checked"`
	// For event: the outcome. By default success.
	Outcome string `json:"outcome,omitempty" enum:"success,failure" example:"success"`
	// For revoke: the names of the events.
	Events []string `json:"events,omitempty" maxItems:"100" example:"[\"Metadata_checked\"]"`
	// For restart: the name of the first event that counts no longer. By default the first failure.
	From string `json:"from,omitempty" maxLength:"50" example:"Structure_checked"`
	// For prioritize: from 1 to 9. Components work on items of priority 9 first.
	Priority int `json:"priority,omitempty" minimum:"1" maximum:"9" example:"9"`
	// For release: the name of the component.
	Component string `json:"component,omitempty" maxLength:"50" example:"count-words"`
	// For change: what the item is now.
	Shape *ItemShape `json:"shape,omitempty"`
}

// ItemOutcome is what an action on an item did.
type ItemOutcome struct {
	// The action.
	Action string `json:"action" example:"restart"`
	// Whether it changed something. It did not if the item was already as the action wants it.
	Changed bool `json:"changed"`
	// What was done, in a sentence.
	Summary string `json:"summary" example:"restarted: Metadata_checked of item:delivery-17 counts no longer"`
	// The item after it.
	Item Item `json:"item"`
}

// ItemEvent is an event in the history of an item.
type ItemEvent struct {
	LogEvent
	// The name by which components know it, e.g. that of a component's event.
	Name string `json:"name" example:"Metadata_checked"`
	// Whether it is one of the item's own, and not of what the item follows.
	Own bool `json:"own"`
	// Whether it counts no longer.
	Revoked bool `json:"revoked"`
}

// ItemFilter selects items.
type ItemFilter struct {
	Kind  string // object, version, batch or item
	Type  string
	Limit int
}

// AllItems lists items, in no order.
func (c *Client) AllItems(ctx context.Context, f ItemFilter) ([]Item, error) {
	return list[Item](ctx, c, "/v1/items", f.Limit, "kind", f.Kind, "type", f.Type)
}

// Item returns one item.
func (c *Client) Item(ctx context.Context, id string) (Item, error) {
	return get[Item](ctx, c, "/v1/item"+query("id", id))
}

// CreateItem creates a custom item. The same request again changes nothing.
func (c *Client) CreateItem(ctx context.Context, in ItemRequest, key string) (ItemOutcome, error) {
	return post[ItemOutcome](ctx, c, "/v1/items", in, key)
}

// ActOnItem acts on an item. A repeated request with the same key does nothing more.
func (c *Client) ActOnItem(ctx context.Context, id string, in ItemAction,
	key string) (ItemOutcome, error) {
	return post[ItemOutcome](ctx, c, "/v1/item/actions"+query("id", id), in, key)
}

// ItemHistory lists what happened to an item and to what it follows, oldest first.
func (c *Client) ItemHistory(ctx context.Context, id string, limit int) ([]ItemEvent, error) {
	return list[ItemEvent](ctx, c, "/v1/item/history", limit, "id", id)
}
