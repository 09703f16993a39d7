package spill

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

func TestSorted(t *testing.T) {
	for _, n := range []int{0, 1, 100, 2*inMemory + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			s := New[int](t.Context())
			rng := rand.New(rand.NewPCG(1, uint64(n)))
			var want []Record[int]
			for i := range n {
				r := Record[int]{fmt.Sprintf("k%d", rng.IntN(n)), i}
				want = append(want, r)
				if err := s.Add(r.Key, r.Value); err != nil {
					t.Fatal(err)
				}
			}
			var got []Record[int]
			for r, err := range s.Sorted() {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, r)
			}
			order := func(a, b Record[int]) int {
				return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(fmt.Sprint(a.Value), fmt.Sprint(b.Value)))
			}
			if !slices.IsSortedFunc(got, func(a, b Record[int]) int { return cmp.Compare(a.Key, b.Key) }) {
				t.Error("the records are not in order")
			}
			slices.SortFunc(want, order)
			slices.SortFunc(got, order)
			if !slices.Equal(got, want) {
				t.Errorf("%d records came back of %d, or others", len(got), len(want))
			}
		})
	}
}

func TestFullDisk(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TMPDIR", file) // no folder: nothing can be written below it
	s := New[int](t.Context())
	var err error
	for i := 0; i < 5*inMemory && err == nil; i++ {
		err = s.Add("k", i)
	}
	for _, e := range s.Sorted() {
		if e != nil {
			err = e
		}
	}
	if err == nil {
		t.Error("a sort without a disk ended well")
	}
}

func TestEndOfContext(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	ctx, cancel := context.WithCancel(t.Context())
	s := New[int](ctx)
	for i := range 2 * inMemory {
		if err := s.Add("k", i); err != nil {
			t.Fatal(err)
		}
	}
	cancel()
	for s.Add("k", 0) == nil { // some records fit into the channel still
	}
	<-s.done
	if left, _ := os.ReadDir(dir); len(left) > 0 {
		t.Errorf("%v was left", left)
	}
}
