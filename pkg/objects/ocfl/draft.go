package ocfl

import (
	"iter"
	"strings"
)

// Draft is a version that is to be written.
type Draft struct {
	ID  string // of the object
	Job string // the new content gets keys of this job

	// Attempt is unique to one preparation, without a slash or dot. Each attempt has keys of
	// its own, so that it never names content of an earlier one, which may be removed.
	Attempt string

	// First is set if the object had no version when its system files were written. Then the
	// root is not read: the condition of the commit fails if there is a version.
	First bool

	Files iter.Seq2[File, error]

	// Counts reports whether a change at a logical path makes a new version: if the files at
	// all such paths are those of the head, there is no change. nil: those below producer/.
	Counts func(path string) bool

	Version
}

// counts applies Counts or its default.
func (d Draft) counts(path string) bool {
	if d.Counts == nil {
		return strings.HasPrefix(path, "producer/")
	}
	return d.Counts(path)
}

// Content is a file of the draft: one whose bytes the object does not have yet, or, if it is Reused, has
// at this path. Its JSON is kept in the job's plan.
type Content struct {
	File
	To     string `json:"to"` // content path: "v1/content/{job}.{attempt}/producer/a.pdf"
	Reused bool   `json:"reused,omitempty"`
}

// Prepared is a version whose inventory is written, but not yet in the root. Its JSON is kept in
// the job's plan, so that a later try of the job can commit it.
type Prepared struct {
	ID       string `json:"id"`
	Number   int    `json:"number"`
	Digest   string `json:"digest"`             // sha512 of the inventory
	Follows  string `json:"follows,omitempty"`  // ETag of the root inventory that it follows; "": there is none
	After    string `json:"after,omitempty"`    // the sha512 of that inventory
	Contents int    `json:"contents"`           // files whose bytes are new
	Reused   int    `json:"reused,omitempty"`   // paths of stored content that the version names again
	NoChange bool   `json:"noChange,omitempty"` // the head has the same files, as far as they count
	Written  bool   `json:"written,omitempty"`  // the job's version is committed already
}
