package ingest

import (
	"time"

	"archivist/pkg/kernel/fault"
)

// Timestamp formats milliseconds since 1970 as ISO 8601 in UTC, to the second. The form is that of
// RFC 3339, e.g. 2026-11-22T18:00:00Z.
func Timestamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }

// ReadTime reads a time in ISO 8601 as milliseconds since 1970, which are positive; "" is 0, no
// time. An Invalid names the field.
func ReadTime(field, text string) (int64, error) {
	if text == "" {
		return 0, nil
	}

	at, err := time.Parse(time.RFC3339, text)
	switch {
	case err != nil:
		return 0, fault.New(fault.Invalid,
			"%s: found %q; expected a time in ISO 8601, e.g. 2026-11-22T18:00:00Z",
			field, Cut(text, 50))
	case at.UnixMilli() <= 0:
		return 0, fault.New(fault.Invalid,
			"%s: found %q; expected a time after 1970-01-01T00:00:00Z", field, text)
	}
	return at.UnixMilli(), nil
}

// CheckDay returns an Invalid that names the field unless a text is a day in ISO 8601, e.g. 2036-12-31, that has not
// ended at now in UTC.
func CheckDay(field, text string, now time.Time) error {
	day, err := time.Parse(time.DateOnly, text)
	switch {
	case err != nil:
		return fault.New(fault.Invalid, "%s: found %q; expected a day in ISO 8601, e.g. 2036-12-31", field,
			Cut(text, 50))
	case !now.Before(day.AddDate(0, 0, 1)):
		return fault.New(fault.Invalid, "%s: %s is in the past", field, text)
	}
	return nil
}
