package git

import (
	"context"

	"github.com/go-git/go-git/v5/plumbing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/revisions/archive"
)

// Deps are what repositories are read with.
type Deps struct {
	HTTP   *fetch.Client
	Bucket func(name string) bucket.Bucket
	Secret func(ctx context.Context, name string) (string, error) // "user:password"

	// A folder, which is made if it is missing.
	Cache string

	// Bytes of the cache; 0: MostCached.
	Most   int64
	Limits archive.Limits // of a checkout

	// What is left out of a checkout; may be nil.
	Note func(text string)
}

// MostCached is how many bytes a cache has at most, if Deps say nothing else: half of the space
// that a Lambda function can have, so that there is room for a checkout.
const MostCached = 4 << 30

// Source is one branch of a repository. Each of its methods locks the folder of the cache while it
// works.
type Source struct {
	location archive.Location
	deps     Deps
	remote   remote
	folder   folder
}

// remote is where a repository is.
type remote interface {
	// tip is the last commit of the branch; zero if the repository has no commits. A branch that is
	// missing beside others is an Invalid.
	tip(ctx context.Context) (plumbing.Hash, error)
	// fetch brings all that tip needs into the store; have are commits that are there completely.
	// It is called after tip.
	fetch(ctx context.Context, s *store, tip plumbing.Hash, have []plumbing.Hash) error
}

// invalid is an error about the repository.
func (s *Source) invalid(format string, args ...any) error {
	return fault.New(fault.Invalid, "%s "+format, append([]any{s.location.URL}, args...)...)
}

// noBranch is the error of a repository that has other branches only.
func (s *Source) noBranch() error {
	return s.invalid("has no branch %q", s.location.Branch)
}
