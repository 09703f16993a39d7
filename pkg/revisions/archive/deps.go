package archive

import (
	"context"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/objects/ocfl"
)

// Deps are what archives are read with, of whatever kind they are. What a kind does not use may be
// left out.
type Deps struct {
	Local  bool // file:// URLs are read, and secrets may be sent by http://
	HTTP   *fetch.Client
	Bucket func(name string) bucket.Bucket
	Secret func(ctx context.Context, name string) (string, error) // "user:password"

	// A folder, which is made if it is missing.
	Cache string

	// Bytes of the cache; 0: as many as usual.
	Most   int64
	Limits Limits // of a checkout

	// What is left out of a checkout; may be nil.
	Note func(text string)

	// Without a bucket there are no objects.
	Root ocfl.Root
}

// Open opens the archive at a location, without asking it anything. A location that cannot be is an
// Invalid.
type Open func(ctx context.Context, l Location) (Source, error)
