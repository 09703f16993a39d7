package queue

import (
	"context"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Sample is what was measured of the queue, or the most of that in an hour.
type Sample struct {
	Waited  int64 `dynamo:"waited_s"`   // seconds for which the oldest job at a gate has waited; 0 = none waits
	Running int   `dynamo:"slots_used"` // slots in use
	Space   int64 `dynamo:"space_used"` // bytes of work space that are granted
}

// with is the most of both.
func (s Sample) with(o Sample) Sample {
	return Sample{max(s.Waited, o.Waited), max(s.Running, o.Running), max(s.Space, o.Space)}
}

// sampled is the row with the most that was measured in each of the last hours. It is for people: nothing depends on
// it.
type sampled struct {
	table.Head
	Hours map[string]Sample `dynamo:"by_hour"`
}

var sampledKey = table.Key{PK: sweptKey.PK, SK: "HOURS"}

// hourForm is how an hour is named, in UTC; names sort by time.
const hourForm = "2006-01-02T15"

// keptHours is for how many hours samples are kept.
const keptHours = 25

func (q *Queue) sampled(ctx context.Context) (row sampled, err error) {
	row.PK, row.SK = sampledKey.PK, sampledKey.SK
	err = q.Table.Get(ctx, sampledKey, &row)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return row, err
}

// keepSample keeps the most that was measured in the hour of now. The row is written when an hour begins, and when
// there is more than before in it: in a queue that rests, once in an hour.
func (q *Queue) keepSample(ctx context.Context, s Sample) error {
	return q.Table.Again(ctx, "what was measured", func() error {
		row, err := q.sampled(ctx)
		if err != nil {
			return err
		}

		now := q.Now().UTC()
		name, oldest := now.Format(hourForm), now.Add(-(keptHours-1)*time.Hour).Format(hourForm)
		was, has := row.Hours[name]
		is := was.with(s)
		if has && is == was {
			return nil
		}
		hours := map[string]Sample{name: is}
		for of, sample := range row.Hours {
			if of != name && of >= oldest {
				hours[of] = sample
			}
		}
		row.Hours = hours
		tx := q.Table.Begin(q.NewID())
		tx.InsertOrSave(&row)
		return tx.Commit(ctx)
	})
}

// Hours are the most that was measured in each of the last hours, the one of now last; nil for an hour in which nothing
// was measured.
func (q *Queue) Hours(ctx context.Context, hours int) ([]*Sample, error) {
	row, err := q.sampled(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]*Sample, hours)
	for i := range out {
		at := q.Now().UTC().Add(time.Duration(i+1-hours) * time.Hour)
		if s, has := row.Hours[at.Format(hourForm)]; has {
			out[i] = &s
		}
	}
	return out, nil
}
