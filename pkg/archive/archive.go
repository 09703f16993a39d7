// Package archive reads archives: what has revisions, and from which files can be read as they were at each.
// There are three kinds: preserved objects (a revision is a stored version), Git and Subversion (source: the
// requirement "Ark Queue").
package archive

import (
	"context"
	"time"

	"archivist/pkg/workflow"
)

// Kinds of archives.
const (
	Object     = "object"
	Git        = "git"
	Subversion = "svn"
)

// Location says where an archive is.
type Location struct {
	Kind string `json:"kind"`
	// URL is that of a Git repository (https:// or http:// for smart HTTP, s3:// for a bare one in a bucket,
	// file:// for one on disk, which only tests and the command line may use), or of a Subversion repository.
	URL    string `json:"url,omitempty"`
	Branch string `json:"branch,omitempty"` // of Git; its first parents are the revisions, counted from 1
	ARK    string `json:"ark,omitempty"`    // of an object
	Secret string `json:"secret,omitempty"` // the name of a secret with "user:password"
}

// Revision is one revision.
type Revision struct {
	Number      int64     `json:"number"`
	Transaction string    `json:"transaction"` // which it is: the hash of a commit, the digest of an inventory, …
	Time        time.Time `json:"time"`
	Author      string    `json:"author,omitempty"`
	Message     string    `json:"message,omitempty"`
	Token       string    `json:"token,omitempty"` // of the run that made it: the trailer or property Archivist-Run
}

// TokenTrailer is the trailer of a commit's message, or the name of a revision's property, that has the token of
// the run that made the revision.
const TokenTrailer = "Archivist-Run"

// Source reads one archive. A revision that there is not is a fault.NotFound, one that is damaged a
// fault.Invalid; what may work later is a fault.Unavailable. All say what was asked for, and where.
type Source interface {
	// Head is the number of the newest revision, 0 if there is none.
	Head(ctx context.Context) (int64, error)
	Revision(ctx context.Context, n int64) (Revision, error)
	// Workflows are the files below workflow.Folder with the endings yaml, yml and json, sorted by path. More or
	// larger ones than the limits of package workflow are a fault.Invalid.
	Workflows(ctx context.Context, n int64) ([]workflow.File, error)
	// Changed are the paths that differ between two revisions, sorted. base 0 is the empty archive.
	Changed(ctx context.Context, base, n int64) ([]string, error)
	// Checkout writes the files of a revision below a folder, which exists and is empty. No path leads out of it.
	Checkout(ctx context.Context, n int64, folder string) error
}
