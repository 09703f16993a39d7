package v1

import (
	"context"
	"net/url"
	"path"
	"strconv"
	"strings"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// Waits are the values of the field waitsFor of an explanation.
var Waits = func() (all []string) {
	for _, w := range explain.Waits {
		all = append(all, string(w))
	}
	return all
}()

// ExplainedLink is a thing, and what it waits for.
type ExplainedLink struct {
	// What it is.
	Kind string `json:"kind" example:"Job"`
	// Its id.
	ID string `json:"id" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001"`
	// Its state.
	State string `json:"state,omitempty" example:"Pending"`
	// What kind of thing it waits for.
	WaitsFor string `json:"waitsFor" example:"limit"`
	// Why, in one or two sentences.
	Why string `json:"why" example:"Downloading a.txt from example.org: 80 of 1,400 bytes, try 4."`
}

// ExplainedStep is something that a person can do.
type ExplainedStep struct {
	// What it is.
	What string `json:"what" example:"Release the job"`
	// The command line that does it. Absent: there is none. Words in capitals are to be replaced.
	Command string `json:"command,omitempty" example:"archivist collection release maps --reason TEXT"`
}

// ExplainedFact is something that operators want to know.
type ExplainedFact struct {
	// What it is.
	Name string `json:"name" example:"execution"`
	// Its value.
	Value string `json:"value" example:"01M7ZBMEYHBB62YP6RY21T1GQ6-00001-2"`
}

// ExplainedLine is the line in which a thing stands.
type ExplainedLine struct {
	// What it is before: a gate, which jobs pass in their order as far as what they need is free;
	// or a lock, which one has while the others wait.
	Before string `json:"before" enum:"gate,lock"`
	// The name of the gate (pending, provisioning or parked), or what the lock is of: an ARK, a
	// local id, or earlier manifests.
	Name string `json:"name" example:"pending"`
	// What keeps the thing from passing, in a few words. Absent: nothing is missing, or it is those
	// before it.
	Stop string `json:"stop,omitempty" example:"queue paused"`
	// The first of those that come before it, in their order, at most 5. How many come before it is
	// `ahead`.
	First []ExplainedBefore `json:"first"`
}

// ExplainedBefore is one that comes before another.
type ExplainedBefore struct {
	// What it is: a job, or a batch whose jobs are not made yet.
	Kind string `json:"kind" example:"Job"`
	// Its id. Absent: it is not in the collections of the caller.
	ID string `json:"id,omitempty" example:"01M7ZBMEYHBB62YP6RY21T1GQ5-00001"`
	// Its state. Absent if the id is.
	State string `json:"state,omitempty" example:"Pending"`
	// Since when it is in that state. Absent if the id is.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:30:04Z"`
	// Whether it has the lock.
	Has bool `json:"has,omitempty"`
}

// Explanation says what a thing waits for, and what can be done about it.
type Explanation struct {
	ExplainedLink
	// What waits for what, from the thing that was asked for to the root, where something can be done.
	Chain []ExplainedLink `json:"chain"`
	// Whether the chain is longer than what is shown.
	Cut bool `json:"cut,omitempty"`
	// Since when the root waits.
	Since string `json:"since,omitempty" format:"date-time" example:"2026-11-22T09:30:04Z"`
	// Until when the root waits, at most.
	Until string `json:"until,omitempty" format:"date-time" example:"2026-11-22T09:35:04Z"`
	// How many come before it. Absent: it is in no line.
	Ahead *int `json:"ahead,omitempty" example:"12"`
	// Whether there are more than that.
	MoreAhead bool `json:"moreAhead,omitempty"`
	// The line that it stands in, of a job that waits. Absent: it is in no line, or who else is in
	// it is not known.
	Line *ExplainedLine `json:"line,omitempty"`
	// What a person can do about the root, most likely first.
	Do []ExplainedStep `json:"do"`
	// What operators want to know of the thing.
	Facts []ExplainedFact `json:"facts"`
}

// Root is what is waited for in the end.
func (x *Explanation) Root() ExplainedLink {
	if len(x.Chain) == 0 {
		return x.ExplainedLink
	}
	return x.Chain[len(x.Chain)-1]
}

// ExplainOf says more precisely what is to be explained. At most one of Component, Consumer with Event, and Clip is
// given.
type ExplainOf struct {
	Collection string // the id is a local id in this collection
	Component  string // the id is an item: only what this component waits for
	Consumer   string // the id is the subject of an event: what became of the event with this consumer
	Event      int64  // the number of the event
	Clip       string // the id is an episode: the pair of it and this clip
}

// Explain says what a thing waits for. The id is that of anything; TYPE:ID, as events name their subjects, tells two
// things with one name apart.
func (c *Client) Explain(ctx context.Context, id string) (Explanation, error) {
	return c.ExplainWith(ctx, id, ExplainOf{})
}

// ExplainWith says more precisely what is to be explained.
func (c *Client) ExplainWith(ctx context.Context, id string, of ExplainOf) (Explanation, error) {
	if path.Clean("/"+id) != "/"+id || id == "" {
		return Explanation{}, fault.New(fault.Invalid, "id: %q is not the id of anything", id)
	}

	event := ""
	if of.Event > 0 {
		event = strconv.FormatInt(of.Event, 10)
	}
	parts := strings.Split(id, "/")
	for i := range parts {
		parts[i] = url.PathEscape(parts[i])
	}
	return get[Explanation](ctx, c, "/v1/explain/"+strings.Join(parts, "/")+query("collection", of.Collection,
		"component", of.Component, "consumer", of.Consumer, "event", event, "clip", of.Clip))
}
