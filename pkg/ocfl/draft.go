package ocfl

import (
	"iter"
	"strings"
)

// Draft is a version that is to be written.
type Draft struct {
	ID  string // of the object
	Job string // the new content gets keys of this job

	// Attempt is unique to who prepares, without a slash or dot. What is prepared again
	// has keys of its own, so that it names nothing that was removed of an earlier attempt.
	Attempt string

	// First says that the object had no version when its system files were written. Nothing
	// is looked for then: the condition of the commit finds out.
	First bool

	Files iter.Seq2[File, error]

	// Counts says which logical paths make a difference: a draft whose files of these
	// paths are those of the head is no change. nil means those below producer/.
	Counts func(path string) bool

	Version
}

func (d Draft) counts(path string) bool {
	if d.Counts == nil {
		return strings.HasPrefix(path, "producer/")
	}
	return d.Counts(path)
}

// Content is a file whose bytes the object does not have yet.
type Content struct {
	File
	To string `json:"to"` // content path: "v1/content/{job}.{attempt}/producer/a.pdf"
}

// Prepared is a version whose inventory is written down, outside of the root.
type Prepared struct {
	ID       string `json:"id"`
	Number   int    `json:"number"`
	Digest   string `json:"digest"`             // sha512 of the inventory
	Follows  string `json:"follows,omitempty"`  // ETag of the root inventory that it follows; "": there is none
	After    string `json:"after,omitempty"`    // the sha512 of that inventory
	Contents int    `json:"contents"`           // files whose bytes are new
	NoChange bool   `json:"noChange,omitempty"` // the head has the same files, as far as they count
	Written  bool   `json:"written,omitempty"`  // the job's version is committed already
}
