package research

import (
	"context"
	"slices"
	"time"

	"archivist/pkg/kernel/table"
)

// Status is how far a project is.
type Status struct {
	ProjectState

	Ready, Closed, Away int64 // episodes
	Clips, ClipsAway    int64

	// Pairs are those of the episodes and clips that are live. Each is in one of these states: it is
	// researched; its results differ; it is under a lease; it has a result, and needs that of another
	// researcher; or it is open.
	Pairs, Researched, Differ, Leased, Partial, Open int64

	Leases      int     // that have not ended
	OldestLease *Lease  // nil: there is none
	Waiting     int     // work items in the queue
	Researchers int     // that are present
	Capacity    int     // work items that they take at once
	Pauses      []Pause // researchers that get none

	Unreviewed int64         // places that wait for a person
	Results    int64         // of the present analysis, problems too
	LastHour   int64         // pairs that were researched in the last hour, about
	Remaining  time.Duration // to the end, at the rate of the last hour; 0: not known
	Recounting bool          // the assigner counts again: numbers of pairs may be old

	Differing  []Difference // pairs that a person has to decide on, the first
	MoreDiffer bool         // there are more of these

	Troubled []Known // what is quarantined or deferred, of each kind and state the first
	More     bool    // there are more of these

	cat *catalog // by which all is counted
}

// mostTroubled bounds what a status names of a kind and a state; the lists have all.
const mostTroubled = 20

// Status counts. It costs about a dozen queries, two requests for each hundred live leases, and the
// changes of the catalog since the process read it: as much for a million episodes as for one,
// because it adds up rows of counts. The numbers are of moments close to each other. It returns a
// NotFound if there is no such project.
func (s *Store) Status(ctx context.Context, project string) (Status, error) {
	row, cat, err := s.load(ctx, project)
	if err != nil {
		return Status{}, err
	}

	st := Status{
		ProjectState: ProjectState{Project: row.def, Generation: row.Generation, Paused: row.Paused},
		Clips:        int64(cat.live.GetCardinality()),
		cat:          cat,
	}

	st.ClipsAway = int64(cat.clips.Len()) - st.Clips
	for _, part := range []func(context.Context, *projectRow, *Status) error{s.countPlaces,
		s.countPairs, s.countLeases,
		s.countPresent, s.countRate, s.troubled, s.countDiffering} {
		err = part(ctx, row, &st)
		if err != nil {
			return st, err
		}
	}
	st.add()
	return st, nil
}

// countPlaces counts episodes and clips. Pairs are those of what is live: episodes at "ready" or
// "closed".
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

// countPairs counts what is stored of the present analysis. The counts of episodes that the
// archivist has not looked at since a clip went away or came back are those of before: then the
// status says that it is recounting.
func (s *Store) countPairs(ctx context.Context, row *projectRow, st *Status) (err error) {
	sum, err := s.sums(ctx, row)
	if err != nil {
		return err
	}
	st.Researched, st.Results, st.Unreviewed = sum.Pairs, sum.Results, sum.Reviews
	st.Differ, st.Partial = sum.Differ, sum.Waiting

	walk, err := s.walk(ctx, row.Name)
	if err != nil {
		return err
	}

	// Either a count is under way; or one is asked for and has not begun; or closed episodes are
	// still looked at.
	counting := walk.Counted != "" && walk.Counted < counted
	st.Recounting = counting || walk.Recount < row.Recount || walk.Catalog < row.grown() ||
		walk.After < ended || walk.former(row)
	return nil
}

// countLeases counts leases, work items in the queue, and pairs that are under a lease: those of
// which there is a result, too, are counted here only.
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
			st.Partial -= e.leasedWaiting
		}
	}
	return err
}

// add makes the numbers of pairs add up, although they are of different moments: each is at most
// what those before it leave of all, and open is what is left at the end. While the assigner counts
// again, pairs of what was withdrawn can be among the researched.
func (st *Status) add() {
	st.Open = st.Pairs
	for _, n := range []*int64{&st.Researched, &st.Differ, &st.Leased, &st.Partial} {
		*n = min(max(0, *n), st.Open)
		st.Open -= *n
	}
}

// countPresent counts researchers, and the work items that they take at once.
func (s *Store) countPresent(ctx context.Context, row *projectRow, st *Status) error {
	present, err := s.Researchers(ctx, row.Name)
	st.Researchers = len(present)
	for _, r := range present {
		st.Capacity += r.Capacity
	}

	if err == nil {
		st.Pauses, err = s.Pauses(ctx, row.Name)
	}
	return err
}

// countRate counts the pairs of the last hour, and estimates the time to the end. Without any there is no estimate.
func (s *Store) countRate(ctx context.Context, row *projectRow, st *Status) error {
	kept, err := s.samples(ctx, row.Name)
	if err != nil || kept.Generation != row.Generation {
		return err
	}
	st.LastHour = kept.since(s.now()-time.Hour.Milliseconds(), st.Researched)
	if left := st.Pairs - st.Researched; left > 0 && st.LastHour > 0 {
		st.Remaining = time.Duration(float64(left) / float64(st.LastHour) * float64(time.Hour))
	}
	return nil
}

// countDiffering finds what a person has to decide on. In a project without a quorum there is nothing.
func (s *Store) countDiffering(ctx context.Context, row *projectRow, st *Status) error {
	if row.def.quorum() == 1 {
		return nil
	}

	var next string
	var err error
	st.Differing, next, err = s.Differences(ctx, row.Name, "")
	st.MoreDiffer = next != ""
	return err
}

// troubled finds what is quarantined or deferred, the first of each kind and state.
func (s *Store) troubled(ctx context.Context, row *projectRow, st *Status) error {
	for _, kind := range []Kind{Episode, Clip} {
		for _, state := range []State{Quarantined, Deferred} {
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
