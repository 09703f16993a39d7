package feed

import "archivist/pkg/kernel/fetch"

// Limits of a feed. The largest podcast feeds have several thousand entries and about 20 MB.
const (
	MostBytes   = 32 << 20 // of a document, decompressed
	MostEntries = 10_000
	mostDepth   = 64      // of nested elements
	mostText    = 4 << 10 // bytes of an id, a title or a date that are read
	maxName     = 300     // characters of an id, as pkg/research has them
	maxURL      = 2048    // bytes of an address, likewise
)

// Entry is an entry of a feed with a recording.
type Entry struct {
	ID        string // at most 300 characters
	Title     string // one line of at most 300 characters
	URL       string // of the recording
	Published int64  // milliseconds since 1970, 0 if it is not known
}

// Skipped says how many entries were skipped for one reason.
type Skipped struct {
	Reason string `json:"reason"`
	Count  int    `json:"count"`
	First  string `json:"first"` // title or id of one of them, or where it is
}

// Look is what a look at a feed found.
type Look struct {
	fetch.Document
	Entries []Entry   // in the order of their ids
	Skipped []Skipped // in the order of their reasons
	Undated int       // entries without a date that can be read
}
