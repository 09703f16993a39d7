package svn

import (
	"context"
	"errors"
	"net/url"
	"sync"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/revisions/archive"
)

// Deps are what repositories are read with.
type Deps struct {
	HTTP   *fetch.Client
	Secret func(ctx context.Context, name string) (string, error) // "user:password"
	Limits archive.Limits
}

// Source is what is below one URL of a repository. mu guards the client and what is known.
type Source struct {
	location archive.Location
	url      *url.URL
	deps     Deps

	mu     sync.Mutex
	client *fetch.Client // with the credentials; nil: they were not read yet
	known  repository
}

// repository is what a server says of a repository in its answer to OPTIONS. The zero value: it was
// not asked yet.
type repository struct {
	// The newest revision when it was asked.
	head int64

	// It is part of each transaction: another repository at the same URL has another.
	uuid     string
	revision string // the path of a revision, without its number (SVN-Rev-Stub)
	root     string // the path of the files of a revision, without its number (SVN-Rev-Root-Stub)

	// The path of the URL below the root of the repository, decoded, without slashes at its ends.
	below string
}

// strange is the error of a server that does not answer as it should: an Invalid, since it will not
// do better later.
func (s *Source) strange(format string, args ...any) error {
	return fault.New(fault.Invalid, "%s "+format, append([]any{s.location.URL}, args...)...)
}

// cause is the first error in the chain of err that has a kind, else err: package fetch wraps what
// a try returned, and would hide its kind.
func cause(err error) error {
	var known *fault.Error
	if errors.As(err, &known) {
		return known
	}
	return err
}
