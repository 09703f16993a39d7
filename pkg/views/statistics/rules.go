package statistics

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Recount is what the events of a partition say that is never removed: how many objects, versions, files and bytes
// were added, up to the event that was counted last when the recount began. It is stored in cursors.
type Recount struct {
	Log string `json:"log"`
	Seq int64  `json:"seq"`
	// Had is what was counted up to then, and Found what the events say, in the order of permanent.
	Had   [4]int64 `json:"had"`
	Found [4]int64 `json:"found"`
}

// permanent are the counts that follow from events which are never removed.
var permanent = [4]string{Objects, Versions, Files, Bytes}

// MaxRecounts is the number of partitions of the log that are recounted at once, the first by name. All recounts of
// a run are in one cursor.
const MaxRecounts = 500

// Rules are the rules of counts.
func Rules(pg *check.Page) check.Rules {
	r := &recounts{Store: Store{Table: pg.Table}, pg: pg}
	return check.Rules{
		Name: Name,
		Kinds: []check.Kind{
			{PK: "STATISTICS", SK: dayPrefix, Rule: checkDay},
			{PK: "STATISTICS"},
		},
		State: &r.all,
		Begin: r.begin,
		Row:   r.add,
		End:   r.compare,
	}
}

// checkDay checks that the total of a day's partition is there: without it nothing is compared. The days of a log
// follow each other, so the first is enough.
func checkDay(ctx context.Context, x *check.Row) error {
	if x.Before.PK == x.PK {
		return nil
	}

	total := totalOf(x.Key)
	missing, err := x.Missing(ctx, total)
	if missing {
		x.Add("statistics-counts", check.Restore, nil, "days are counted, but there is no row %s", total)
	}
	return err
}

// recounts are the recounts of the partitions of the log, as far as rows were read.
type recounts struct {
	Store
	pg  *check.Page
	all map[string]*Recount
}

// begin begins to recount the partitions that have counts, by their names.
func (s *recounts) begin(ctx context.Context) error {
	var keys []table.Key
	err := s.each(ctx, table.Query{Index: "list", PK: listed}, func(r Row) {
		if len(keys) < MaxRecounts {
			keys = append(keys, r.Key())
		}
	})
	if err != nil {
		return err
	}

	rows, err := s.Table.Many(ctx, keys)
	s.all = map[string]*Recount{}
	for k, raw := range rows {
		var r Row
		if raw.Decode(&r) != nil {
			continue // the check of the row says so
		}
		one := &Recount{Log: strings.TrimPrefix(k.PK, partition("")), Seq: r.LastSeq}
		for i, name := range permanent {
			one.Had[i] = r.Counts[name]
		}
		s.all[strings.TrimPrefix(k.SK, totalPrefix)] = one
	}
	return err
}

// add adds a row to the recounts, if it is an event that they count.
func (s *recounts) add(row table.Raw) {
	if !strings.HasPrefix(row.SK, event.Prefix) {
		return
	}

	var is event.Row
	if row.Decode(&is) != nil || is.Seq == 0 || s.all[is.Partition] == nil || is.Seq > s.all[is.Partition].Seq {
		return
	}

	e, err := is.Envelope()
	if err != nil {
		return
	}
	for i, name := range permanent {
		s.all[is.Partition].Found[i] += countsOf(e)[name]
	}
}

// compare compares the counts of each partition of the log with its events, at the end of all rows.
func (s *recounts) compare(ctx context.Context) (wrong []check.Problem, err error) {
	for _, name := range slices.Sorted(maps.Keys(s.all)) {
		one, err := s.compareOne(ctx, name, s.all[name])
		if err != nil {
			return nil, err
		}
		if one != nil {
			wrong = append(wrong, *one)
		}
	}
	return wrong, nil
}

// compareTries is how often the rows of a partition are read that is counted meanwhile.
const compareTries = 3

// compareOne compares the counts of a partition with a recount that has seen every event, and with the sum of its days;
// nil if all agree. If the events and the days agree, the total is repaired. A partition in which events are counted
// all the time is left out.
func (s *recounts) compareOne(ctx context.Context, name string, r *Recount) (*check.Problem, error) {
	for range compareTries {
		total, err := s.read(ctx, name, r)
		if err != nil {
			return nil, err
		}

		days := Counts{}
		err = s.each(ctx, table.Query{PK: partition(r.Log), Prefix: dayPrefix}, func(d Row) {
			if totalOf(d.Key()) == total.Key() {
				days.add(d.Counts)
			}
		})
		if err != nil {
			return nil, err
		}

		again, err := s.read(ctx, name, r)
		if err != nil {
			return nil, err
		}
		if again.Rev == total.Rev {
			return s.judge(name, &total, r, days), nil
		}
	}
	return nil, nil
}

// totalOf is the key of the total of the partition that a day is of.
func totalOf(day table.Key) table.Key {
	_, of, _ := strings.Cut(strings.TrimPrefix(day.SK, dayPrefix), "#")
	return table.Key{PK: day.PK, SK: totalPrefix + of}
}

// read is the row of a partition; one that is gone since the recount began has no counts, and the rev 0.
func (s *recounts) read(ctx context.Context, name string, r *Recount) (Row, error) {
	total := Row{Head: table.Head{PK: partition(r.Log), SK: totalPrefix + name}, Log: r.Log}
	err := s.Table.Get(ctx, total.Key(), &total)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return total, err
}

// judge is compareOne of rows that were read at one moment. What was counted since the recount began is in both.
func (s *recounts) judge(name string, total *Row, r *Recount, days Counts) *check.Problem {
	should := Counts{}
	should.add(total.Counts)
	for i, name := range permanent {
		should[name] += r.Found[i] - r.Had[i]
	}

	byEvents, byDays := same(should, total.Counts), same(days, total.Counts)
	if byEvents && byDays {
		return nil
	}

	w := &check.Problem{Invariant: "statistics-counts", Subject: "partition:" + name, Command: check.Restore,
		Evidence: "counted are " + total.Counts.text() + "; its days have " + days.text() + "; its events say " +
			should.text()}
	// Otherwise it is not known which of them is right.
	if total.Rev > 0 && same(days, should) {
		w.Command = check.Repair
		w.Repair = func(ctx context.Context) error {
			fixed := *total
			fixed.Counts = should
			return s.pg.Commit(ctx, func(tx *table.Tx) error { tx.Save(&fixed); return nil })
		}
	}
	return w
}

// same compares counts; one that is missing is 0.
func same(a, b Counts) bool {
	return !slices.ContainsFunc(Names, func(name string) bool { return a[name] != b[name] })
}

// text has the counts that are not 0, in the order of Names.
func (c Counts) text() string {
	var parts []string
	for _, name := range Names {
		if c[name] != 0 {
			parts = append(parts, fmt.Sprintf("%d %s", c[name], name))
		}
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
