package definition

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"
	_ "time/tzdata" // a function's environment may have no time zones

	"github.com/adhocore/gronx"

	"archivist/pkg/fault"
)

// Schedule is when a dormant consumer runs.
type Schedule struct {
	Every time.Duration // 0: by the cron expression
	cron  string
	zone  *time.Location
}

var rates = regexp.MustCompile(`^rate\((\d{1,4}) (minute|hour|day)s?\)$`)

var units = map[string]time.Duration{"minute": time.Minute, "hour": time.Hour, "day": 24 * time.Hour}

// ParseSchedule reads "rate(1 hour)", or a cron expression of five fields: minute, hour, day
// of the month, month, day of the week.
func ParseSchedule(text, zone string) (Schedule, error) {
	if m := rates.FindStringSubmatch(text); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n == 0 {
			return Schedule{}, fault.New(fault.Invalid, "schedule: %q: expected at least 1", text)
		}
		return Schedule{Every: time.Duration(n) * units[m[2]], zone: time.UTC}, nil
	}
	loc, err := time.LoadLocation(zone)
	if err != nil || zone == "Local" {
		return Schedule{}, fault.New(fault.Invalid, "timeZone: %q: expected a name such as Europe/Berlin",
			Clip(zone, 60))
	}
	s := Schedule{cron: strings.TrimSuffix(strings.TrimPrefix(text, "cron("), ")"), zone: loc}
	if len(strings.Fields(s.cron)) != 5 || !gronx.IsValid(s.cron) {
		return Schedule{}, fault.New(fault.Invalid, `schedule: %q: expected e.g. "rate(1 hour)", or five fields such as `+
			`"30 2 * * *" (minute, hour, day of the month, month, day of the week)`, Clip(text, 60))
	}
	if _, err := s.Next(time.Unix(0, 0)); err != nil {
		return Schedule{}, fault.New(fault.Invalid, "schedule: %q: there is no such time", Clip(text, 60))
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
// clock on the wall: a time that does not exist, because the clock is put forward, is one
// hour later, and one that exists twice is the first of the two.
func (s Schedule) Next(after time.Time) (time.Time, error) {
	if s.Every > 0 {
		return after.Add(s.Every), nil
	}
	wall := onWall(after.In(s.zone))
	for range cronTries {
		var err error
		if wall, err = gronx.NextTickAfter(s.cron, wall, false); err != nil {
			return time.Time{}, err
		}
		// The library gives up after some steps, at a time that is not one of the schedule's.
		due, err := gronx.New().IsDue(s.cron, wall)
		if err != nil {
			return time.Time{}, err
		}
		if at := offWall(wall, s.zone); due && at.After(after) {
			return at, nil
		}
	}
	return time.Time{}, fmt.Errorf("no time of the schedule %q was found after %s", s.cron, after)
}

// cronTries bounds the search for the next time of a cron expression.
const cronTries = 100

// onWall is the time that the clock on the wall shows, as if it were UTC: there no time is
// left out or repeated.
func onWall(t time.Time) time.Time {
	return time.Date(t.Year(), t.Month(), t.Day(), t.Hour(), t.Minute(), t.Second(), 0, time.UTC)
}

// offWall is the moment at which a clock in that zone shows the time. It is computed with the
// offset of the day before: that is right for the first of two such moments, and an hour
// later than a time that does not exist.
func offWall(wall time.Time, zone *time.Location) time.Time {
	at := time.Date(wall.Year(), wall.Month(), wall.Day(), wall.Hour(), wall.Minute(), wall.Second(), 0, zone)
	_, offset := at.Add(-24 * time.Hour).Zone()
	before := wall.Add(-time.Duration(offset) * time.Second).In(zone)
	if onWall(at).Equal(wall) && !onWall(before).Equal(wall) {
		return at // the clock was changed earlier on that day
	}
	return before
}
