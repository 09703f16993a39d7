package search

import (
	"fmt"
	"slices"
	"testing"
)

// TestYears: days, months and years are counted in their year; the latest year is first, and of too many years those
// with most objects stay.
func TestYears(t *testing.T) {
	got := Years(map[string]int{"1851": 2, "1851-05": 1, "1851-05-17": 3, "1904-01-01": 1})
	if want := []YearCount{{"1904", 1}, {"1851", 6}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	many := map[string]int{"1500": 9}
	for i := range 2 * MaxFacets {
		many[fmt.Sprint(1900+i)] = 1
	}
	got = Years(many)
	if last := got[len(got)-1]; len(got) != MaxFacets || last != (YearCount{"1500", 9}) || got[0].Year != "1939" {
		t.Errorf("%v", got)
	}
	if got := Years(nil); got != nil {
		t.Errorf("of no day: %v", got)
	}
}
