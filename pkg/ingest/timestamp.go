package ingest

import "time"

// Timestamp formats milliseconds since 1970 as ISO 8601 in UTC, to the second.
func Timestamp(ms int64) string { return time.UnixMilli(ms).UTC().Format(time.RFC3339) }
