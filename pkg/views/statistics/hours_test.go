package statistics_test

import (
	"testing"
	"time"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/views/statistics"
)

// TestHours: what was counted of all partitions is there by hour, once, with an entry for each hour; hours that are too
// old are dropped, and late events of them are counted in their day alone.
func TestHours(t *testing.T) {
	fake := tabletest.New()
	c := counter(fake, through)
	for range 2 { // the second time, nothing is counted
		for _, items := range events() {
			handle(t, c, items)
		}
	}
	store := statistics.Store{Table: tabletest.Table(fake)}
	hours := func(now time.Time) []statistics.Hour {
		t.Helper()
		all, cut, err := store.Hours(t.Context(), now, 24)
		if err != nil || cut || len(all) != 24 {
			t.Fatalf("%d hours, %v, %v", len(all), cut, err)
		}
		return all
	}

	all := hours(day2)
	last, before := all[23], all[22]
	if !last.Begin.Equal(day2.Truncate(time.Hour)) || last.Counts[statistics.Failed] != 1 ||
		last.Counts[statistics.Completed] != 0 || before.Counts[statistics.Completed] != 1 ||
		before.Counts[statistics.Bytes] != 300 || all[21].Counts[statistics.Bytes] != 0 {
		t.Errorf("%+v\n%+v", before, last)
	}

	later := day2.Add(24 * time.Hour)
	handle(t, c, []consumer.Item{at("maps", 7, later, state("Completed")), at("maps", 8, day1, state("Completed"))})
	all = hours(later)
	if all[23].Counts[statistics.Completed] != 1 {
		t.Errorf("%+v", all[23])
	}
	if n := hours(day1)[23].Counts[statistics.Completed]; n != 0 {
		t.Errorf("of an hour that is too old are %d left", n)
	}
	total, err := store.Total(t.Context(), "maps")
	if err != nil || total.Counts[statistics.Completed] != 3 {
		t.Errorf("%+v, %v", total, err)
	}
}
