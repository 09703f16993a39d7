package statistics

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Store reads counts. It reads the rows of a log consistently, the list of logs by an index.
type Store struct{ Table *table.Table }

// Day is the counts of one day.
type Day struct {
	Date   string // "2026-11-22", in UTC
	Counts Counts
}

// Log is the counts of a log: of a collection, or of the events that belong to none. A log that was
// split has a row for each partition: they are added up here.
type Log struct {
	Name string
	// LastAt is the time of the last event that was counted, in milliseconds since 1970; 0 for none.
	LastAt int64
	Counts Counts
}

// Total is what was counted in a log. A log without counts has none. Such a log is no error: LastAt is
// 0, and Counts is empty, not nil.
func (s Store) Total(ctx context.Context, log string) (Log, error) {
	out, _, err := s.total(ctx, log)
	return out, err
}

// total also returns the sort key of the first of the rows.
func (s Store) total(ctx context.Context, log string) (out Log, first string, err error) {
	out = Log{Name: log, Counts: Counts{}}
	err = s.each(ctx, table.Query{PK: partition(log), Prefix: totalPrefix}, func(r Row) {
		first = cmp.Or(first, r.SK)
		out.LastAt = max(out.LastAt, r.LastAt)
		out.Counts.add(r.Counts)
	})
	return out, first, err
}

// Object is the counts of one object of a log. An object that was never downloaded has none: Counts is
// nil then.
func (s Store) Object(ctx context.Context, log, ark string) (Log, error) {
	var r Row
	err := s.Table.Get(ctx, table.Key{PK: partition(log), SK: objectPrefix + ark}, &r)
	if fault.Is(err, fault.NotFound) {
		err = nil
	}
	return Log{Name: log, LastAt: r.LastAt, Counts: r.Counts}, err
}

// MostDays is the maximum number of days of one list.
const MostDays = 366

// Days lists the counts of the days from one to another, both included, in order. Days without counts
// are left out. More than MostDays are an Invalid. from and to are midnights in UTC. A day has a row
// for each partition; these follow each other in the order of the sort key, so they are added up as
// they come.
func (s Store) Days(ctx context.Context, log string, from, to time.Time) ([]Day, error) {
	if days := to.Sub(from).Hours() / 24; days < 0 || days >= MostDays {
		return nil, fault.New(fault.Invalid, "from, to: expected 1 to %d days, found %s to %s",
			MostDays,
			from.Format(time.DateOnly), to.Format(time.DateOnly))
	}

	var days []Day
	q := table.Query{
		PK:   partition(log),
		From: dayPrefix + from.Format(time.DateOnly),
		To:   dayPrefix + to.Format(time.DateOnly) + "$",
	} // "$" is after "#"

	err := s.each(ctx, q, func(r Row) {
		date, _, _ := strings.Cut(strings.TrimPrefix(r.SK, dayPrefix), "#")
		if len(days) == 0 || days[len(days)-1].Date != date {
			days = append(days, Day{date, Counts{}})
		}
		days[len(days)-1].Counts.add(r.Counts)
	})
	return days, err
}

// Logs lists the logs that have counts, a page at a time, in order of their names. The index may lag.
// The index has a row for each partition. A log of several is listed where its first row is, so that no
// page repeats it; a page can therefore be short, and even empty, before the end.
func (s Store) Logs(ctx context.Context, cursor string) (logs []Log, next string, err error) {
	var rows []Row
	next, err = s.Table.Page(ctx, table.Query{Index: "list", PK: listed, Cursor: cursor}, &rows)
	if err != nil {
		return nil, "", err
	}

	for _, r := range rows {
		name := strings.TrimPrefix(r.PK, partition(""))
		log, first, err := s.total(ctx, name)
		if err != nil {
			return nil, "", err
		}
		if r.SK == first { // a log of several partitions is listed once
			logs = append(logs, log)
		}
	}
	return logs, next, nil
}

// Collections lists the collections that have counts, in order of their names. The index may lag.
func (s Store) Collections(ctx context.Context) (names []string, err error) {
	err = s.each(ctx, table.Query{Index: "list", PK: listed}, func(r Row) {
		name := strings.TrimPrefix(r.PK, partition(""))
		if name != envelope.Site && !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names, err
}

// each calls f with every row of a query. It reads all pages. A log has a few rows for its partitions,
// and at most MostDays times that for days.
func (s Store) each(ctx context.Context, q table.Query, f func(Row)) error {
	for first := true; first || q.Cursor != ""; first = false {
		var rows []Row
		next, err := s.Table.Page(ctx, q, &rows)
		if err != nil {
			return err
		}
		for _, r := range rows {
			f(r)
		}
		q.Cursor = next
	}
	return nil
}

// Hour is the counts of an hour of all logs.
type Hour struct {
	Begin  time.Time // in UTC
	Counts Counts
}

// MostPartitions is how many partitions of the log are added up by Hours, the first by name.
const MostPartitions = 300

// Hours are the counts of the last hours of all collections, the one of now last: how many jobs were completed and
// failed, and how many bytes were stored. Each has an entry, also without counts. cut is true if there are more
// partitions of the log than were read. It is a query of the index, which may lag, and one request for each hundred
// partitions.
func (s Store) Hours(ctx context.Context, now time.Time, hours int) (out []Hour, cut bool, err error) {
	rows, cut, err := s.partitions(ctx)
	if err != nil {
		return nil, false, err
	}

	at := map[string]Counts{}
	for _, r := range rows {
		for name, counts := range r.Hours {
			if at[name] == nil {
				at[name] = Counts{}
			}
			at[name].add(counts)
		}
	}
	for i := range hours {
		begin := now.UTC().Truncate(time.Hour).Add(time.Duration(i+1-hours) * time.Hour)
		out = append(out, Hour{begin, at[begin.Format(hourForm)]})
	}
	return out, cut, nil
}

// All adds up what was counted of all collections; cut is true if there are more partitions of
// the log than were read. It costs what Hours costs.
func (s Store) All(ctx context.Context) (sum Counts, cut bool, err error) {
	rows, cut, err := s.partitions(ctx)
	sum = Counts{}
	for _, r := range rows {
		sum.add(r.Counts)
	}
	return sum, cut, err
}

// partitions reads the rows of the partitions of the log of all collections, at most
// MostPartitions; cut is true if there are more.
func (s Store) partitions(ctx context.Context) (all []Row, cut bool, err error) {
	var listing []Row
	more, err := s.Table.Page(ctx, table.Query{Index: "list", PK: listed, Limit: MostPartitions}, &listing)
	if err != nil {
		return nil, false, err
	}
	var keys []table.Key
	for _, r := range listing {
		if r.PK != partition(envelope.Site) {
			keys = append(keys, r.Key())
		}
	}
	rows, err := s.Table.Many(ctx, keys)
	if err != nil {
		return nil, false, err
	}

	for _, raw := range rows {
		var r Row
		if err := raw.Decode(&r); err != nil {
			return nil, false, err
		}
		all = append(all, r)
	}
	return all, more != "", nil
}
