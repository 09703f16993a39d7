package api

import (
	"context"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/views/acts"
)

// ActQuery selects acts of people: those of an actor, or of all.
type ActQuery struct {
	Actor  string `query:"actor" maxLength:"300"`
	Before string `query:"before" maxLength:"40"`
	Filter string `query:"filter" maxLength:"4096"`
	Cursor string `query:"cursor" maxLength:"4000"`
}

// The bounds of a page of acts: how many queries it takes at most, and how many acts each reads if
// a filter looks at them. Without a filter it is one query.
const (
	mostActReads = 5
	actsAtOnce   = 200
)

// listActs lists what people did, the newest first. With a filter a page ends after some queries,
// whatever they found.
func (a *API) listActs(ctx context.Context, in *ActQuery) (out v1.ActPage, err error) {
	picks, err := selectionOf(in.Filter)
	if err != nil {
		return out, err
	}

	of := acts.Query{Actor: in.Actor, Limit: enough}
	if of.Before, err = instant("before", in.Before); err != nil {
		return out, err
	}
	if picks.filter != nil {
		of.Limit = actsAtOnce
	}

	out.Items, of.Cursor = []v1.Act{}, in.Cursor
	for reads := 1; ; reads++ {
		page, next, err := a.Acts.Page(ctx, of)
		if err != nil {
			return out, err
		}
		out.Items = append(out.Items, picked(page, picks)...)
		of.Cursor = next
		if next == "" {
			return out, nil
		}
		if picks.filter == nil || len(out.Items) >= enough || reads == mostActReads {
			out.Cursor = next
			if len(page) > 0 {
				out.Looked = timestamp(page[len(page)-1].Event.Time)
			}
			return out, nil
		}
	}
}

// picked are the acts that a filter selects, in their wire form.
func picked(page []acts.Act, picks selection) (items []v1.Act) {
	for _, one := range page {
		if picks.filter == nil || picks.filter.Match(one.Event) {
			items = append(items, wireAct(one))
		}
	}
	return items
}

// wireAct is the wire form of an act.
func wireAct(a acts.Act) v1.Act {
	e := wireLogEvent(a.Event)
	return v1.Act{Time: e.Time, Actor: e.Context.Actor, Type: e.Type, Action: e.Action, Subject: e.Subject,
		Parents: e.Parents, Outcome: e.Outcome, Reason: a.Reason, Version: e.Version, Event: e.ID}
}
