package api

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/fault"
)

// ConsumerInput names a consumer.
type ConsumerInput struct {
	Name string `path:"name" maxLength:"100"`
}

// ConsumerCursor names a consumer and a page of one of its lists.
type ConsumerCursor struct {
	ConsumerInput
	Cursor string `query:"cursor"`
}

// ParkedInput selects parked events of a consumer.
type ParkedInput struct {
	ConsumerCursor
	Partition string `query:"partition" maxLength:"200"`
}

// PutConsumer is a request to create or replace a consumer's definition.
type PutConsumer struct {
	ConsumerInput
	Acting
	Reason string `query:"reason" maxLength:"500"`
	Body   v1.ConsumerDefinition
}

// ConsumerAction is a request to act on a consumer.
type ConsumerAction struct {
	ConsumerInput
	Acting
	Body v1.ConsumerAction
}

// FilterTrial is a request to try a filter.
type FilterTrial struct {
	Acting
	Body v1.FilterTrial
}

// consumers registers the routes of consumers: their definitions and states, what they have parked, and
// the trial of a filter.
func (a *API) consumers(h huma.API) {
	const path = "/v1/consumers"
	get(a, h, path, "listConsumers", "List the consumers", a.listConsumers)
	get(a, h, path+"/{name}", "getConsumer", "Get a consumer",
		func(ctx context.Context, in *ConsumerInput) (v1.Consumer, error) {
			return a.consumer(ctx, in.Name)
		})

	get(a, h, path+"/{name}/parked", "listParked", "List the parked events of a consumer", a.parked)
	get(a, h, path+"/{name}/events", "listConsumerEvents", "List the events of a consumer",
		func(ctx context.Context, in *ConsumerCursor) (v1.List[v1.Event], error) {
			return a.events(event.Consumer)(ctx, &IDCursor{ID: in.Name, Cursor: in.Cursor})
		})

	put(a, h, path+"/{name}", "putConsumer", "Create or change a consumer", a.putConsumer)
	post(a, h, path+"/{name}/actions", "actOnConsumer", "Act on a consumer", a.actOnConsumer)
	post(a, h, "/v1/filters", "tryFilter", "Try a filter on the past log", a.tryFilter)
	get(a, h, "/v1/filters", "getFilterWords", "Get the words of filters", a.filterWords)
}

// listConsumers lists all consumers with what was last counted of them; there are few enough for one page.
func (a *API) listConsumers(ctx context.Context, _ *struct{}) (out v1.List[v1.Consumer], err error) {
	all, err := a.Consumers.Counted(ctx)
	if err != nil {
		return out, err
	}

	out.Items = []v1.Consumer{}
	for _, st := range all {
		shown, err := wireConsumer(st)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, shown)
	}
	return out, nil
}

// consumer is a consumer with its state, a NotFound if there is none of that name.
func (a *API) consumer(ctx context.Context, name string) (v1.Consumer, error) {
	st, err := a.Consumers.Show(ctx, name)
	if err != nil {
		return v1.Consumer{}, err
	}
	return wireConsumer(st)
}

// wireConsumer is the wire form of a consumer with its state. A partition has a problem while its
// cursor has stopped at an event.
func wireConsumer(st consumer.Status) (v1.Consumer, error) {
	out := v1.Consumer{
		ConsumerDefinition: v1.ConsumerDefinition(st.Definition),
		Created:            timestamp(st.Created),
		Changed:            timestamp(st.Changed),
		Counted:            timestamp(st.Counted),
		Behind:             st.Behind,
		AtLeast:            st.AtLeast,
		LagSeconds:         st.LagSeconds,
		LagSince:           timestamp(st.Since),
		Parked:             st.Parked,
		Waiting:            st.Waiting,
		Stopped:            st.Stopped,
		NextRun:            timestamp(st.NextRun),
		Rebuild:            st.Rebuild,
		Resets:             st.Resets,
		Partitions:         []v1.ConsumerPartition{},
	}

	if f, err := filter.Compile(st.Definition.Filter); err != nil {
		out.Broken = true
		out.Warnings = append(out.Warnings, "filter: "+err.Error()+
			"; nothing is known of what it has to handle. Apply a corrected definition")
	} else {
		for _, never := range f.Never() {
			out.Warnings = append(out.Warnings, "filter: "+never)
		}
	}

	for _, p := range st.Places {
		place := v1.ConsumerPartition{
			Partition:  p.Partition,
			Seq:        p.Seq,
			Head:       p.Head,
			LagSeconds: p.LagSeconds,
			LagSince:   timestamp(p.Since),
			Parked:     p.Parked,
			Waiting:    p.Waiting,
			Redrives:   p.Redrives,
		}

		if p.Stop != nil {
			place.Problem, place.ProblemSeq = p.Stop.Reason, p.Stop.Seq
		}

		out.Partitions = append(out.Partitions, place)
	}
	return out, nil
}

// putConsumer creates or replaces a definition. The name in the body may be left out; if it is there,
// it has to be that of the path. The errors are those of consumer.Store.Apply.
func (a *API) putConsumer(ctx context.Context, in *PutConsumer) (out v1.Consumer, err error) {
	by, err := in.by(in.Reason)
	if err != nil {
		return out, err
	}

	if in.Body.Name != "" && in.Body.Name != in.Name {
		return out, fault.New(fault.Invalid, "name: %q; the path names %q", in.Body.Name, in.Name)
	}

	in.Body.Name = in.Name
	if _, err := a.Consumers.Apply(ctx, consumer.Definition(in.Body), by); err != nil {
		return out, err
	}
	return a.consumer(ctx, in.Name)
}

// actOnConsumer acts on a consumer, and answers with the consumer after it, unless it is deleted.
func (a *API) actOnConsumer(ctx context.Context,
	in *ConsumerAction) (out v1.ConsumerOutcome, err error) {
	if err := in.mayDo(in.Body.Action); err != nil {
		return out, err
	}

	by, err := in.by(in.Body.Reason)
	if err != nil {
		return out, err
	}

	if err := only(in.Body, in.Body.Action, consumerFields[in.Body.Action]); err != nil {
		return out, err
	}

	out.Action = in.Body.Action
	out.Summary, err = a.doToConsumer(ctx, in.Name, in.Body, by)
	if err != nil || in.Body.Action == "delete" {
		return out, err
	}

	c, err := a.consumer(ctx, in.Name)
	out.Consumer = &c
	return out, err
}

// consumerFields are the fields that each action on a consumer has beside the reason.
var consumerFields = map[string][]string{
	"skip":    {"partition", "seq"},
	"reset":   {"partition", "to"},
	"redrive": {"all", "event", "filter"},
	"discard": {"all", "event", "filter"},
	"delete":  {"discard"},
}

// doToConsumer does an action, and says in a sentence what was done. The sentence is also returned
// beside an error, which then counts alone. The schema has refused other actions.
func (a *API) doToConsumer(ctx context.Context, name string, b v1.ConsumerAction,
	by consumer.By) (string, error) {
	s := a.Consumers
	switch b.Action {
	case "pause":
		return name + " is paused: its events wait", s.Pause(ctx, name, by)
	case "resume":
		return name + " goes on from where it was, within a minute or two", s.Resume(ctx, name, by)
	case "run":
		return name + " runs within a minute", s.RunNow(ctx, name, by)
	case "skip":
		if b.Partition == "" || b.Seq == 0 {
			return "", fault.New(fault.Invalid,
				"skip needs partition, and seq: the number of the last event to pass")
		}
		return fmt.Sprintf("%s has passed the events of %s up to %d", name, b.Partition, b.Seq),
			s.Skip(ctx, name, b.Partition, b.Seq, by)
	case "reset":
		return fmt.Sprintf("%s goes on at %s in %s", name, b.To, cmp.Or(b.Partition, "every partition")),
			s.Reset(ctx, name, b.Partition, b.To, by)
	case "redrive":
		n, err := s.Redrive(ctx, name, chosen(b), by)
		return ordered(name, "handled again", n), err
	case "discard":
		n, err := s.Discard(ctx, name, chosen(b), by)
		return ordered(name, "given up", n), err
	case "delete":
		return name + " is deleted; its events are kept", s.Delete(ctx, name, b.Discard, by)
	}
	return "", fmt.Errorf("api: a consumer has no action %q", b.Action)
}

// ordered says what becomes of parked events in n partitions.
func ordered(name, what string, n int) string {
	switch n {
	case 0:
		return "no events of " + name + " are parked"
	case 1:
		return fmt.Sprintf("parked events of %s are %s, within a minute or two, in one partition",
			name, what)
	}
	return fmt.Sprintf("parked events of %s are %s, within a minute or two, in %d partitions", name,
		what, n)
}

// chosen is what of the parked events a request selects.
func chosen(b v1.ConsumerAction) consumer.Selection {
	return consumer.Selection{All: b.All, Event: b.Event, Filter: b.Filter}
}

// only refuses fields of a request that its action does not have: what they ask for would not be done.
// A field counts as given if it is not empty. The error is an Invalid that names the first of the fields.
func only(b any, action string, fields []string) error {
	given := reflect.ValueOf(b)
	for _, f := range reflect.VisibleFields(given.Type()) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		allowed := name == "action" || name == "reason" || slices.Contains(fields, name)
		value := given.FieldByIndex(f.Index)
		empty := value.IsZero() || value.Kind() == reflect.Slice && value.Len() == 0
		if !allowed && !empty {
			return fault.New(fault.Invalid, "%s: %s has no such field; it has: %s", name, action,
				strings.Join(append([]string{"reason"}, fields...), ", "))
		}
	}
	return nil
}

// parked lists the parked events of a consumer, by partition: of one, or of all that have some. A
// cursor is {partition}/{cursor in it}. The list of partitions is read anew for each page: one that has
// no parked events any more is passed over, and the next one is begun.
func (a *API) parked(ctx context.Context,
	in *ParkedInput) (out v1.List[v1.ParkedEvent], err error) {
	out.Items = []v1.ParkedEvent{}
	partitions := []string{in.Partition}
	if in.Partition == "" {
		partitions, err = a.partitionsWithParked(ctx, in.Name)
	}

	from, cursor, ok := strings.Cut(in.Cursor, parkedCursor)
	if in.Cursor != "" && !ok {
		return out, badCursor(in.Cursor)
	}

	for i, p := range partitions {
		if p < from || err != nil {
			continue
		}

		if p != from {
			cursor = ""
		}

		var page []consumer.ParkedEvent
		page, cursor, err = a.Consumers.Parked(ctx, in.Name, p, cursor)
		out.Items = append(out.Items, each(page, wireParked)...)

		if cursor != "" {
			out.Cursor = p + parkedCursor + cursor
			break
		}

		if len(out.Items) >= enough && i+1 < len(partitions) {
			out.Cursor = partitions[i+1] + parkedCursor
			break
		}
	}
	return out, err
}

// parkedCursor is between the partition and the cursor in it. No partition has it in its name.
const parkedCursor = "/"

// partitionsWithParked are the partitions in which a consumer has parked events, in order.
func (a *API) partitionsWithParked(ctx context.Context, name string) (names []string, err error) {
	st, err := a.Consumers.Show(ctx, name)
	for _, p := range st.Places {
		if p.Parked > 0 {
			names = append(names, p.Partition)
		}
	}
	return names, err
}

func wireParked(e consumer.ParkedEvent) v1.ParkedEvent {
	return v1.ParkedEvent{
		Partition: e.Partition,
		Seq:       e.Seq,
		Key:       e.Key,
		Event:     e.ID,
		Coalesced: e.Coalesced,
		Type:      e.Type,
		Subject:   e.Subject.Type + ":" + e.Subject.ID,
		Number:    e.Number,
		Time:      timestamp(e.Time),
		Reason:    e.Reason,
		Stack:     e.Stack,
		Behind:    e.Behind,
		Attempts:  e.Tries,
		Since:     timestamp(e.Since),
		Version:   e.Version,
	}
}

// tryFilter reads a part of the past log and lists what a filter selects of it. Nothing is changed.
// Without a place to begin it begins at the oldest event; the cursor in the response continues.
func (a *API) tryFilter(ctx context.Context,
	in *FilterTrial) (out v1.FilterTrialResult, err error) {
	b := in.Body
	if b.From == "" {
		b.From = consumer.StartHorizon
	}

	t, err := a.Consumers.DryRun(ctx, b.Filter, b.Partition, b.From, b.Cursor)
	out = v1.FilterTrialResult{
		Read:     t.Read,
		Selected: t.Selected,
		Cursor:   t.Cursor,
		Events:   each(t.Events, wireSelected),
	}
	return out, err
}

func wireSelected(e envelope.Event) v1.SelectedEvent {
	return v1.SelectedEvent{
		ID:        e.ID,
		Type:      e.Type,
		Subject:   e.Subject.Type + ":" + e.Subject.ID,
		Number:    e.Version,
		Partition: e.Partition,
		Seq:       e.Seq,
		Time:      timestamp(e.Time),
	}
}
