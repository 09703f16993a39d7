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
	get(a, h, "/v1/batch-counts", "getBatchCounts", "Count the batches by state", a.batchCounts)
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

// JobCountsInput is of what jobs are counted.
type JobCountsInput struct {
	Collection string `query:"collection"`
	Batches    bool   `query:"batches"`
	Quick      bool   `query:"quick"`
}

// mostBatches is how many batches are told apart.
const mostBatches = 100

// jobCounts counts the jobs that have not ended well, a depositor's in the own collections only. It
// is bounded, whatever waits.
func (a *API) jobCounts(ctx context.Context, in *JobCountsInput) (v1.JobCounts, error) {
	mine := limits(ctx)
	if in.Collection != "" {
		if mine != nil && !slices.Contains(mine, in.Collection) {
			return v1.JobCounts{}, errElsewhere
		}
		mine = []string{in.Collection}
	}
	t, err := a.Queue.Tally(ctx, in.Quick)
	out := v1.JobCounts{Collections: []v1.CollectionJobs{}, Cut: t.Cut, Unreadable: t.Unreadable}
	if mine != nil {
		t.Only(mine)
		out.Unreadable = 0 // whose they are is not known
	}
	places := queue.TallyPlaces
	if in.Quick {
		places = queue.QuickPlaces
	}
	for _, place := range places {
		out.All = append(out.All, v1.PlaceJobs{Place: place})
	}
	for _, name := range slices.Sorted(maps.Keys(t.Of)) {
		one := v1.CollectionJobs{Collection: name, Places: amountsAt(t.Of[name], places)}
		for i, at := range one.Places {
			out.All[i].Jobs += at.Jobs
			out.All[i].Bytes = ingest.AddSizes(out.All[i].Bytes, at.Bytes)
		}
		out.Collections = append(out.Collections, one)
	}
	if in.Batches {
		for _, id := range t.Largest(mostBatches) {
			out.Batches = append(out.Batches, v1.BatchJobs{Batch: id, Collection: t.Home[id],
				Places: amountsAt(t.In[id], places)})
		}
		out.OtherBatches = len(t.In) - len(out.Batches)
	}
	return out, err
}

// amountsAt are the amounts at places.
func amountsAt(sums map[string]queue.Amount, places []string) (out []v1.PlaceJobs) {
	for _, place := range places {
		n := sums[place]
		out = append(out, v1.PlaceJobs{Place: place, Jobs: n.Jobs, Bytes: n.Bytes})
	}
	return out
}

// BatchCountsInput is of what batches are counted.
type BatchCountsInput struct {
	Collection string `query:"collection" maxLength:"100"`
}

// mostOfState is how many batches of a state are counted.
const mostOfState = 100

// batchCounts counts batches by state, of a collection or of all. An unknown collection has none.
func (a *API) batchCounts(ctx context.Context, in *BatchCountsInput) (out v1.BatchCounts,
	err error) {
	f, err := a.selected(ctx, Selection{Collection: in.Collection, Limit: mostOfState}, "", nil)
	if err != nil {
		return out, err
	}
	for _, f.State = range v1.CountedBatchStates {
		n, more, err := a.Queue.CountBatches(ctx, f)
		if err != nil {
			return out, err
		}
		out.States = append(out.States, v1.StateBatches{State: f.State, Batches: n, More: more})
	}
	return out, nil
}
