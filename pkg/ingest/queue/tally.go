package queue

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Running is the place of jobs that have a slot, and Deferred that of jobs that wait until a time
// that their source asked for. The others are those of the index "work".
const (
	Running  = "running"
	Deferred = "deferred"
)

// TallyPlaces are the places of a Tally, in the order in which a job comes to them.
var TallyPlaces = []string{ingest.WorkPending, ingest.WorkProvisioning, ingest.WorkParked, Deferred,
	Running, ingest.WorkHeld, ingest.WorkFailed}

// QuickPlaces are those of a quick one.
var QuickPlaces = slices.DeleteFunc(slices.Clone(TallyPlaces), func(place string) bool {
	return place == Deferred
})

// Amount is a number of jobs, and the work space that they need or have, in bytes.
type Amount struct {
	Jobs  int
	Bytes int64
}

// Tally is how many jobs that have not ended well are where, by collection and place. Those that were completed are
// nowhere: the statistics count them.
type Tally struct {
	Of   map[string]map[string]Amount // by collection, then by place
	In   map[string]map[string]Amount // by batch, then by place
	Home map[string]string            // the collections of the batches
	Cut  []string                     // places of which only the first rows were counted
	// Unreadable are rows that cannot be read, and so are not counted: the doctor names them.
	Unreadable int
}

// add adds a job.
func (t *Tally) add(id, collection, place string, bytes int64) {
	addTo(t.Of, collection, place, bytes)
	batch := ingest.BatchOf(id)
	addTo(t.In, batch, place, bytes)
	t.Home[batch] = collection
}

// addTo adds a job to the amounts of a collection or a batch.
func addTo(sums map[string]map[string]Amount, of, place string, bytes int64) {
	if sums[of] == nil {
		sums[of] = map[string]Amount{}
	}
	a := sums[of][place]
	sums[of][place] = Amount{a.Jobs + 1, ingest.AddSizes(a.Bytes, bytes)}
}

// Only leaves the jobs of some collections.
func (t *Tally) Only(collections []string) {
	maps.DeleteFunc(t.Of, func(name string, _ map[string]Amount) bool {
		return !slices.Contains(collections, name)
	})
	maps.DeleteFunc(t.In, func(batch string, _ map[string]Amount) bool {
		return !slices.Contains(collections, t.Home[batch])
	})
}

// Largest are the batches with the most jobs, at most so many: those first, then by id.
func (t *Tally) Largest(most int) []string {
	jobs := func(batch string) (n int) {
		for _, a := range t.In[batch] {
			n += a.Jobs
		}
		return n
	}
	all := slices.SortedFunc(maps.Keys(t.In), func(a, b string) int {
		return cmp.Or(cmp.Compare(jobs(b), jobs(a)), cmp.Compare(a, b))
	})
	return all[:min(len(all), most)]
}

// quickFiled is how many jobs whose work files are still to be removed are looked at in a quick Tally.
const quickFiled = 2 * table.MaxGets

// Tally counts jobs by collection and place, with at most sixteen queries of at most 1,000 rows,
// and the rows of those whose work files are still to be removed, a hundred at a time: what is
// more is said.
// A quick one takes at most ten calls: without those that are Deferred, and with the rows of the
// first quickFiled.
// They are not of one moment, and the index may lag.
func (q *Queue) Tally(ctx context.Context, quick bool) (Tally, error) {
	t := Tally{Of: map[string]map[string]Amount{}, In: map[string]map[string]Amount{},
		Home: map[string]string{}}
	// Failed jobs with work files are among batches whose rows are removed much later.
	files := q.Now().Add(q.Rules.FailedRetention)
	for _, at := range []struct{ query, place, to string }{
		{ingest.WorkPending, ingest.WorkPending, ""},
		{ingest.WorkProvisioning, ingest.WorkProvisioning, ""},
		{ingest.WorkParked, ingest.WorkParked, ""},
		{ingest.WorkHeld, ingest.WorkHeld, ""},
		{ingest.WorkFailed, ingest.WorkFailed, ""},
		{ingest.WorkCleanUp, ingest.WorkFailed, dueRank(files)},
	} {
		query := table.Query{Index: "work", PK: at.query, Limit: countedMost}
		if quick && at.query == ingest.WorkCleanUp {
			query.Limit = quickFiled
		}
		if at.to != "" {
			query.From, query.To = "0", at.to
		}
		var page []candidate
		more, err := q.Table.Page(ctx, query, &page)
		if err != nil {
			return t, err
		}
		if at.query == ingest.WorkCleanUp {
			if page, err = q.failed(ctx, page, &t); err != nil {
				return t, err
			}
		}
		for _, w := range page {
			if isJob(w) {
				t.add(w.ID, w.Collection, at.place, w.Space)
			}
		}
		t.cutAt(more, at.place)
	}
	return t, q.tallyRunning(ctx, &t, quick)
}

// failed are the failed jobs among those whose work files are still to be removed: jobs that were
// deleted are there, too. The index does not have their states, so their rows are read, one
// request for each hundred.
func (q *Queue) failed(ctx context.Context, page []candidate, t *Tally) ([]candidate, error) {
	still, unreadable, err := q.those(ctx, page, func(j *Job) bool { return j.State == ingest.Failed })
	t.Unreadable += unreadable
	return still, err
}

// those are the jobs of a page of the index for whose rows something holds, and how many of these
// rows cannot be read.
func (q *Queue) those(ctx context.Context, page []candidate, holds func(*Job) bool) (
	found []candidate, unreadable int, err error) {
	var keys []table.Key
	for _, w := range page {
		if isJob(w) {
			keys = append(keys, w.Key())
		}
	}
	rows, err := q.Table.Many(ctx, keys)
	if err != nil {
		return nil, 0, err
	}
	for _, w := range page {
		var j Job
		raw, there := rows[w.Key()]
		switch {
		case !there: // it was removed meanwhile
		case raw.Decode(&j) != nil:
			unreadable++
		case holds(&j):
			found = append(found, w)
		}
	}
	return found, unreadable, nil
}

// isJob reports whether it is a job: batches and operations are in some places, too.
func isJob(w candidate) bool { return strings.HasPrefix(w.PK, jobKey("").PK) }

// cutAt notes that there are more rows of a place.
func (t *Tally) cutAt(more, place string) {
	if more != "" && !slices.Contains(t.Cut, place) {
		t.Cut = append(t.Cut, place)
	}
}

// tallyRunning adds the jobs that have a slot, with the space that was granted to them.
func (q *Queue) tallyRunning(ctx context.Context, t *Tally, quick bool) error {
	var slots, spaces []Reservation
	moreSlots, err := q.Table.Page(ctx, table.Query{PK: slotPK, Limit: countedMost}, &slots)
	if err != nil {
		return err
	}
	moreSpaces, err := q.Table.Page(ctx, table.Query{PK: spacePK, Limit: countedMost}, &spaces)
	if err != nil {
		return err
	}
	granted := map[string]int64{}
	for _, s := range spaces {
		granted[s.Owner] = s.Bytes
	}
	for _, s := range slots {
		if s.Owner != "" { // else not a slot: see free
			t.add(s.Owner, s.Collection, Running, granted[s.Owner])
		}
	}
	t.cutAt(moreSlots+moreSpaces, Running)
	if quick {
		return nil
	}
	return q.tallyDeferred(ctx, t, slots)
}

// tallyDeferred adds the jobs that wait until a time that their source asked for. They are among the due items, with
// those that have a slot.
func (q *Queue) tallyDeferred(ctx context.Context, t *Tally, slots []Reservation) error {
	running := map[string]bool{}
	for _, s := range slots {
		running[s.Owner] = true
	}
	cut := ""
	for shard := range ingest.DueShards {
		page, more, err := q.idleDue(ctx, shard, countedMost, running)
		if err != nil {
			return err
		}
		for _, w := range page {
			t.add(w.ID, w.Collection, Deferred, w.Space)
		}
		cut += more
	}
	t.cutAt(cut, Deferred)
	return nil
}

// idleDue are the jobs without a slot among the first due items of a shard: those that are deferred,
// and at times one whose slot was given or ended between two reads. more is "" if these are all.
func (q *Queue) idleDue(ctx context.Context, shard, most int, running map[string]bool) (
	idle []candidate, more string, err error) {
	var page []candidate
	query := table.Query{Index: "work", PK: ingest.DuePK(shard), Limit: most}
	more, err = q.Table.Page(ctx, query, &page)
	for _, w := range page {
		if isJob(w) && !running[w.ID] {
			idle = append(idle, w)
		}
	}
	return idle, more, err
}
