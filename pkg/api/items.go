package api

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/components/component"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
)

// Ids of items have slashes, so they are in the query.

// ItemInput names an item.
type ItemInput struct {
	ID string `query:"id" required:"true" maxLength:"400"`
}

// ItemCursor names an item and a page of its history.
type ItemCursor struct {
	ItemInput
	Cursor string `query:"cursor" maxLength:"100"`
}

// ItemsInput selects items.
type ItemsInput struct {
	Kind   string `query:"kind" enum:"object,version,batch,item"`
	Type   string `query:"type" maxLength:"100"`
	Cursor string `query:"cursor" maxLength:"4000"`
}

// CreateItem is a request to create a custom item.
type CreateItem struct {
	Acting
	Body v1.ItemRequest
}

// ItemAction is a request to act on an item.
type ItemAction struct {
	ItemInput
	Acting
	Body v1.ItemAction
}

// componentItems registers the routes of items, which components work on.
func (a *API) componentItems(h huma.API) {
	get(a, h, "/v1/items", "findItems", "List items", a.findItems)
	get(a, h, "/v1/item", "getItem", "Get an item",
		func(ctx context.Context, in *ItemInput) (v1.Item, error) {
			st, err := a.Components.Show(ctx, in.ID)
			return wireComponentItem(st), err
		})

	get(a, h, "/v1/item/history", "listItemHistory", "List what happened to an item", a.itemHistory)
	post(a, h, "/v1/items", "createItem", "Create an item", a.createItem)
	post(a, h, "/v1/item/actions", "actOnItem", "Act on an item", a.actOnItem)
}

// findItems lists items. A page can be empty before the end.
func (a *API) findItems(ctx context.Context, in *ItemsInput) (out v1.List[v1.Item], err error) {
	page, next, err := a.Components.Items(ctx, in.Kind, in.Type, in.Cursor)
	out.Items, out.Cursor = each(page, wireComponentItem), next
	return out, err
}

// itemHistory lists what happened to an item and to its subject, oldest first. Own events are those of
// the item itself; what was revoked is listed, and marked.
func (a *API) itemHistory(ctx context.Context,
	in *ItemCursor) (out v1.List[v1.ItemEvent], err error) {
	page, next, err := a.Components.History(ctx, in.ID, in.Cursor)
	out.Items, out.Cursor = []v1.ItemEvent{}, next
	for _, h := range page {
		out.Items = append(out.Items, v1.ItemEvent{
			LogEvent: wireLogEvent(h.Event),
			Name:     h.Name,
			Own:      h.Own,
			Revoked:  h.Revoked,
		})
	}
	return out, err
}

// createItem makes a custom item, e.g. a delivery that is not ingested yet. The same request again
// changes nothing.
func (a *API) createItem(ctx context.Context, in *CreateItem) (v1.ItemOutcome, error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return v1.ItemOutcome{}, err
	}
	done, err := a.Components.Create(ctx, in.Body.ID, free(in.Body.ItemShape), by)
	return a.itemOutcome(ctx, "create", done, err)
}

// actOnItem acts on an item, and answers with the item after it.
func (a *API) actOnItem(ctx context.Context, in *ItemAction) (v1.ItemOutcome, error) {
	by, err := in.by(in.Body.Reason)
	if err != nil {
		return v1.ItemOutcome{}, err
	}
	if err := only(in.Body, in.Body.Action, itemFields[in.Body.Action]); err != nil {
		return v1.ItemOutcome{}, err
	}
	done, err := a.doToItem(ctx, in.ID, in.Body, by)
	return a.itemOutcome(ctx, in.Body.Action, done, err)
}

// itemOutcome is what an action did, and the item after it. It passes the error of the action on. A
// forgotten item is shown as the action left it: it is in no line any more.
func (a *API) itemOutcome(ctx context.Context, action string, done component.ActionResult,
	err error) (v1.ItemOutcome, error) {
	out := v1.ItemOutcome{Action: action, Changed: done.Changed, Summary: done.Summary}
	if err != nil {
		return out, err
	}

	if done.Item.Forgotten {
		out.Item = wireComponentItem(component.State{Item: *done.Item})
		return out, nil
	}

	st, err := a.Components.Show(ctx, done.Item.ID)
	out.Item = wireComponentItem(st)
	return out, err
}

// itemFields are the fields that each action on an item has beside the reason.
var itemFields = map[string][]string{
	"event":      {"event", "outcome"},
	"revoke":     {"events"},
	"restart":    {"from"},
	"prioritize": {"priority"},
	"release":    {"component"},
	"change":     {"shape"},
}

// doToItem does an action. What fits the state of the item, component.Store decides. The
// schema has refused other actions.
func (a *API) doToItem(ctx context.Context, id string, b v1.ItemAction,
	by component.By) (component.ActionResult, error) {
	s := a.Components
	switch b.Action {
	case "event":
		return s.Register(ctx, id, b.Event, b.Outcome, by)
	case "revoke":
		return s.Revoke(ctx, id, b.Events, by)
	case "restart":
		return s.Restart(ctx, id, b.From, by)
	case "stop":
		return s.Stop(ctx, id, by)
	case "prioritize":
		return s.Prioritize(ctx, id, b.Priority, by)
	case "release":
		return s.Release(ctx, id, b.Component, by)
	case "change":
		if b.Shape == nil {
			return component.ActionResult{},
				fault.New(fault.Invalid, "shape: it is missing; it says what the item is now")
		}
		return s.Change(ctx, id, free(*b.Shape), by)
	case "forget":
		return s.Forget(ctx, id, by)
	}
	return component.ActionResult{}, fmt.Errorf("api: an item has no action %q", b.Action)
}

// free is what people say of a custom item: all of it is replaced at once.
func free(in v1.ItemShape) component.CustomItem {
	f := component.CustomItem{Types: in.Types, Identifiers: in.Identifiers}
	for _, p := range in.Parents {
		f.Parents = append(f.Parents, envelope.Ref(p))
	}
	return f
}

// wireComponentItem is the wire form of an item. Its lists are never nil, so that they are [] in JSON.
// The events are in the order of their times, numbers and names; the lines in the order of the
// components' names.
func wireComponentItem(st component.State) v1.Item {
	it := st.Item
	_, stopped := it.Marks[component.Stopped]
	out := v1.Item{
		ID:          it.ID,
		Types:       append([]string{}, it.Types...),
		Parents:     refs(it.Parents),
		Identifiers: it.Identifiers,
		Priority:    it.Rank(),
		First:       timestamp(it.First),
		Number:      it.Version,
		Stopped:     stopped,
		Forgotten:   it.Forgotten,
		Events:      []v1.ItemMark{},
		Lines:       []v1.ItemLine{},
	}

	for name, m := range it.Marks {
		out.Events = append(out.Events, v1.ItemMark{
			Name:     name,
			Outcome:  m.Outcome,
			Time:     timestamp(m.At),
			Event:    m.ID,
			Number:   m.Version,
			Failures: m.Failures,
		})
	}

	slices.SortFunc(out.Events, func(a, b v1.ItemMark) int {
		return cmp.Or(strings.Compare(a.Time, b.Time), cmp.Compare(a.Number, b.Number),
			strings.Compare(a.Name, b.Name))
	})

	for _, name := range slices.Sorted(maps.Keys(st.Classes)) {
		claim := it.Claims[name]
		out.Lines = append(out.Lines, v1.ItemLine{
			Component: name,
			Class:     st.Classes[name],
			Run:       claim.Run,
			Until:     timestamp(claim.Until),
			Waits:     it.Waits[name].Reason,
		})
	}
	return out
}
