package reindex

import (
	"cmp"
	"context"
	"slices"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Runs keeps how far reindexes of all objects are. A reindex is driven from outside, by requests that keep no state
// here; who drives it reports how far it is. A run is one row, which is for people only: nothing depends on it.
//
//	REINDEX  RUN#{id}
type Runs struct {
	Table *table.Table
	NewID func() string // of transactions
	Now   func() time.Time
}

// Run is a reindex of all objects, as it was reported last.
type Run struct {
	table.Head
	ID    string `dynamo:"id"`
	Actor string `dynamo:"actor"`
	// Started, Reported and Ended are in milliseconds since 1970; Ended is 0 while it is not at its end.
	Started  int64 `dynamo:"started_ms"`
	Reported int64 `dynamo:"reported_ms"`
	Ended    int64 `dynamo:"ended_ms,omitempty"`
	// Since is when it was begun or resumed, and From how much of Progress was done then: the rate follows from them.
	Since int64 `dynamo:"since_ms"`
	From  int   `dynamo:"from_done"`
	Progress
}

// Progress is how far a run is.
type Progress struct {
	Done     int       `dynamo:"parts_done"` // parts of the storage root, all of about the same size
	Total    int       `dynamo:"parts_all"`  // at least 1
	Objects  int       `dynamo:"objects"`
	Changed  int       `dynamo:"changed"`  // objects whose missing rows were restored
	Failed   int       `dynamo:"failed"`   // objects that could not be restored completely
	Failures []Failure `dynamo:"failures"` // the first of them
}

// Silence is after how long without a report a run is taken for interrupted. A request takes 15 seconds, and is
// repeated for half a minute.
const Silence = 3 * time.Minute

// keepRun is how long the row of a run stays after its last report.
const keepRun = 90 * 24 * time.Hour

// mostRuns is how many runs are listed.
const mostRuns = 100

const runsPK, runPrefix = "REINDEX", "RUN#"

// Interrupted reports whether nobody goes on with it, as far as it is known: it has not ended, and is silent.
func (r *Run) Interrupted(now time.Time) bool {
	return r.Ended == 0 && now.Sub(time.UnixMilli(r.Reported)) > Silence
}

// Left is how long it takes until it is done, at its rate since it was begun or resumed; 0 if that is not known.
func (r *Run) Left() time.Duration {
	done, took := r.Done-r.From, r.Reported-r.Since
	if done <= 0 || took <= 0 || r.Ended > 0 {
		return 0
	}
	return time.Duration(float64(took) / float64(done) * float64(r.Total-r.Done) * float64(time.Millisecond))
}

// Report records how far a run is; the first report begins it. Reports may come twice, and late: one of less than is
// known changes nothing, and neither does one after the end.
func (s Runs) Report(ctx context.Context, id, actor string, p Progress, ended bool) (out Run, err error) {
	err = s.Table.Again(ctx, "the reindex", func() error {
		row := Run{Head: table.Head{PK: runsPK, SK: runPrefix + id}}
		err := s.Table.Get(ctx, row.Key(), &row)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
		out = row
		if row.Rev > 0 && (row.Ended > 0 || p.Done < row.Done) {
			return nil
		}

		now := s.Now()
		if row.Rev == 0 {
			row.ID, row.Actor, row.Started = id, actor, now.UnixMilli()
		}
		if row.Rev == 0 || row.Interrupted(now) {
			row.Since, row.From = now.UnixMilli(), p.Done
		}
		row.Progress, row.Reported = p, now.UnixMilli()
		row.ExpiresAt = now.Add(keepRun).Unix()
		if ended {
			row.Ended = row.Reported
		}
		tx := s.Table.Begin(s.NewID())
		tx.InsertOrSave(&row)
		out = row
		return tx.Commit(ctx)
	})
	return out, err
}

// List lists runs, the newest first, at most 100. Their rows are in the order of ids, which say nothing about time, so
// all are read: those of the last 90 days.
func (s Runs) List(ctx context.Context) (runs []Run, err error) {
	q := table.Query{PK: runsPK, Prefix: runPrefix}
	for first := true; first || q.Cursor != ""; first = false {
		var page []Run
		if q.Cursor, err = s.Table.Page(ctx, q, &page); err != nil {
			return nil, err
		}
		runs = append(runs, page...)
		slices.SortStableFunc(runs, func(a, b Run) int { return cmp.Compare(b.Started, a.Started) })
		runs = runs[:min(len(runs), mostRuns)]
	}
	return runs, nil
}
