package feed

import (
	"regexp"
	"strings"
	"time"
)

// layouts are the forms of dates in feeds (RFC 822, RFC 3339, W3C-DTF), and frequent mistakes,
// after date has taken away weekdays, comments and commas. The first that fits counts.
var layouts = []string{
	"2 Jan 2006 15:04:05 -0700", "2 Jan 2006 15:04 -0700", "2 Jan 06 15:04:05 -0700",
	"2 Jan 06 15:04 -0700",
	"2 January 2006 15:04:05 -0700", "2 January 2006 15:04 -0700", "2 Jan 2006 15:04:05 -07:00",
	"2 Jan 2006 15:04:05", "2 Jan 2006 15:04", "2 Jan 2006", "2 January 2006",
	"Jan 2 2006 15:04:05 -0700", "Jan 2 15:04:05 -0700 2006",
	time.RFC3339, "2006-01-02T15:04Z07:00", "2006-01-02T15:04:05-0700", "2006-01-02T15:04:05",
	"2006-01-02T15:04",
	"2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05",
	"2006-01-02 15:04", "2006-01-02",
	"2006-01", "2006",
}

// zones are the names of zones in RFC 822, section 5.1. Others are ambiguous, and count as UTC (RFC
// 5322, section 4.3).
var zones = map[string]string{"EST": "-0500", "EDT": "-0400", "CST": "-0600", "CDT": "-0500",
	"MST": "-0700",
	"MDT": "-0600", "PST": "-0800", "PDT": "-0700"}

// Parts of dates: a comment (RFC 822, section 3.4.3), a weekday, which is often wrong and says
// nothing more, the name of a zone at the end, and an offset behind GMT or UTC.
var (
	comment  = regexp.MustCompile(`\([^()]*\)`)
	weekday  = regexp.MustCompile(`(?i)^(mon|tue|wed|thu|fri|sat|sun)[a-z]*\.?,?\s+`)
	zoneName = regexp.MustCompile(`\s([A-Za-z]{1,5})$`)
	gmtPlus  = regexp.MustCompile(`\s(?:GMT|UTC)([+-]\d{2}:?\d{2})$`)
)

// date reads a date in one of the usual forms. Without a zone it is in UTC. It reports false for
// what is none; no entry is refused for that.
func date(text string) (time.Time, bool) {
	text = strings.TrimSpace(comment.ReplaceAllString(text, " "))
	text = weekday.ReplaceAllString(text, "")
	text = gmtPlus.ReplaceAllString(text, " $1")
	if m := zoneName.FindStringSubmatch(text); m != nil && strings.Contains(text, ":") {
		offset, known := zones[strings.ToUpper(m[1])]
		if !known {
			offset = "+0000"
		}
		text = strings.TrimSuffix(text, m[1]) + offset
	}

	text = strings.Join(strings.Fields(strings.ReplaceAll(text, ",", " ")), " ")
	for _, layout := range layouts {
		at, err := time.Parse(layout, text)
		if err == nil {
			return at, true
		}
	}
	return time.Time{}, false
}
