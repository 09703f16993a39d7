package inprocess

import (
	"context"
	"path/filepath"
	"sync"

	"archivist/pkg/app/boot"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/embedded"
)

// NoIndex is a search index that finds nothing; it only knows which state of each object it was given. In a
// bubble of testing/synctest a system needs it: the library of the one that ships has workers outside of every
// bubble. It is safe for concurrent use, and one value can be given to several systems.
type NoIndex struct {
	mu       sync.Mutex
	modified map[string]int64
}

// Update keeps when the objects were changed.
func (x *NoIndex) Update(ctx context.Context, changed []search.Change, read search.Reader) error {
	for _, c := range changed {
		d, err := read(ctx, c.ARK)
		if err != nil {
			return err
		}

		x.mu.Lock()
		if x.modified == nil {
			x.modified = map[string]int64{}
		}
		delete(x.modified, c.ARK)
		if d != nil {
			x.modified[c.ARK] = d.Modified
		}
		x.mu.Unlock()
	}
	return nil
}

// Search finds nothing.
func (x *NoIndex) Search(context.Context, search.Request) (out search.Result, err error) {
	return out, nil
}

// ARKs finds nothing.
func (x *NoIndex) ARKs(context.Context, string) (arks []string, next string, err error) {
	return nil, "", nil
}

// Modified implements search.Index.
func (x *NoIndex) Modified(_ context.Context, arks []string) (map[string]int64, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	out := map[string]int64{}
	for _, ark := range arks {
		if at, has := x.modified[ark]; has {
			out[ark] = at
		}
	}
	return out, nil
}

// index makes the index of an environment, whose files are in a folder, and closes it. An
// index holds files and goroutines, so it ends with its environment; closes is called at most
// once.
func (s *System) index(dir string) (open boot.OpenIndex, closes func()) {
	own := &embedded.Index{}
	open = func(p search.Parts) search.Index {
		if s.settings.Index != nil {
			return s.settings.Index
		}
		x := embedded.Open(p)
		if made, is := x.(*embedded.Index); is {
			made.Dir, own = filepath.Join(dir, "search"), made
		}
		return x
	}
	return open, func() {
		err := own.Close()
		if err != nil {
			s.log.Error("a search index is not closed", "error", err)
		}
	}
}
