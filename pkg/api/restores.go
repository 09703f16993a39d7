package api

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/restored"
)

// RestoresInput names a table, or none. The pattern is that of DynamoDB's names.
type RestoresInput struct {
	Table string `query:"table" maxLength:"255" pattern:"^[A-Za-z0-9_.-]{3,}$"`
}

// restoring registers the route that says how far restores of the table are.
func (a *API) restoring(h huma.API) {
	get(a, h, "/v1/restores", "listRestores", "Show how far restores of the table are",
		func(ctx context.Context, in *RestoresInput) (v1.Restores, error) {
			if a.Restored == nil {
				return v1.Restores{Items: []v1.RestoredTable{},
					Problem: "this stack has no table of DynamoDB"}, nil
			}
			if in.Table != "" {
				return a.oneRestore(ctx, in.Table)
			}
			return a.restores(ctx), nil
		})
}

// restores are all restores. What AWS refuses is a part of the answer: the rest of a page does not depend on it.
func (a *API) restores(ctx context.Context) v1.Restores {
	out := v1.Restores{Table: a.Restored.Table, Items: []v1.RestoredTable{}}
	found, err := a.Restored.All(ctx)
	if err != nil {
		out.Problem = queue.CauseOf(err)
		return out
	}
	out.Looked, out.More, out.Unread = found.Looked, found.More, found.Unread
	if found.Err != nil {
		out.UnreadWhy = queue.CauseOf(found.Err)
	}
	for _, t := range found.Tables {
		out.Items = append(out.Items, wireRestored(t))
	}
	return out
}

// oneRestore is the restore of one table. It tells nothing of tables of others.
func (a *API) oneRestore(ctx context.Context, name string) (v1.Restores, error) {
	out := v1.Restores{Table: a.Restored.Table, Looked: 1, Items: []v1.RestoredTable{}}
	t, err := a.Restored.One(ctx, name)
	switch {
	case fault.Is(err, fault.NotFound), fault.Is(err, fault.Conflict):
		return out, err
	case err != nil:
		out.Problem = queue.CauseOf(err)
		return out, nil
	}
	out.Items = append(out.Items, wireRestored(t))
	return out, nil
}

// wireRestored is the wire form of a table. It is ready if it certainly lacks nothing.
func wireRestored(t restored.Table) v1.RestoredTable {
	out := v1.RestoredTable{Name: t.Name, Status: t.Status, InUse: t.InUse, Source: t.Source,
		Restoring: t.Restoring, Rows: t.Items, Bytes: t.Bytes, Stream: t.Stream,
		Lacks: []v1.TableLack{}}
	if !t.Moment.IsZero() {
		out.Moment = timestamp(t.Moment.UnixMilli())
	}
	if !t.Created.IsZero() {
		out.Begun = timestamp(t.Created.UnixMilli())
	}
	for _, l := range t.Lacks {
		one := v1.TableLack{What: l.What, Says: l.Says, Command: l.Command}
		if l.Err != nil {
			one.Says, one.Unknown = "not known: "+queue.CauseOf(l.Err), true
		}
		out.Lacks = append(out.Lacks, one)
	}
	out.Ready = t.Lacks != nil && len(t.Lacks) == 0 && !t.Restoring
	return out
}
