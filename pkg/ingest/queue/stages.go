package queue

import (
	"context"
	"encoding/json"
	"slices"

	"archivist/pkg/events/event"
	"archivist/pkg/ingest"
)

// StageTime is how long a job was in a state. Times are milliseconds since 1970.
type StageTime struct {
	State ingest.State
	First int64 // when it first entered the state
	Last  int64 // when it last left it; 0 while it is in it
	Spent int64 // milliseconds in the state, of all times together, until it last left it
	Times int   // how often it entered the state
	Tries int   // of the current step, since its last progress; only while the job is in the state
}

// stagePages is the number of pages of events that StagesOf reads at most: a job with more was requeued hundreds of
// times.
const stagePages = 10

// StagesOf are the states that a job was in, in the order in which it first entered them, from its events.
func (q *Queue) StagesOf(ctx context.Context, row *Job) (stages []StageTime, err error) {
	at, since, cursor := ingest.State(""), int64(0), ""
	for range stagePages {
		rows, next, err := event.Page(ctx, q.Table, jobSubject(row.Job.ID), cursor)
		if err != nil {
			return nil, err
		}

		for _, r := range rows {
			var c Change
			if json.Unmarshal([]byte(r.Detail), &c) != nil || c.To == "" || ingest.State(c.To) == at {
				continue
			}
			leave(stages, at, since, r.Time)
			at, since = ingest.State(c.To), r.Time
			stages = enter(stages, at, since)
		}
		cursor = next
		if cursor == "" {
			break
		}
	}

	if i := stageAt(stages, row.State); i >= 0 {
		stages[i].Tries = row.Tries
	}
	return stages, nil
}

func stageAt(stages []StageTime, s ingest.State) int {
	return slices.IndexFunc(stages, func(t StageTime) bool { return t.State == s })
}

// enter counts that a job entered a state at a time.
func enter(stages []StageTime, s ingest.State, at int64) []StageTime {
	i := stageAt(stages, s)
	if i < 0 {
		i, stages = len(stages), append(stages, StageTime{State: s, First: at})
	}
	stages[i].Times++
	stages[i].Last = 0
	return stages
}

// leave counts that a job left a state at a time.
func leave(stages []StageTime, s ingest.State, since, at int64) {
	if i := stageAt(stages, s); i >= 0 {
		stages[i].Last = at
		stages[i].Spent += max(0, at-since)
	}
}
