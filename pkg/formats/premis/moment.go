package premis

import (
	"regexp"
	"strings"
	"time"
)

// layouts of dates and times. Fractions of a second are read with each time. A date stands for
// its beginning.
var (
	withZone    = []string{"2006-01-02T15:04:05Z07:00", "2006-01-02Z07:00"}
	withoutZone = []string{"2006-01-02T15:04:05", "20060102T150405", "2006-01-02", "20060102"}
)

// imprecise are the forms of dates that name no day (source: the type edtfSimpleType of PREMIS 2.2,
// and EDTF, ISO 8601-2).
var imprecise = []struct {
	form *regexp.Regexp
	why  string
}{
	{regexp.MustCompile(`^\d{4}(-?\d{2})?$`), "names no day"},
	{regexp.MustCompile(`^(OPEN|UNKNOWN|\.\.)?$`), "is open or unknown"},
	{regexp.MustCompile(`^[\dXu?-]+[?~%]*$`), "is uncertain or approximate"},
}

// moment reads the date and time of an event, in whole milliseconds, or says why that is not
// possible. Of a period, it is the end. The reason is a part of a sentence, "names no day". A
// local time that comes twice, when a clock is put back, is one of the two.
func moment(text string, zone *time.Location) (at time.Time, why string) {
	if from, to, is := strings.Cut(text, "/"); is {
		return period(from, to, zone)
	}

	// A time zone in the text wins over the one that the caller names.
	for _, layout := range withZone {
		at, err := time.Parse(layout, text)
		if err == nil {
			return at.Truncate(time.Millisecond), ""
		}
	}

	for _, layout := range withoutZone {
		if _, err := time.Parse(layout, text); err != nil {
			continue
		}
		if zone == nil {
			return at, "has no time zone; name the one in which it was written"
		}
		at, err := time.ParseInLocation(layout, text, zone)
		if err == nil {
			return at.Truncate(time.Millisecond), ""
		}
	}

	for _, i := range imprecise {
		if i.form.MatchString(text) {
			return at, i.why + "; an event needs a time or a day"
		}
	}
	return at, "is not a date and time, e.g. 2013-10-25T13:06:00.000+02:00"
}

// period reads the end of a period. It may not be before its begin.
func period(from, to string, zone *time.Location) (end time.Time, why string) {
	begin, why := moment(from, zone)
	if why != "" {
		return begin, "begins at a time that " + why
	}
	end, why = moment(to, zone)
	if why != "" {
		return end, "ends at a time that " + why
	}
	if end.Before(begin) {
		return end, "ends before it begins"
	}
	return end, ""
}
