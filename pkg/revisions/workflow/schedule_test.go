package workflow_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/revisions/workflow"
)

// TestNext: times of the clock on the wall, through both changes of it.
func TestNext(t *testing.T) {
	const berlin, york = "Europe/Berlin", "America/New_York"
	for name, c := range map[string]struct{ cron, zone, after, want string }{ // want: times in UTC, one after the other
		"Berlin, forward, left out": {"30 2 * * *", berlin, "03-28T12:00", "03-29T01:00 03-30T00:30"},
		"Berlin, forward, once":     {"*/20 2 * * *", berlin, "03-28T12:00", "03-29T01:00 03-30T00:00 03-30T00:20"},
		"Berlin, forward, with 3":   {"0,30 2-3 * * *", berlin, "03-28T12:00", "03-29T01:00 03-29T01:30 03-30T00:00"},
		"Berlin, forward, not left": {"30 3 * * *", berlin, "03-28T12:00", "03-29T01:30 03-30T01:30"},
		"Berlin, forward, hourly":   {"30 * * * *", berlin, "03-28T23:45", "03-29T00:30 03-29T01:30 03-29T02:30"},
		"Berlin, forward, minutes":  {"* * * * *", berlin, "03-29T00:58", "03-29T00:59 03-29T01:00 03-29T01:01"},
		"Berlin, back, twice":       {"30 2 * * *", berlin, "10-24T12:00", "10-25T00:30 10-26T01:30"},
		"Berlin, back, in between":  {"30 2 * * *", berlin, "10-25T00:45", "10-26T01:30"},
		"Berlin, back, again":       {"30 2 * * *", berlin, "10-25T01:15", "10-26T01:30"},
		"Berlin, back, with 3":      {"0 2,3 * * *", berlin, "10-24T12:00", "10-25T00:00 10-25T02:00 10-26T01:00"},
		"Berlin, back, hourly":      {"30 * * * *", berlin, "10-24T23:45", "10-25T00:30 10-25T01:30 10-25T02:30"},
		"Berlin, back, minutes":     {"* * * * *", berlin, "10-25T00:58", "10-25T00:59 10-25T01:00 10-25T01:01"},
		"Berlin, back, ten minutes": {"*/10 * * * *", berlin, "10-25T00:50", "10-25T01:00 10-25T01:10 10-25T01:20"},
		"Berlin, on a date":         {"30 2 29 3 *", berlin, "01-01T00:00", "03-29T01:00"},
		"Berlin, on Sundays":        {"0 2 * * 0", berlin, "10-19T00:00", "10-25T00:00 11-01T01:00"},
		"York, forward, left out":   {"30 2 * * *", york, "03-07T12:00", "03-08T07:00 03-09T06:30"},
		"York, forward, hourly":     {"0 * * * *", york, "03-08T05:30", "03-08T06:00 03-08T07:00 03-08T08:00"},
		"York, back, twice":         {"30 1 * * *", york, "10-31T12:00", "11-01T05:30 11-02T06:30"},
		"York, back, every hour":    {"15 0-23 * * *", york, "11-01T04:30", "11-01T05:15 11-01T06:15 11-01T07:15"},
		"York, back, third hours":   {"0 */1 * * *", york, "11-01T04:30", "11-01T05:00 11-01T06:00 11-01T07:00"},
		"Lord Howe, half an hour":   {"15 2 * * *", "Australia/Lord_Howe", "10-03T00:00", "10-03T15:30 10-04T15:15"},
		"UTC":                       {"30 2 * * *", "UTC", "03-28T12:00", "03-29T02:30 03-30T02:30"},
	} {
		s := workflow.Schedule{Cron: c.cron, Zone: c.zone}
		at, _ := time.Parse("2006-01-02T15:04", "2026-"+c.after)
		var got []string
		for range strings.Fields(c.want) {
			next, err := s.Next(at)
			if err != nil {
				t.Fatal(name, err)
			}
			at = next
			got = append(got, next.UTC().Format("01-02T15:04"))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v; want %s", name, got, c.want)
		}
	}
	leap, err := workflow.Schedule{Cron: "0 0 29 2 *", Zone: berlin}.Next(time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC))
	if err != nil || leap.UTC().Format(time.RFC3339) != "2028-02-28T23:00:00Z" {
		t.Error(leap, err)
	}
}

// TestNextSlow: Next agrees with looking at each minute of a year, in zones that change their clocks.
func TestNextSlow(t *testing.T) {
	for _, zone := range []string{"Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"} {
		for _, cron := range []struct {
			text   string
			every  bool
			minute func(int) bool
			hour   func(int) bool
		}{
			{"*/15 * * * *", true, func(m int) bool { return m%15 == 0 }, func(int) bool { return true }},
			{"5,35 1-3 * * *", false, func(m int) bool { return m == 5 || m == 35 },
				func(h int) bool { return h >= 1 && h <= 3 }},
			{"0 */2 * * *", false, func(m int) bool { return m == 0 }, func(h int) bool { return h%2 == 0 }},
			{"59 23 * * *", false, func(m int) bool { return m == 59 }, func(h int) bool { return h == 23 }},
		} {
			loc, err := time.LoadLocation(zone)
			if err != nil {
				t.Fatal(err)
			}
			due := func(wall time.Time) bool { return cron.minute(wall.Minute()) && cron.hour(wall.Hour()) }
			want := slow(loc, cron.every, due)
			s := workflow.Schedule{Cron: cron.text, Zone: zone}
			at := slowStart.Add(-time.Second)
			for i, w := range want {
				from, to := w.In(loc).ZoneBounds()
				if w.Sub(from) > 48*time.Hour && to.Sub(w) > 48*time.Hour {
					at = w // far from a change
					continue
				}
				next, err := s.Next(at)
				if err != nil || !next.Equal(w) {
					t.Fatalf("%s %s: number %d is %s, %v; want %s", zone, cron.text, i, next, err, w)
				}
				at = next
			}
		}
	}
}

var slowStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// slow are the times of a schedule in a year, found minute by minute: what the clock shows is a time of the
// schedule if it did not show it before; what it leaves out is made up for at the next minute.
func slow(loc *time.Location, every bool, due func(time.Time) bool) []time.Time {
	var out []time.Time
	wall := func(at time.Time) time.Time {
		at = at.In(loc)
		return time.Date(at.Year(), at.Month(), at.Day(), at.Hour(), at.Minute(), 0, 0, time.UTC)
	}
	shown := wall(slowStart.Add(-time.Minute)) // the latest
	for at := slowStart; at.Year() == 2026; at = at.Add(time.Minute) {
		now := wall(at)
		hit := due(now)
		if !every {
			hit = false
			for shown.Before(now) {
				shown = shown.Add(time.Minute)
				hit = hit || due(shown)
			}
		}
		if hit {
			out = append(out, at)
		}
	}
	return slices.Clip(out)
}

// TestLeapYears: the last day of a leap year is one like any other, also beyond the times that zones list.
func TestLeapYears(t *testing.T) {
	for _, c := range []struct{ cron, zone, after, want string }{
		{"0 2 8 * *", "Europe/Berlin", "2040-12-10T03:00:00Z", "2041-01-08T01:00:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2040-12-30T22:00:00Z", "2040-12-31T01:30:00Z"},
		{"30 2 * * *", "Europe/Berlin", "2040-12-31T03:00:00Z", "2041-01-01T01:30:00Z"},
		{"0 12 * * *", "Australia/Lord_Howe", "2044-12-31T02:00:00Z", "2045-01-01T01:00:00Z"},
		{"0 0 1 1 *", "America/St_Johns", "2048-01-03T03:00:00Z", "2049-01-01T03:30:00Z"},
	} {
		after, err := time.Parse(time.RFC3339, c.after)
		if err != nil {
			t.Fatal(err)
		}
		next, err := workflow.Schedule{Cron: c.cron, Zone: c.zone}.Next(after)
		if got := next.UTC().Format(time.RFC3339); err != nil || got != c.want {
			t.Errorf("%s %s after %s: %s, %v; want %s", c.cron, c.zone, c.after, got, err, c.want)
		}
	}
}
