// Package archive reads archives: what has revisions, and from which files can be read as they were
// at each. There are three kinds: preserved objects (a revision is a stored version), Git and
// Subversion (source: the requirement "Ark Queue").
//
// A Source only reads, and is asked for whole revisions: which one it is, its definitions, what it
// changes, its files. Packages git, svn and object have the kinds, and package kinds opens them;
// archivetest is what every kind must do. What all have in common is here: locations and their
// check, the files of definitions, and writing and packing a checkout.
//
// An archive is written by others, so nothing of it is trusted: paths and links that lead out are
// refused, sizes and numbers are bounded, and a server gets a user and a password only at the
// registered host.
package archive

import (
	"context"
	"time"

	"archivist/pkg/revisions/workflow"
)

// Kinds of archives.
const (
	Object     = "object"
	Git        = "git"
	Subversion = "svn"
)

// Location says where an archive is. Check says which fields the kinds have, and what they may be.
// It holds no secret, only the name of one.
type Location struct {
	Kind string `json:"kind"`

	// URL is that of a Git repository (https:// or http:// for smart HTTP, s3:// for a bare one in
	// a bucket, file:// for one on disk, which only tests and the command line may use), or of a
	// Subversion repository.
	URL string `json:"url,omitempty"`

	// Of Git, without refs/heads/; its first parents are the revisions, counted from 1.
	Branch string `json:"branch,omitempty"`

	// Of an object, in its normal form.
	ARK string `json:"ark,omitempty"`

	// The name of a secret in AWS Secrets Manager with "user:password"; "": none is sent.
	Secret string `json:"secret,omitempty"`
}

// Revision is one revision, as the archive describes it.
type Revision struct {
	Number int64 `json:"number"`

	// Which it is: the hash of a commit, the digest of an inventory, … It differs from that of
	// another revision, also of one that had the same number before the history was changed.
	Transaction string `json:"transaction"`

	// In UTC; zero if the archive does not know it. It is what a person or their clock said: not in
	// the order of revisions.
	Time   time.Time `json:"time"`
	Author string    `json:"author,omitempty"`

	// Author has at most MaxAuthor bytes, Message MaxMessage; both are UTF-8.
	Message string `json:"message,omitempty"`

	// Of the run that made it: the trailer or property Archivist-Run.
	Token string `json:"token,omitempty"`
}

// TokenTrailer is the trailer of a commit's message, or the name of a revision's property, that has
// the token of the run that made the revision.
const TokenTrailer = "Archivist-Run"

// Source reads one archive. A revision that does not exist is a fault.NotFound, one that is damaged a
// fault.Invalid; what may work later is a fault.Unavailable. A server that refuses the user is a
// fault.Denied. All say what was asked for, and where.
//
// What was read may be kept between calls: a change of the history is seen when Head is asked. A
// Source may be used by several goroutines.
type Source interface {
	// Head is the number of the newest revision, 0 if there is none. It asks the archive itself.
	Head(ctx context.Context) (int64, error)
	// Revision describes revision n, from 1. It may be known from before.
	Revision(ctx context.Context, n int64) (Revision, error)
	// Workflows are the files below workflow.Folder with the endings yaml, yml and json, sorted by
	// path. More or larger ones than the limits of package workflow are a fault.Invalid.
	Workflows(ctx context.Context, n int64) ([]workflow.File, error)
	// Changed are the paths that differ between two revisions, sorted, each once: added, removed,
	// with another content, or executable or not. base 0 is the empty archive; base can be higher
	// than n.
	Changed(ctx context.Context, base, n int64) ([]string, error)
	// Checkout writes the files of a revision below a folder, which exists and is empty. No path
	// leads out of it. After an error, what is there is of no use.
	Checkout(ctx context.Context, n int64, folder string) error
}
