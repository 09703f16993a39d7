package consumer

import (
	"cmp"
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/envelope"
)

// limits: how much is read at once, and in how many partitions events are read at most: by a tick,
// and by ShowLate.
const (
	allAtOnce = 8
	allReads  = 100
	lateReads = 8
)

// excerpts are the events that consumers share.
type excerpts struct {
	near   map[string][]envelope.Event         // the newest of a partition, from the first of those that are near on
	begins map[string]int64                    // the seq before these
	next   map[envelope.Place][]envelope.Event // the next event, where a consumer is far behind
	missed map[string]bool                     // partitions of which not all was read
	passed map[string]bool                     // partitions in which nobody is late
}

// sighted are consumers, and where each of them is.
type sighted struct {
	list []Consumer
	at   []map[string]cursor
}

// ShowLate is Show for all consumers by name, for whoever asks only which are paused before events, or
// behind for longer than a time though they run whenever there are events. It costs a call for each
// consumer. Events are read only where that may be so, where they wait longest first, within
// lateReads: so it costs little while all is well. Elsewhere consumers are shown as if they were not
// behind. It is right of events that are in the log within half of that time. unread is in how many
// more partitions somebody is behind: those events are not counted; what is parked or stopped there
// is known. The next runs are left out.
func (s *Store) ShowLate(ctx context.Context, late time.Duration) (all []Status, unread int, err error) {
	list, err := s.List(ctx)
	if err != nil {
		return nil, 0, err
	}
	partitions, err := s.Log.Partitions(ctx)
	if err != nil {
		return nil, 0, err
	}

	seen := sighted{list, make([]map[string]cursor, len(list))}
	err = atOnce(ctx, allAtOnce, len(list), func(ctx context.Context, i int) (err error) {
		seen.at[i], err = s.places(ctx, list[i].Name)
		return err
	})
	if err != nil {
		return nil, 0, err
	}

	counts := func(c Consumer) bool { return c.Paused || c.Mode != Scheduled }
	n, err := s.excerpts(ctx, behindIn(partitions, &seen, counts), late, lateReads)
	if err != nil {
		return nil, 0, err
	}
	all, err = s.statuses(ctx, partitions, &seen, counts, n)
	return all, len(n.missed), err
}

// anyone counts all consumers.
func anyone(Consumer) bool { return true }

// statuses are those of consumers, by what was read of the events. Those that do not count are shown
// as if they were not behind.
func (s *Store) statuses(ctx context.Context, partitions []envelope.Partition, seen *sighted,
	counts func(Consumer) bool, n *excerpts) (all []Status, err error) {
	all = make([]Status, len(seen.list))
	for i, c := range seen.list {
		if all[i], err = s.statusBy(ctx, c, partitions, seen.at[i], counts(c), n); err != nil {
			return nil, err
		}
	}
	return all, nil
}

// statusBy is that of a consumer, by what was read of the events.
func (s *Store) statusBy(ctx context.Context, c Consumer, partitions []envelope.Partition,
	at map[string]cursor, counts bool, n *excerpts) (Status, error) {
	missed := false
	read := func(_ context.Context, p envelope.Partition, seq int64) ([]envelope.Event, error) {
		if !counts {
			return nil, nil
		}
		facts, known := n.after(p, seq)
		missed = missed || !known
		return facts, nil
	}
	st, err := s.status(ctx, c, partitions, at, read)
	st.AtLeast = st.AtLeast || missed
	return st, err
}

// waits is a partition in which some consumers are behind: they have handled all up to seqs, of which least is the
// least.
type waits struct {
	envelope.Partition
	seqs   []int64
	least  int64
	paused bool  // one of them is paused
	first  int64 // when the event after least happened
}

// behindIn are the partitions in which some consumers are behind, of those that count.
func behindIn(partitions []envelope.Partition, seen *sighted,
	counts func(Consumer) bool) (behind []waits) {
	for _, p := range partitions {
		w := waits{Partition: p, least: p.Head}
		for i, places := range seen.at {
			if seq := places[p.Name].Seq; seq < p.Head && counts(seen.list[i]) {
				w.seqs = append(w.seqs, seq)
				w.least, w.paused = min(w.least, seq), w.paused || seen.list[i].Paused
			}
		}
		if w.least < p.Head {
			behind = append(behind, w)
		}
	}
	return behind
}

// excerpts reads what consumers have still to handle. It costs a call for each partition in which some
// are behind, within most. Where some are far behind, a hundred next events cost a call. With a time
// it is as ShowLate says.
func (s *Store) excerpts(ctx context.Context, behind []waits, late time.Duration, most int) (*excerpts, error) {
	n := &excerpts{near: map[string][]envelope.Event{}, begins: map[string]int64{},
		next: map[envelope.Place][]envelope.Event{}, missed: map[string]bool{}, passed: map[string]bool{}}
	if late > 0 {
		var err error
		if behind, err = n.long(ctx, s, behind, late); err != nil {
			return nil, err
		}
	}
	each := allAtOnce
	if late == 0 { // nobody waits for the tick
		each = 1
	}
	return n, n.read(ctx, s, behind, most, each)
}

// long are the partitions in which events may wait for longer than a time, or for a consumer that is paused: where the
// first of them waits for half of that time. Where they wait longest is the first.
func (n *excerpts) long(ctx context.Context, s *Store, all []waits, than time.Duration) (long []waits, err error) {
	places := make([]envelope.Place, len(all))
	for i, w := range all {
		places[i] = envelope.Place{Partition: w.Name, Seq: w.least + 1}
	}
	first, err := s.Log.At(ctx, places)
	if err != nil {
		return nil, err
	}

	since := s.Now().Add(-than / 2).UnixMilli()
	for i, w := range all {
		w.first = first[places[i]].Time // 0, if it is not in the table any more
		if w.paused || w.first <= since {
			long = append(long, w)
		} else {
			n.passed[w.Name] = true
		}
	}
	slices.SortStableFunc(long, func(a, b waits) int { return cmp.Compare(a.first, b.first) })
	return long, nil
}

// read reads the events that consumers have still to handle, as far as Show looks at them, in so many partitions: of
// those that are far behind the next event, else all. each is how many are read at once.
func (n *excerpts) read(ctx context.Context, s *Store, behind []waits, most, each int) error {
	type part struct {
		envelope.Partition
		after int64
	}
	var parts []part
	var places []envelope.Place
	for i, w := range behind {
		if i >= most {
			n.missed[w.Name] = true
			continue
		}
		slices.Sort(w.seqs)
		for _, seq := range slices.Compact(w.seqs) {
			if !far(w.Partition, seq) { // the others are nearer
				n.begins[w.Name] = seq
				parts = append(parts, part{w.Partition, seq})
				break
			}
			places = append(places, envelope.Place{Partition: w.Name, Seq: seq + 1})
		}
	}

	next, err := s.Log.At(ctx, places)
	if err != nil {
		return err
	}
	for p, e := range next {
		n.next[p] = []envelope.Event{e}
	}
	facts := make([][]envelope.Event, len(parts))
	err = atOnce(ctx, each, len(parts), func(ctx context.Context, i int) (err error) {
		facts[i], err = s.readAfter(ctx, parts[i].Partition, parts[i].after)
		return err
	})
	for i, p := range parts {
		n.near[p.Name] = facts[i]
	}
	return err
}

// after are the events of a partition after a seq, as far as they were read; known is false if they
// were not. A next event that At did not read is missed: Show reads it from the archive.
func (n *excerpts) after(p envelope.Partition, seq int64) (facts []envelope.Event, known bool) {
	facts, read := n.next[envelope.Place{Partition: p.Name, Seq: seq + 1}]
	if read || n.passed[p.Name] {
		return facts, true
	}
	begins, read := n.begins[p.Name]
	if !read || seq < begins {
		n.missed[p.Name] = true
		return nil, false
	}
	facts = n.near[p.Name]
	i := slices.IndexFunc(facts, func(e envelope.Event) bool { return e.Seq > seq })
	if i < 0 {
		return nil, true
	}
	return facts[i:], true
}

// atOnce calls f for each number below n, several at once; if that is one, in their order, up to the first error.
func atOnce(ctx context.Context, several, n int, f func(ctx context.Context, i int) error) error {
	if several == 1 {
		for i := range n {
			if err := f(ctx, i); err != nil {
				return err
			}
		}
		return nil
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(several)
	for i := range n {
		g.Go(func() error { return f(ctx, i) })
	}
	return g.Wait()
}
