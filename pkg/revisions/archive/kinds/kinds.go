// Package kinds has the kinds of archives that there are.
package kinds

import (
	"context"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/git"
	"archivist/pkg/revisions/archive/object"
	"archivist/pkg/revisions/archive/svn"
)

// Opener opens archives of all kinds. Programs that open none do without this package: the code
// that reads repositories is large. A kind for which d has nothing is an Invalid.
func Opener(d archive.Deps) archive.Open {
	return func(_ context.Context, l archive.Location) (archive.Source, error) { return open(d, l) }
}

// open is the archive at a location. Nothing is asked of it yet. A location that Check refuses is
// an Invalid.
func open(d archive.Deps, l archive.Location) (archive.Source, error) {
	err := l.Check(d.Local)
	if err != nil {
		return nil, err
	}

	switch {
	case l.Kind == archive.Git:
		return git.Open(l, git.Deps{
			HTTP:   d.HTTP,
			Bucket: d.Bucket,
			Secret: d.Secret,
			Cache:  d.Cache,
			Most:   d.Most,
			Limits: d.Limits,
			Note:   d.Note,
		})
	case l.Kind == archive.Subversion:
		return svn.Open(l, svn.Deps{HTTP: d.HTTP, Secret: d.Secret, Limits: d.Limits})
	case l.Kind == archive.Object && d.Root.Bucket.Client != nil:
		return object.Open(l, d.Root, d.Limits), nil
	}
	return nil, fault.New(fault.Invalid,
		"kind: archives of the kind %s cannot be read here", l.Kind)
}
