// Package kinds has the kinds of archives that there are.
package kinds

import (
	"context"

	"archivist/pkg/archive"
	"archivist/pkg/archive/git"
	"archivist/pkg/fault"
)

// Opener opens archives.
type Opener struct {
	Local bool // file:// URLs are read, and secrets may be sent by http://
	Git   git.Deps
}

// Open is the archive at a location. Nothing is asked of it yet. A location that Check refuses is an Invalid.
func (o Opener) Open(_ context.Context, l archive.Location) (archive.Source, error) {
	if err := l.Check(o.Local); err != nil {
		return nil, err
	}
	switch l.Kind {
	case archive.Git:
		return git.Open(l, o.Git)
	}
	return nil, fault.New(fault.Invalid, "kind: archives of the kind %s cannot be read here", l.Kind)
}
