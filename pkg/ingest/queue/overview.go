package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Overview is the queue at a glance.
type Overview struct {
	// Waiting is how many wait by gate, and on hold. Of more than 100 it is what the scheduler has
	// counted within the last minutes. Those that are Deferred are in a Tally only: to find them costs
	// eight calls.
	Waiting map[string]int `json:"waiting"`
	// MoreThan are the places of Waiting where more wait than that.
	MoreThan      []string `json:"moreThan,omitempty"`
	Running       int      `json:"running"`
	MaxInFlight   int      `json:"maxInFlight"`
	SpaceFree     int64    `json:"spaceFree"`               // bytes
	OldestWaiting string   `json:"oldestWaiting,omitempty"` // job id
	OldestSince   string   `json:"oldestSince,omitempty"`
	LastSweep     string   `json:"lastSweep,omitempty"` // when the scheduler swept last; "" = never
	Holds         []Hold   `json:"-"`                   // see Queue.Holds

	first  map[string][]candidate // the first jobs at each gate
	slots  []string               // the jobs that have one, by id
	free   ingest.Free
	active holds
	swept  time.Time // zero = never
}

// glimpse is what is read for an overview.
type glimpse struct {
	Overview
	counted backlog
	pages   map[string][]candidate // the first at each place: one more than glanced if there are more
	space   []Reservation          // the first
	further string                 // the cursor of the others
}

// Overview counts the waiting and the running jobs, and lists the pauses and holds, in a bounded
// number of calls, however many wait. Its numbers are of several reads: they need not be of one
// moment.
func (q *Queue) Overview(ctx context.Context) (Overview, error) {
	o, err := q.glimpse(ctx)
	if err != nil {
		return Overview{}, err
	}
	if err := q.granted(ctx, o); err != nil {
		return Overview{}, err
	}
	o.Running, o.MaxInFlight = q.Settings.MaxInFlight-o.free.Slots, q.Settings.MaxInFlight
	// Jobs that parked ones wait for may be granted more than the whole space.
	o.SpaceFree = max(0, o.free.Space)
	if !o.swept.IsZero() {
		o.LastSweep = ingest.Timestamp(o.swept.UnixMilli())
	}

	o.Waiting, o.first = map[string]int{}, map[string][]candidate{}
	full := []string{}
	var oldest candidate
	for _, place := range waitingPlaces {
		page := o.pages[place]
		n := o.counted.at(place, len(page))
		o.Waiting[place] = n.Jobs
		if n.More {
			o.MoreThan = append(o.MoreThan, place)
		}
		if len(page) == 0 || place == ingest.WorkHeld {
			continue
		}
		o.first[place] = page[:min(len(page), mostLooked)]
		oldest = older(oldest, page)
		if len(page) > glanced { // the oldest need not be among them
			full = append(full, place)
		}
	}
	if oldest, err = q.oldestOf(ctx, o, oldest, full); err != nil {
		return Overview{}, err
	}
	if oldest.ID != "" {
		o.OldestWaiting, o.OldestSince = oldest.ID, ingest.Timestamp(oldest.Entered)
	}
	return o.Overview, nil
}

// glimpse reads what an overview needs, at once.
func (q *Queue) glimpse(ctx context.Context) (*glimpse, error) {
	o := &glimpse{pages: map[string][]candidate{}}
	o.free = q.unused()
	pages := make([][]candidate, len(waitingPlaces))
	reads := []func(context.Context) error{
		func(ctx context.Context) (err error) {
			o.slots, err = q.slots(ctx, &o.free)
			return err
		},
		func(ctx context.Context) (err error) {
			o.further, err = q.Table.Page(ctx, table.Query{PK: spacePK, Limit: glanced}, &o.space)
			return err
		},
		func(ctx context.Context) (err error) {
			if o.active, err = q.active(ctx); err == nil {
				o.Holds = o.active.sorted()
			}
			return err
		},
		func(ctx context.Context) error { return q.counts(ctx, o) },
	}
	for i, place := range waitingPlaces {
		reads = append(reads, func(ctx context.Context) error {
			_, err := q.Table.Page(ctx, table.Query{Index: "work", PK: place, Limit: glanced + 1}, &pages[i])
			return err
		})
	}
	err := together(ctx, len(reads), func(ctx context.Context, i int) error { return reads[i](ctx) })
	for i, place := range waitingPlaces {
		o.pages[place] = pages[i]
	}
	return o, err
}

// counts reads what the scheduler keeps beside its lease: when it swept, and what it has counted.
func (q *Queue) counts(ctx context.Context, o *glimpse) error {
	var rows []backlog
	_, err := q.Table.Page(ctx, table.Query{PK: sweptKey.PK}, &rows)
	for _, row := range rows {
		switch {
		case row.SK == sweptKey.SK && row.At > 0:
			o.swept = time.UnixMilli(row.At)
		case row.SK == backlogKey.SK && row.recent(q.Now()):
			o.counted = row
		}
	}
	return err
}

// granted subtracts the granted space from what is free. If there are many rows of it, it is what
// the scheduler has counted; if that is long ago, all are read.
func (q *Queue) granted(ctx context.Context, o *glimpse) error {
	if o.further != "" && o.counted.At > 0 {
		o.free.Space -= o.counted.Space
		o.free.Most = ingest.Holder{Job: o.counted.Most, Space: o.counted.MostHeld}
		return nil
	}
	for _, s := range o.space {
		take(&o.free, s)
	}
	if o.further == "" {
		return nil
	}
	_, err := q.spaces(ctx, &o.free, table.Query{PK: spacePK, Limit: 1000, Cursor: o.further})
	return err
}

// oldestOf is the job that has waited longest: the oldest of those that were read, or one at the
// gates of which not all were. There it is the one that the scheduler has found, or, if that is
// long ago, it is looked for.
func (q *Queue) oldestOf(ctx context.Context, o *glimpse, oldest candidate,
	full []string) (candidate, error) {
	if len(full) > 0 && o.counted.Oldest != "" {
		return older(oldest, []candidate{{ID: o.counted.Oldest, Entered: o.counted.Since}}), nil
	}
	for _, place := range full {
		page, err := q.firsts(ctx, place)
		if err != nil {
			return oldest, err
		}
		oldest = older(oldest, page)
	}
	return oldest, nil
}

// Measure puts the metrics of the queue's current state; the others count events. They are
// how long the oldest job has waited, in seconds, and how much of the work space is
// granted, in percent. A 0 is not put, so that an idle system does not pay for metrics.
func (q *Queue) Measure(ctx context.Context) error {
	oldest, err := q.oldest(ctx)
	if err != nil {
		return err
	}

	if oldest.ID != "" {
		q.Metric(OldestWaiting, max(1, q.Now().Sub(time.UnixMilli(oldest.Entered)).Seconds()))
	}

	free := q.unused()
	if _, err := q.slots(ctx, &free); err != nil {
		return err
	}
	spaces, err := q.spaces(ctx, &free, table.Query{PK: spacePK, Limit: 1000})
	if err != nil {
		return err
	}

	used := free.Capacity - free.Space
	if used > 0 {
		q.Metric(SpaceUsed, float64(used)/float64(free.Capacity)*100)
	}

	sample := Sample{Running: q.Settings.MaxInFlight - free.Slots, Space: max(0, used)}
	if oldest.ID != "" {
		sample.Waited = max(1, int64(q.Now().Sub(time.UnixMilli(oldest.Entered)).Seconds()))
	}
	return errors.Join(q.keepSample(ctx, sample), q.keepBacklog(ctx, oldest, free, spaces))
}

// oldest is the job that has waited longest at a gate, zero if none waits.
func (q *Queue) oldest(ctx context.Context) (oldest candidate, err error) {
	for _, place := range gates {
		page, err := q.firsts(ctx, place)
		if err != nil {
			return oldest, err
		}
		oldest = older(oldest, page)
	}
	return oldest, nil
}

// older is the one of some jobs that has waited longest. A zero one does not wait.
func older(oldest candidate, others []candidate) candidate {
	for _, w := range others {
		if oldest.ID == "" || w.Entered < oldest.Entered {
			oldest = w
		}
	}
	return oldest
}

// firsts are jobs at a gate of which one has waited longest there.
func (q *Queue) firsts(ctx context.Context, place string) ([]candidate, error) {
	if q.Rules.Aging > 0 {
		return q.firstOfAll(ctx, place)
	}
	return q.firstOfEach(ctx, place)
}

// firstOfEach lists the oldest job of each priority at a gate, where jobs are in the order
// of priority, then age. It makes one request for each priority in use. The first of the whole gate
// need not be the oldest: it has the best priority.
func (q *Queue) firstOfEach(ctx context.Context, place string) (found []candidate, err error) {
	from := ""
	for priority := 0; priority <= ingest.WorstPriority; priority++ {
		var first []candidate
		_, err := q.Table.Page(ctx, table.Query{
			Index: "work",
			PK:    place,
			From:  from,
			Limit: 1,
		}, &first)
		if err != nil || len(first) == 0 {
			return found, err
		}

		found = append(found, first[0])
		if _, err := fmt.Sscanf(first[0].WorkSK, "%03d#", &priority); err != nil {
			return found, nil // entered while jobs aged
		}

		// The next request begins behind all jobs of this priority.
		from = fmt.Sprintf("%03d#", priority+1)
	}
	return found, nil
}

// firstOfAll lists the first jobs at a gate. With aging, priority shifts their order of age:
// the oldest is among them unless a thousand jobs of better priority are before it.
func (q *Queue) firstOfAll(ctx context.Context, place string) (page []candidate, err error) {
	_, err = q.Table.Page(ctx, table.Query{Index: "work", PK: place, Limit: countedMost}, &page)
	return page, err
}
