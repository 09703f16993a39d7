package archive

import (
	"context"

	"archivist/pkg/bucket"
	"archivist/pkg/fetch"
	"archivist/pkg/ocfl"
)

// Deps are what archives are read with, of whatever kind they are.
type Deps struct {
	Local  bool // file:// URLs are read, and secrets may be sent by http://
	HTTP   *fetch.Client
	Bucket func(name string) bucket.Bucket
	Secret func(ctx context.Context, name string) (string, error) // "user:password"
	Cache  string                                                 // a folder, which is made if it is missing
	Most   int64                                                  // bytes of the cache; 0: as many as usual
	Limits Limits                                                 // of a checkout
	Note   func(text string)                                      // what is left out of a checkout; may be nil
	Root   ocfl.Root                                              // without a bucket there are no objects
}

// Open opens the archive at a location.
type Open func(ctx context.Context, l Location) (Source, error)
