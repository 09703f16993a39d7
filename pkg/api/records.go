package api

import (
	"context"
	"encoding/json"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/events/envelope"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/views/derivatives"
	"archivist/pkg/views/manifest"
	"archivist/pkg/views/statistics"
)

// records registers the routes of what the consumers of events keep: histories, statistics,
// thumbnails and packaging manifests.
func (a *API) records(h huma.API) {
	const object = "/v1/objects/{naan}/{name}"
	xmlList(a, h, object+"/history", "listObjectHistory", "List the permanent record of an object",
		a.recorded,
		func(ctx context.Context, in *ARKCursor) (v1.List[v1.HistoryEvent], error) {
			events, next, err := a.recorded(ctx, in.ark(), in.Cursor)
			return list(queue.Page[envelope.Event]{Items: events, Cursor: next}, wireHistory), err
		})

	get(a, h, object+"/statistics", "getObjectStatistics", "Get the statistics of an object",
		a.objectStatistics)
	get(a, h, "/v1/statistics", "listStatistics", "List the statistics of collections",
		a.statistics)
	redirect(a, h, object+"/versions/{n}/thumbnail", "getThumbnail",
		"Get the thumbnail of an image", a.thumbnail)
	redirect(a, h, object+"/manifest", "getManifest", "Get an object's packaging manifest",
		a.manifest)
}

// recorded reads a page of the permanent record of an object. An object that does not exist is a
// NotFound; one whose events the consumer has not handled yet has an empty record.
func (a *API) recorded(ctx context.Context, ark, cursor string) ([]envelope.Event, string, error) {
	events, next, err := a.History.Page(ctx, ark, cursor)
	if err != nil || len(events) > 0 || cursor != "" {
		return events, next, err
	}

	_, err = a.Inventory.Object(ctx, ark) // a NotFound if there is no object
	return events, next, err
}

// wireHistory is the wire form of an event of the record, with its details as objects.
func wireHistory(e envelope.Event) v1.HistoryEvent {
	return v1.HistoryEvent{
		ID:               e.ID,
		SubjectType:      e.Subject.Type,
		SubjectID:        e.Subject.ID,
		Version:          e.Version,
		Type:             e.Type,
		Action:           e.Action,
		Time:             ingest.Timestamp(e.Time),
		Outcome:          e.Outcome,
		Actor:            e.Context.Actor,
		Component:        e.Context.Component,
		ComponentVersion: e.Context.Version,
		Cause:            e.Cause.Event,
		Identifiers:      e.Identifiers,
		Detail:           fields(e.Detail),
		Before:           fields(e.Before),
		After:            fields(e.After),
	}
}

// fields are the fields of a JSON object, nil if it is none.
func fields(text json.RawMessage) (m map[string]any) {
	_ = json.Unmarshal(text, &m)
	return m
}

// objectStatistics counts the downloads of an object. The counts are kept by collection, so the object
// is read first.
func (a *API) objectStatistics(ctx context.Context, in *ARKInput) (v1.ObjectStatistics, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return v1.ObjectStatistics{}, err
	}
	s, err := a.Statistics.Object(ctx, o.Collection, o.ARK)
	return v1.ObjectStatistics{
		ARK:          o.ARK,
		Downloads:    s.Counts[statistics.Downloads],
		LastDownload: timestamp(s.LastAt),
	}, err
}

// StatisticsInput selects statistics: those of all collections, or of one, with its days.
type StatisticsInput struct {
	Collection string `query:"collection" maxLength:"100"`
	From       string `query:"from" format:"date"`
	To         string `query:"to" format:"date"`
	Cursor     string `query:"cursor"`
}

// statistics lists the counts of all collections, or those of one, with its days if a range is asked
// for. A collection without counts has zeros.
func (a *API) statistics(ctx context.Context, in *StatisticsInput) (v1.List[v1.Statistics], error) {
	if in.Collection == "" {
		if in.From != "" || in.To != "" {
			return v1.List[v1.Statistics]{},
				fault.New(fault.Invalid, "from, to: the counts of days are those of one "+
					"collection; give collection too")
		}
		logs, next, err := a.Statistics.Logs(ctx, in.Cursor)
		return list(queue.Page[statistics.Log]{Items: logs, Cursor: next}, wireStatistics), err
	}

	total, err := a.Statistics.Total(ctx, in.Collection)
	if err != nil {
		return v1.List[v1.Statistics]{}, err
	}

	out := wireStatistics(total)
	if in.From != "" || in.To != "" {
		out.Days, err = a.days(ctx, in)
	}
	return v1.List[v1.Statistics]{Items: []v1.Statistics{out}}, err
}

// monthBefore is how many days a list has that names only its end.
const monthBefore = 30

// days are the counts of the days that were asked for: to is today unless it is given, and from a month
// before. Days are in UTC. A range of more days than statistics.MostDays is an Invalid; so is one that
// ends before it begins.
func (a *API) days(ctx context.Context, in *StatisticsInput) (out []v1.DayCounts, err error) {
	to := a.Queue.Now().UTC().Truncate(24 * time.Hour)
	if in.To != "" {
		if to, err = time.Parse(time.DateOnly, in.To); err != nil {
			return nil, fault.New(fault.Invalid, "to: %w", err)
		}
	}

	from := to.AddDate(0, 0, 1-monthBefore)
	if in.From != "" {
		if from, err = time.Parse(time.DateOnly, in.From); err != nil {
			return nil, fault.New(fault.Invalid, "from: %w", err)
		}
	}

	days, err := a.Statistics.Days(ctx, in.Collection, from, to)
	for _, d := range days {
		out = append(out, v1.DayCounts{Date: d.Date, EventCounts: wireCounts(d.Counts)})
	}
	return out, err
}

func wireStatistics(l statistics.Log) v1.Statistics {
	return v1.Statistics{
		Collection:  l.Name,
		Updated:     timestamp(l.LastAt),
		EventCounts: wireCounts(l.Counts),
	}
}

// wireCounts is the wire form of counts; a name that is not there is 0.
func wireCounts(c statistics.Counts) v1.EventCounts {
	return v1.EventCounts{
		Objects:   c[statistics.Objects],
		Versions:  c[statistics.Versions],
		Files:     c[statistics.Files],
		Bytes:     c[statistics.Bytes],
		Completed: c[statistics.Completed],
		Failed:    c[statistics.Failed],
		Downloads: c[statistics.Downloads],
	}
}

// thumbnail is the signed URL of an image's thumbnail. A NotFound says why there is none.
func (a *API) thumbnail(ctx context.Context, in *ContentInput) (string, error) {
	o, stored, err := a.stored(ctx, in.VersionInput)
	if err == nil {
		err = o.Open(a.Queue.Now())
	}

	if err != nil {
		return "", err
	}
	return derivatives.Presign(ctx, a.Derived, a.Root, stored, in.Version, in.Path, contentFor)
}

// manifest is the signed URL of an object's packaging manifest.
func (a *API) manifest(ctx context.Context, in *ARKInput) (string, error) {
	o, err := a.Inventory.Object(ctx, in.ark())
	if err != nil {
		return "", err
	}

	to, err := a.Derived.Presign(ctx, manifest.Key(o.ARK), "manifest.checkm", contentFor)
	if fault.Is(err, fault.NotFound) {
		err = fault.New(fault.NotFound,
			"%s has no packaging manifest yet; it is made some minutes after a change", o.ARK)
	}
	return to, err
}
