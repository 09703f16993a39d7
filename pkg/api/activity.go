package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/views/statistics"
)

// activeHours is how many hours are shown.
const activeHours = 24

// activities registers the routes of what was done in the last hours, and of what is where now.
func (a *API) activities(h huma.API) {
	get(a, h, "/v1/activity", "getActivity", "Get what was done in the last 24 hours", a.activity)
	get(a, h, "/v1/job-counts", "getJobCounts", "Count the jobs by collection and place", a.jobCounts)
}

// activity is what was done and what waited, by hour. The counts follow the log within seconds; what waited was
// measured by the scheduler.
func (a *API) activity(ctx context.Context, _ *struct{}) (v1.Activity, error) {
	out := v1.Activity{MaxInFlight: a.Queue.Settings.MaxInFlight, Space: a.Queue.Settings.Space}
	counted, cut, err := a.Statistics.Hours(ctx, a.Queue.Now(), activeHours)
	if err != nil {
		return out, err
	}
	samples, err := a.Queue.Hours(ctx, activeHours)
	if err != nil {
		return out, err
	}
	if cut {
		out.Cut = fmt.Sprintf("the first %d parts of the log were counted", statistics.MostPartitions)
	}
	for i, one := range counted {
		hour := v1.ActivityHour{Begin: one.Begin.Format(time.RFC3339),
			Completed: one.Counts[statistics.Completed],
			Failed:    one.Counts[statistics.Failed], Bytes: one.Counts[statistics.Bytes]}
		if s := samples[i]; s != nil {
			hour.Measured, hour.Waited, hour.Running, hour.Space = true, s.Waited, s.Running, s.Space
		}
		out.Hours = append(out.Hours, hour)
	}
	return out, nil
}

// jobCounts counts the jobs that have not ended well. It is bounded, whatever waits.
func (a *API) jobCounts(ctx context.Context, _ *struct{}) (v1.JobCounts, error) {
	t, err := a.Queue.Tally(ctx)
	out := v1.JobCounts{Collections: []v1.CollectionJobs{}, Cut: t.Cut, Unreadable: t.Unreadable}
	for _, place := range queue.TallyPlaces {
		out.All = append(out.All, v1.PlaceJobs{Place: place})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Of)) {
		one := v1.CollectionJobs{Collection: name}
		for i, place := range queue.TallyPlaces {
			n := t.Of[name][place]
			one.Places = append(one.Places, v1.PlaceJobs{Place: place, Jobs: n.Jobs, Bytes: n.Bytes})
			out.All[i].Jobs += n.Jobs
			out.All[i].Bytes = ingest.AddSizes(out.All[i].Bytes, n.Bytes)
		}
		out.Collections = append(out.Collections, one)
	}
	return out, err
}
