package definition

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a function's environment may have no time zones

	"github.com/adhocore/gronx"

	"archivist/pkg/kernel/fault"
)

// Schedule is when a dormant consumer runs. ParseSchedule makes it; the zero value has no
// times.
type Schedule struct {
	Every time.Duration // 0: by the cron expression
	cron  string
	zone  *time.Location
}

var rates = regexp.MustCompile(`^rate\((\d{1,4}) (minute|hour|day)s?\)$`)

// noWeek matches the days of weeks that no month has, e.g. 1#6. To find that out takes long.
// A name of a weekday may have #1 to #5, the first to the fifth such day of a month.
var noWeek = regexp.MustCompile(`#([^1-5]|[1-5][^,]|$)`)

var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour,
	"day": 24 * time.Hour}

// ParseSchedule reads "rate(1 hour)", or a cron expression of five fields: minute, hour, day
// of the month, month, day of the week. zone is a name of the IANA time zone database, "" for
// UTC; it counts for cron expressions only. Seconds and years of longer cron expressions are
// not accepted. What is wrong is an Invalid, also an expression that no day fulfils, such as
// the 30th of February.
func ParseSchedule(text, zone string) (Schedule, error) {
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Schedule{},
			fault.New(fault.Invalid, "timeZone: %q: expected a name such as Europe/Berlin",
				Clip(zone, 60))
	}

	if m := rates.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n == 0 {
			return Schedule{}, fault.New(fault.Invalid, "schedule: %q: expected at least 1", text)
		}
		return Schedule{Every: time.Duration(n) * units[m[2]], zone: time.UTC}, nil
	}

	s := Schedule{cron: strings.TrimSuffix(strings.TrimPrefix(text, "cron("), ")"), zone: loc}
	if len(strings.Fields(s.cron)) != 5 || !gronx.IsValid(s.cron) || noWeek.MatchString(s.cron) {
		return Schedule{}, fault.New(fault.Invalid,
			`schedule: %q: expected e.g. "rate(1 hour)", or five fields such as `+
				`"30 2 * * *" (minute, hour, day of the month, month, day of the week)`,
			Clip(text, 60))
	}

	if _, err := s.Next(time.Unix(0, 0)); err != nil {
		return Schedule{},
			fault.New(fault.Invalid, "schedule: %q: there is no such time", Clip(text, 60))
	}
	return s, nil
}

// NextTime is the first time of a schedule after a time, in that time zone.
func NextTime(text, zone string, after time.Time) (time.Time, error) {
	s, err := ParseSchedule(text, zone)
	if err != nil {
		return time.Time{}, err
	}
	return s.Next(after)
}

// Next is the first time of the schedule after a time. Cron expressions are times of the
// clock on the wall. Where the clock is put forward, what falls into the time that is left
// out runs once, right after it. Where it is put back, what falls into the time that comes
// twice runs the first time. A schedule of every hour goes on by the time that has passed.
//
// It goes from one change of the clock to the next: between two of them the wall clock and
// UTC differ by a constant, so the library, which knows no time zones here, is asked in
// wall-clock time. The error is that no time was found within cronTries steps.
func (s Schedule) Next(after time.Time) (time.Time, error) {
	if s.Every > 0 {
		return after.Add(s.Every), nil
	}

	at, inclusive := after.In(s.zone), false
	for range cronTries {
		wall := onWall(at)
		from, to := at.ZoneBounds()
		if !to.IsZero() && !to.After(at) {
			// Of leap years from 2040 on, the library leaves out the last day.
			to = at.AddDate(0, 0, 1)
		}

		if shown := s.shownBefore(from); shown.After(wall) {
			wall, inclusive = shown, true // the clock has shown these times already
		}

		wall, err := s.tick(wall, inclusive)
		if err != nil {
			return time.Time{}, err
		}

		_, offset := at.Zone()
		next := wall.Add(-time.Duration(offset) * time.Second).In(s.zone)
		switch {
		case to.IsZero() || next.Before(to):
			return next, nil
		case !s.everyHour() && wall.Before(onWall(to)):
			return to, nil // it is left out
		}

		at, inclusive = to, true
	}
	return time.Time{}, fmt.Errorf("no time of the schedule %q was found after %s", s.cron, after)
}

// shownBefore is what the clock would have shown at a change of it, had it not been changed.
// When the clock is put back by an hour, the hour before the change is shown again after it;
// what ran in it must not run twice. The zero time means that nothing is shown twice.
func (s Schedule) shownBefore(change time.Time) time.Time {
	if change.IsZero() || s.everyHour() {
		return time.Time{}
	}
	_, offset := change.Add(-time.Second).Zone()
	return change.UTC().Add(time.Duration(offset) * time.Second)
}

// everyHour reports whether no hour is left out of the schedule. Such a schedule is a pace,
// not a time of the day: at a change of the clock it goes on evenly.
func (s Schedule) everyHour() bool {
	return slices.Contains([]string{"*", "?", "*/1", "0-23"}, strings.Fields(s.cron)[1])
}

// tick is the first time that the expression names after a time, or from it on.
func (s Schedule) tick(wall time.Time, inclusive bool) (time.Time, error) {
	for range cronTries {
		next, err := gronx.NextTickAfter(s.cron, wall, inclusive)
		if err != nil {
			return time.Time{}, err
		}
		// The library gives up after some steps, at a time that is not one of the schedule's.
		due, err := gronx.New().IsDue(s.cron, next)
		if err != nil || due {
			return next, err
		}
		wall, inclusive = next, true
	}
	return time.Time{}, fmt.Errorf("no time of the schedule %q was found after %s", s.cron, wall)
}

// cronTries bounds the search for the next time of a cron expression. Each step of Next is a
// change of the clock, usually half a year; each step of tick is some years.
const cronTries = 100

// onWall is the time that the clock on the wall shows, as if it were UTC: there no time is
// left out or repeated.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}
