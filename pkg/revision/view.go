package revision

import (
	"context"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
)

// Instance returns an instance.
func (s *Store) Instance(ctx context.Context, id string) (Instance, error) {
	r, err := s.instanceRow(ctx, id)
	if err == nil && r.Rev == 0 {
		err = fault.New(fault.NotFound, "there is no instance %s", definition.Clip(id, 200))
	}
	return r.Instance, err
}

// Archive returns an archive. One that was deleted is a NotFound.
func (s *Store) Archive(ctx context.Context, name string) (Archive, error) {
	r, err := s.known(ctx, name)
	return r.Archive, err
}

// Revision returns a revision of an archive in its epoch.
func (s *Store) Revision(ctx context.Context, ref string, n int64) (Revision, error) {
	r, err := s.revisionRow(ctx, ref, n)
	if err == nil && r.Rev == 0 {
		err = fault.New(fault.NotFound, "there is no revision %d of %s", n, definition.Clip(ref, 60))
	}
	return r.Revision, err
}
