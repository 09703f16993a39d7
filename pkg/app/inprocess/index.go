package inprocess

import (
	"context"
	"path/filepath"

	"archivist/pkg/app/boot"
	"archivist/pkg/views/search"
	"archivist/pkg/views/search/embedded"
)

// NoIndex is a search index that finds nothing. In a bubble of testing/synctest a system
// needs it: the library of the one that ships has workers outside of every bubble. It is safe
// for concurrent use, and one value can be given to several systems.
type NoIndex struct{}

// Update keeps nothing.
func (NoIndex) Update(context.Context, []search.Change, search.Reader) error { return nil }

// Search finds nothing.
func (NoIndex) Search(context.Context, search.Request) (out search.Result, err error) {
	return out, nil
}

// ARKs finds nothing.
func (NoIndex) ARKs(context.Context, string) (arks []string, next string, err error) {
	return nil, "", nil
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
