package statistics_test

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/events/envelope"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/statistics"
)

// day1 and day2 are the days of the events of a test.
var (
	day1 = time.Date(2026, 11, 21, 23, 59, 0, 0, time.UTC)
	day2 = day1.Add(2 * time.Minute)
)

// at is an event at a place of the log of the collection maps.
func at(partition string, seq int64, when time.Time, e envelope.Event) consumer.Item {
	e.ID, e.Partition, e.Seq, e.Time = fmt.Sprintf("%s-%d", partition, seq), partition, seq, when.UnixMilli()
	e.Parents = append([]envelope.Ref{{Type: "Collection", ID: "maps"}}, e.Parents...)
	return consumer.Item{Event: e}
}

func create() envelope.Event { return envelope.Event{Type: "object.create", Action: envelope.Create} }

func stored(files, bytes int) envelope.Event {
	return envelope.Event{Type: "version.create", Action: envelope.Create,
		Detail: fmt.Appendf(nil, `{"files": %d, "bytes": %d}`, files, bytes)}
}

func state(to string) envelope.Event {
	return envelope.Event{Type: "job.state", Action: envelope.Modify, Detail: fmt.Appendf(nil, `{"to": %q}`, to)}
}

func download(ark string) envelope.Event {
	return envelope.Event{Type: "file.disseminate", Action: envelope.Disseminate,
		Parents: []envelope.Ref{{Type: "Object", ID: ark}}}
}

// events are those of a collection whose log was split in two: all are counted in want.
func events() [][]consumer.Item {
	return [][]consumer.Item{{
		at("maps", 1, day1, create()),
		at("maps", 2, day1, stored(2, 300)),
		at("maps", 3, day1, state("Storing")),
		at("maps", 4, day1, state("Completed")),
		at("maps", 5, day2, download("ark:/1/a")),
		at("maps", 6, day2, download("ark:/1/b")),
	}, {
		at("maps.2.1", 1, day2, state("Failed")),
		at("maps.2.1", 2, day2, download("ark:/1/a")),
	}}
}

var want = statistics.Counts{"objects": 1, "versions": 1, "files": 2, "bytes": 300, "completed": 1, "failed": 1,
	"downloads": 3}

// counter counts in a table whose calls pass through do.
func counter(fake *tabletest.Fake, do func(op string, call func() error) error) statistics.Counter {
	n := 0
	return statistics.Counter{Table: tabletest.Through(fake, do),
		NewID: func() string { n++; return fmt.Sprintf("tx-%p-%d", &n, n) }}
}

func through(_ string, call func() error) error { return call() }

func handle(t *testing.T, c statistics.Counter, items []consumer.Item) {
	t.Helper()
	failures, err := c.Handle(t.Context(), consumer.Batch{Consumer: statistics.Name, Events: items})
	if err != nil || len(failures) > 0 {
		t.Fatal(failures, err)
	}
}

// check compares all that is read of the events' counts.
func check(t *testing.T, tb *table.Table) {
	t.Helper()
	s := statistics.Store{Table: tb}
	total, err := s.Total(t.Context(), "maps")
	if err != nil || !reflect.DeepEqual(total.Counts, want) || total.LastAt != day2.UnixMilli() {
		t.Errorf("total %+v, %v; want %v", total, err, want)
	}
	days, err := s.Days(t.Context(), "maps", day1, day2)
	wantDays := []statistics.Day{
		{Date: "2026-11-21", Counts: statistics.Counts{"objects": 1, "versions": 1, "files": 2, "bytes": 300,
			"completed": 1}},
		{Date: "2026-11-22", Counts: statistics.Counts{"failed": 1, "downloads": 3}}}
	if err != nil || !reflect.DeepEqual(days, wantDays) {
		t.Errorf("days %+v, %v; want %+v", days, err, wantDays)
	}
	for ark, n := range map[string]int64{"ark:/1/a": 2, "ark:/1/b": 1, "ark:/1/c": 0} {
		if o, err := s.Object(t.Context(), "maps", ark); err != nil || o.Counts[statistics.Downloads] != n {
			t.Errorf("%s: %v, %v; want %d downloads", ark, o.Counts, err, n)
		}
	}
	logs, next, err := s.Logs(t.Context(), "")
	if err != nil || next != "" || len(logs) != 1 || !reflect.DeepEqual(logs[0], total) {
		t.Errorf("logs %+v, %q, %v", logs, next, err)
	}
}

// TestCounts: events are counted once each, whether they come together, again, one by one,
// or as a replay.
func TestCounts(t *testing.T) {
	fake := tabletest.New()
	c := counter(fake, through)
	for _, items := range events() {
		handle(t, c, items[:2])
		handle(t, c, items) // the first again, after a run that died
		for _, item := range items {
			handle(t, c, []consumer.Item{item})
		}
		if _, err := c.Handle(t.Context(), consumer.Batch{Replay: true, Events: items}); err != nil {
			t.Fatal(err)
		}
	}
	check(t, c.Table)
}

// TestMany: more objects than one transaction holds are counted, each once.
func TestMany(t *testing.T) {
	c := counter(tabletest.New(), through)
	var items []consumer.Item
	for n := range 250 {
		items = append(items, at("maps", int64(n+1), day1, download(fmt.Sprint("ark:/1/", n))))
	}
	handle(t, c, items)
	handle(t, c, items)
	total, err := statistics.Store{Table: c.Table}.Total(t.Context(), "maps")
	if err != nil || total.Counts[statistics.Downloads] != 250 {
		t.Errorf("%+v, %v; want 250 downloads", total, err)
	}
}

// TestCrash: a run that dies before or after any call, or whose answer is lost, is repeated
// and counts each event once.
func TestCrash(t *testing.T) {
	tabletest.Crashes(t, 5, func(t *testing.T, m *tabletest.Mortal) {
		fake := tabletest.New()
		dying := counter(fake, m.Do)
		for _, items := range events() {
			_, _ = dying.Handle(t.Context(), consumer.Batch{Events: items})
		}
		again := counter(fake, through)
		for _, items := range events() {
			handle(t, again, items)
		}
		check(t, again.Table)
	})
}

// TestParts: two parts of a split log count downloads of one object at the same time.
func TestParts(t *testing.T) {
	fake := tabletest.New()
	other := counter(fake, through)
	second := []consumer.Item{at("maps.2.1", 1, day1, download("ark:/1/a"))}
	done := false
	c := counter(fake, func(op string, call func() error) error {
		if op == "TransactWriteItems" && !done {
			done = true
			handle(t, other, second) // between the read and the write
		}
		return call()
	})
	handle(t, c, []consumer.Item{at("maps.2.0", 1, day1, download("ark:/1/a"))})
	o, err := statistics.Store{Table: c.Table}.Object(t.Context(), "maps", "ark:/1/a")
	if err != nil || !done || o.Counts[statistics.Downloads] != 2 {
		t.Errorf("%v, %v; want 2 downloads", o, err)
	}
}

// TestDaysBounds: a list of days is bounded.
func TestDaysBounds(t *testing.T) {
	s := statistics.Store{Table: tabletest.Open(t)}
	for _, to := range []time.Time{day1.AddDate(0, 0, -1), day1.AddDate(2, 0, 0)} {
		if _, err := s.Days(t.Context(), "maps", day1, to); err == nil {
			t.Errorf("days to %s were listed", to)
		}
	}
}
