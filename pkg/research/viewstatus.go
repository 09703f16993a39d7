package research

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"archivist/pkg/table"
)

// Status is how far a project is.
type Status struct {
	ProjectState

	Ready, Closed, Away int64 // episodes
	Clips, ClipsAway    int64

	// Pairs are those of the episodes and clips that are live. Open are neither researched nor leased.
	Pairs, Researched, Leased, Open int64

	Leases      int // that have not ended
	OldestLease *Lease
	Waiting     int // work items in the queue
	Researchers int // that are present
	Capacity    int // work items that they take at once

	Results    int64         // of the present analysis, problems too
	LastHour   int64         // of these, about
	Remaining  time.Duration // until all pairs are researched, at the rate of the last hour; 0: not known
	Recounting bool          // the archivist is counting again: the numbers of pairs may be out of date

	Troubled []Known // what is set aside or deferred, of each kind and state the first
	More     bool    // there are more of these

	cat *catalog
}

// Bounds of a status.
const (
	mostTroubled = 20     // of a kind and a state
	mostLeases   = 10_000 // leases that have not ended of a project that are looked at
)

// Status counts. It costs about a dozen queries, two requests for each hundred live leases, and the changes
// of the catalog since the process read it.
func (s *Store) Status(ctx context.Context, project string) (Status, error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return Status{}, err
	}
	st := Status{ProjectState: ProjectState{Project: row.def, Round: row.Round, Paused: row.Paused},
		Clips: int64(cat.live.GetCardinality()), cat: cat}
	st.ClipsAway = int64(cat.clips.Len()) - st.Clips
	for _, part := range []func(context.Context, *projectRow, *Status) error{s.countPlaces, s.countPairs, s.countLeases,
		s.countPresent, s.countRate, s.troubled} {
		err = part(ctx, row, &st)
		if err != nil {
			return st, err
		}
	}
	return st, nil
}

// countPlaces counts episodes and clips.
func (s *Store) countPlaces(ctx context.Context, row *projectRow, st *Status) error {
	var rows []placesRow
	_, err := s.Table.Page(ctx, table.Query{PK: countsPK(row.Name), Prefix: "places#"}, &rows)
	if err != nil {
		return err
	}
	for _, r := range rows {
		st.Ready, st.Closed, st.Away = st.Ready+r.Ready, st.Closed+r.Closed, st.Away+r.Away
	}
	st.Pairs = (st.Ready + st.Closed) * st.Clips
	return nil
}

// countPairs counts what is stored of the present analysis.
func (s *Store) countPairs(ctx context.Context, row *projectRow, st *Status) (err error) {
	st.Researched, st.Results, err = s.sums(ctx, row)
	if err != nil {
		return err
	}
	walk, err := s.walk(ctx, row.Name)
	if err != nil {
		return err
	}
	counting := walk.Counted != "" && walk.Counted < counted
	st.Recounting = counting || walk.Recount < row.Recount || walk.Catalog < row.grown() || walk.After < ended
	return nil
}

// sums are the numbers of researched pairs, and of results, of the present analysis.
func (s *Store) sums(ctx context.Context, row *projectRow) (pairs, results int64, err error) {
	var rows []roundRow
	q := table.Query{PK: countsPK(row.Name), Prefix: fmt.Sprintf("round#%06d#", row.Round)}
	_, err = s.Table.Page(ctx, q, &rows)
	for _, r := range rows {
		pairs, results = pairs+r.Pairs, results+r.Results
	}
	return pairs, results, err
}

// walk reads how far the archivist has looked at episodes.
func (s *Store) walk(ctx context.Context, project string) (*walkRow, error) {
	all, err := s.read(ctx, walkKey(project))
	if err != nil {
		return nil, err
	}
	return all.walk(project)
}

// liveIDs are the ids of the leases that have not ended, the oldest first: an id begins with its time.
func (s *Store) liveIDs(ctx context.Context, project string) (ids []string, err error) {
	q := table.Query{PK: linePK(project), Prefix: dueSK + "#", Limit: 1000}
	for {
		var rows []lineRow
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			if part := strings.SplitN(r.SK, "#", 4); part[2] == "lease" {
				ids = append(ids, r.Owner)
			}
		}
		if next == "" || len(ids) >= mostLeases {
			slices.Sort(ids)
			return ids, nil
		}
		q.Cursor = next
	}
}

// leases reads leases by their ids. Those that do not exist are left out.
func (s *Store) leases(ctx context.Context, ids []string) (found []*leaseRow, err error) {
	var at []table.Key
	for _, id := range ids {
		at = append(at, leaseKey(id))
	}
	all, err := s.read(ctx, at...)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		r, err := all.lease(id)
		if err != nil {
			return nil, err
		}
		if r.Rev > 0 {
			found = append(found, r)
		}
	}
	return found, nil
}

// LiveLeases lists the leases that have not ended, the oldest first, at most 100 to a page. One whose time has
// passed is ended by the next pass of the archivist.
func (s *Store) LiveLeases(ctx context.Context, project, cursor string) (page []Lease, next string, err error) {
	_, err = s.projectRow(ctx, project)
	if err != nil {
		return nil, "", err
	}
	ids, err := s.liveIDs(ctx, project)
	if err != nil {
		return nil, "", err
	}
	i, found := slices.BinarySearch(ids, cursor)
	if found {
		i++
	}
	ids = ids[i:]
	if len(ids) > listPage {
		ids, next = ids[:listPage], ids[listPage-1]
	}
	all, err := s.leases(ctx, ids)
	for _, r := range all {
		page = append(page, r.Lease)
	}
	return page, next, err
}

func (s *Store) countLeases(ctx context.Context, row *projectRow, st *Status) error {
	ids, err := s.liveIDs(ctx, row.Name)
	if err != nil {
		return err
	}
	all, err := s.leases(ctx, ids)
	if err != nil {
		return err
	}
	var episodes []string
	for _, l := range all {
		if l.Ended > 0 {
			continue
		}
		st.Leases++
		if st.OldestLease == nil {
			st.OldestLease = &l.Lease
		}
		if l.waits() > s.now() {
			st.Waiting++
		}
		episodes = append(episodes, l.Episode)
	}
	slices.Sort(episodes)
	some, err := s.known(ctx, st.cat, row, Episode, slices.Compact(episodes))
	for _, e := range some {
		if e.live() {
			st.Leased += e.Leased
		}
	}
	st.Open = max(0, st.Pairs-st.Researched-st.Leased)
	return err
}

func (s *Store) countPresent(ctx context.Context, row *projectRow, st *Status) error {
	present, err := s.Researchers(ctx, row.Name)
	st.Researchers = len(present)
	for _, r := range present {
		st.Capacity += r.Capacity
	}
	return err
}

// countRate counts the results of the last hour, and estimates the time to the end.
func (s *Store) countRate(ctx context.Context, row *projectRow, st *Status) error {
	kept, err := s.samples(ctx, row.Name)
	if err != nil || kept.Round != row.Round {
		return err
	}
	st.LastHour = kept.since(s.now()-time.Hour.Milliseconds(), st.Results)
	if left := st.Pairs - st.Researched; left > 0 && st.LastHour > 0 {
		st.Remaining = time.Duration(float64(left) / float64(st.LastHour) * float64(time.Hour))
	}
	return nil
}

// troubled finds what is set aside or deferred.
func (s *Store) troubled(ctx context.Context, row *projectRow, st *Status) error {
	for _, kind := range []Kind{Episode, Clip} {
		for _, state := range []State{SetAside, Deferred} {
			names, next, err := s.names(ctx, st.cat, row, kind, state, "")
			if err != nil {
				return err
			}
			if next != "" || len(names) > mostTroubled {
				st.More, names = true, names[:min(len(names), mostTroubled)]
			}
			some, err := s.known(ctx, st.cat, row, kind, names)
			if err != nil {
				return err
			}
			st.Troubled = append(st.Troubled, some...)
		}
	}
	return nil
}

// sampleRow keeps the number of results at some times, to say how many came in the last hour.
type sampleRow struct {
	table.Head
	Round   int64   `dynamo:"round_no"`
	Times   []int64 `dynamo:"sampled_ms"`
	Results []int64 `dynamo:"results_list"` // at these times
}

// Samples are taken at most so often, and kept so long. While nothing is stored, none is taken.
const (
	sampleEvery = 5 * time.Minute
	sampleKept  = time.Hour
)

func sampleKey(project string) table.Key { return table.Key{PK: walkKey(project).PK, SK: "SAMPLES"} }

func (s *Store) samples(ctx context.Context, project string) (*sampleRow, error) {
	all, err := s.read(ctx, sampleKey(project))
	if err != nil {
		return nil, err
	}
	return all.samples(project)
}

// since is how many results came after a time, if there are n now. A sample stands until the next one.
func (r *sampleRow) since(ms, n int64) int64 {
	if len(r.Times) == 0 {
		return n
	}
	before := r.Results[0]
	for i, at := range r.Times {
		if at <= ms {
			before = r.Results[i]
		}
	}
	return n - before
}

// add adds a sample, and drops those that are no longer needed. It reports false if it says nothing new.
func (r *sampleRow) add(round, now, n int64) bool {
	if r.Round != round {
		r.Round, r.Times, r.Results = round, nil, nil
	}
	last := len(r.Times) - 1
	if last >= 0 && r.Results[last] == n {
		return false
	}
	r.Times, r.Results = append(r.Times, now), append(r.Results, n)
	for len(r.Times) > 1 && r.Times[1] <= now-sampleKept.Milliseconds() { // one before the hour stays
		r.Times, r.Results = r.Times[1:], r.Results[1:]
	}
	return true
}

// sample keeps the number of results, if the newest sample is old enough.
func (p *pass) sample(ctx context.Context, row *projectRow, kept *sampleRow) error {
	if n := len(kept.Times); kept.Round == row.Round && n > 0 && p.now() < kept.Times[n-1]+sampleEvery.Milliseconds() {
		return nil
	}
	_, results, err := p.sums(ctx, row)
	if err != nil || !kept.add(row.Round, p.now(), results) {
		return err
	}
	tx := p.Table.Begin(p.NewID())
	p.lease.Guard(tx)
	tx.InsertOrSave(kept)
	return tx.Commit(ctx)
}
