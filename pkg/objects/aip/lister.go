package aip

import (
	"context"
	"sync"

	"archivist/pkg/events/envelope"
	"archivist/pkg/objects/inventory"
	"archivist/pkg/objects/ocfl"
)

// Lister lists the files of stored versions for readers of events. It remembers some inventories,
// so that a list that is read piece by piece takes one request to S3 for each piece.
type Lister struct {
	Root ocfl.Root

	mu    sync.Mutex
	known map[string]*ocfl.Stored
}

// mostListed is how many inventories a Lister remembers.
const mostListed = 20

// Files is an envelope.Lister: it lists the producer's files of a version, ordered by path.
func (l *Lister) Files(ctx context.Context, e envelope.Event, from int64,
	each func(f envelope.File, next int64) error) error {
	ark, n, err := inventory.ParseVersionID(e.Subject.ID)
	if err != nil {
		return err
	}

	stored, err := l.stored(ctx, ark, n)
	if err != nil {
		return err
	}
	return Of(l.Root, stored, n).Each(ctx, from, func(f Entry, next int64) error {
		return each(envelope.File{
			Path:      f.Path,
			Size:      f.Size,
			MediaType: f.MediaType,
			Digests:   f.Digests,
		}, next)
	})
}

// stored is an object with version n, as it is or was: versions do not change.
func (l *Lister) stored(ctx context.Context, ark string, n int) (*ocfl.Stored, error) {
	l.mu.Lock()
	known := l.known[ark]
	l.mu.Unlock()
	// Also one of a later version: it has all that the earlier ones had.
	if known != nil && known.Head >= n {
		return known, nil
	}

	stored, err := l.Root.Head(ctx, ark)
	if err != nil {
		return nil, err
	}

	l.mu.Lock()
	defer l.mu.Unlock()
	if l.known == nil || len(l.known) >= mostListed {
		l.known = map[string]*ocfl.Stored{}
	}

	l.known[ark] = stored
	return stored, nil
}
