package queue

import (
	"context"
	"fmt"
	"slices"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Overview is the queue at a glance.
type Overview struct {
	Waiting       map[string]int `json:"waiting"` // by gate, and on hold; at most 1,000 are counted
	Running       int            `json:"running"`
	MaxInFlight   int            `json:"maxInFlight"`
	SpaceFree     int64          `json:"spaceFree"`               // bytes
	OldestWaiting string         `json:"oldestWaiting,omitempty"` // job id
	OldestSince   string         `json:"oldestSince,omitempty"`
	LastSweep     string         `json:"lastSweep,omitempty"` // when the scheduler swept last; "" = never
	Holds         []Hold         `json:"-"`                   // see Queue.Holds

	first map[string]string // the first job at each gate
	slots []string          // the jobs that have one
}

// Overview counts the waiting and the running jobs, and lists the pauses and holds. Its numbers are
// of several reads: they need not be of one moment.
func (q *Queue) Overview(ctx context.Context) (Overview, error) {
	free, slots, err := q.reserved(ctx)
	if err != nil {
		return Overview{}, err
	}

	o := Overview{
		slots:       slots,
		Waiting:     map[string]int{},
		first:       map[string]string{},
		Running:     q.Settings.MaxInFlight - free.Slots,
		MaxInFlight: q.Settings.MaxInFlight,
		SpaceFree:   max(0, free.Space),
	} // jobs that parked ones wait for may be granted more than the whole space

	var oldest candidate
	for _, place := range append(slices.Clip(gates), ingest.WorkHeld) {
		var page []candidate
		query := table.Query{Index: "work", PK: place, Limit: countedMost}
		next, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return o, err
		}
		o.Waiting[place] = len(page)
		if len(page) == 0 || place == ingest.WorkHeld {
			continue
		}

		o.first[place] = page[0].ID
		if next != "" { // the oldest need not be among them
			if page, err = q.firsts(ctx, place); err != nil {
				return o, err
			}
		}
		oldest = older(oldest, page)
	}

	if o.Holds, err = q.Holds(ctx); err != nil {
		return o, err
	}

	last, err := q.lastSweep(ctx)
	if err != nil {
		return o, err
	}

	if !last.IsZero() {
		o.LastSweep = ingest.Timestamp(last.UnixMilli())
	}

	if oldest.ID != "" {
		o.OldestWaiting, o.OldestSince = oldest.ID, ingest.Timestamp(oldest.Entered)
	}
	return o, err
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

	free, err := q.free(ctx)
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
	return q.keepSample(ctx, sample)
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
