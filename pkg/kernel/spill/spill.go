// Package spill sorts more records than fit into memory: the rest is written to files in
// the system's temporary folder.
//
// An object can have hundreds of thousands of files, and a function a hundred megabytes.
// Records are added in any order, and returned once in the order of their keys:
//
//	files := spill.New[Entry](ctx)
//	for … {
//		err := files.Add(e.Path, e)
//	}
//	for record, err := range files.Sorted() { … }
package spill

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"strings"

	"github.com/lanrat/extsort"
)

// inMemory is how many records are sorted at once in memory. Records of a few hundred bytes
// are then some megabytes.
const inMemory = 10_000

// Sorter sorts records by key, then by their JSON. Keys are without NUL. Records with the
// same key are all returned, next to each other. Add belongs to one goroutine; Sorted follows
// the last Add.
type Sorter[V any] struct {
	ctx  context.Context
	in   chan string
	out  <-chan string
	errs <-chan error
	done chan struct{} // closed when the input has ended
}

// New makes a sorter. When ctx ends, the sorter stops and removes its files. A sorter that is
// not read to its end holds its goroutine and files until ctx ends, so the caller gives it a
// ctx that it cancels.
func New[V any](ctx context.Context) *Sorter[V] {
	s := &Sorter[V]{ctx: ctx, in: make(chan string, 100), done: make(chan struct{})}
	sorter, out, errs := extsort.Strings(s.in, &extsort.Config{
		ChunkSize:          inMemory,
		NumWorkers:         1,
		SortedChanBuffSize: 100,
		TempFilesDir:       os.TempDir(),
	})

	s.out, s.errs = out, errs
	go func() {
		defer close(s.done)
		sorter.Sort(ctx)
	}()

	return s
}

// Add adds a record. It fails if ctx has ended or the disk is full. The value is kept as
// JSON: what its encoding leaves out is lost.
func (s *Sorter[V]) Add(key string, v V) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("spill: %s: %w", key, err)
	}

	select {
	// NUL is less than all that a key has, so that "a" with its value sorts before "a/b".
	case s.in <- key + "\x00" + string(data):
		return nil
	case <-s.done:
		return fmt.Errorf("spill: %w", <-s.errs)
	case <-s.ctx.Done():
		return s.ctx.Err()
	}
}

// Record is one sorted record, or the error that ended the sort.
type Record[V any] struct {
	Key   string
	Value V
}

// Sorted ends the input and returns every record in order, once. An error is the last that it
// yields. A loop that ends early leaves the rest unread.
func (s *Sorter[V]) Sorted() iter.Seq2[Record[V], error] {
	return func(yield func(Record[V], error) bool) {
		close(s.in)
		for line := range s.out {
			var r Record[V]
			key, data, _ := strings.Cut(line, "\x00")
			r.Key = key
			err := json.Unmarshal([]byte(data), &r.Value)
			if !yield(r, err) || err != nil {
				return
			}
		}

		if err := <-s.errs; err != nil {
			yield(Record[V]{}, fmt.Errorf("spill: %w", err))
		}
	}
}
