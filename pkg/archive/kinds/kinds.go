// Package kinds has the kinds of archives that there are.
package kinds

import (
	"context"

	"archivist/pkg/archive"
	"archivist/pkg/archive/git"
	"archivist/pkg/archive/object"
	"archivist/pkg/archive/svn"
	"archivist/pkg/fault"
	"archivist/pkg/ocfl"
)

// Opener opens archives.
type Opener struct {
	Local bool      // file:// URLs are read, and secrets may be sent by http://
	Git   git.Deps  // also used for the other kinds, as far as they need the same
	Root  ocfl.Root // of preserved objects; without a bucket there are none
}

// Open is the archive at a location. Nothing is asked of it yet. A location that Check refuses is an Invalid.
func (o Opener) Open(_ context.Context, l archive.Location) (archive.Source, error) {
	if err := l.Check(o.Local); err != nil {
		return nil, err
	}
	switch {
	case l.Kind == archive.Git:
		return git.Open(l, o.Git)
	case l.Kind == archive.Subversion:
		return svn.Open(l, svn.Deps{HTTP: o.Git.HTTP, Secret: o.Git.Secret, Limits: o.Git.Limits})
	case l.Kind == archive.Object && o.Root.Bucket.Client != nil:
		return object.Open(l, o.Root, o.Git.Limits), nil
	}
	return nil, fault.New(fault.Invalid, "kind: archives of the kind %s cannot be read here", l.Kind)
}
