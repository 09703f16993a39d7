package aip_test

import (
	"fmt"
	"slices"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/objects/aip"
	"archivist/pkg/objects/aip/aiptest"
)

// TestChanges: each file that differs is told once, in order, whatever the pages are.
func TestChanges(t *testing.T) {
	root := aiptest.New(t)
	before, after, want := map[string]string{}, map[string]string{}, []string{}
	for n := range 2500 {
		name := fmt.Sprintf("%04d.txt", n)
		before[name], after[name] = "same", "same"
		if n >= 2495 { // the list of one version ends before that of the other
			delete(after, name)
			want = append(want, "removed producer/"+name)
		}
		switch n % 500 {
		case 7:
			after[name] = "other"
			want = append(want, "changed producer/"+name)
		case 8:
			delete(before, name)
			want = append(want, "added producer/"+name)
		case 9:
			delete(after, name)
			want = append(want, "removed producer/"+name)
		}
	}
	root.Store(id, before, nil)
	stored := root.Store(id, after, nil)
	old, is := aip.Of(root.Root, stored, 1), aip.Of(root.Root, stored, 2)
	for _, most := range []int{1, 4, 100} {
		var got []string
		for at := (&aip.Places{}); at != nil; {
			some, next, err := aip.Changes(t.Context(), &old, is, *at, most)
			if err != nil || len(some) > most {
				t.Fatalf("%d changes of at most %d, %v", len(some), most, err)
			}
			for _, c := range some {
				e := c.Is
				if e == nil {
					e = c.Was
				}
				if (c.Was == nil) != (c.Kind == aip.Added) || (c.Is == nil) != (c.Kind == aip.Removed) {
					t.Errorf("%s: %v, %v", c.Kind, c.Was, c.Is)
				}
				got = append(got, c.Kind+" "+e.Path)
			}
			at = next
		}
		if !slices.Equal(got, want) {
			t.Errorf("by %d: %v; want %v", most, got, want)
		}
	}

	all, next, err := aip.Changes(t.Context(), nil, old, aip.Places{}, 3000)
	if err != nil || next != nil || len(all) != len(before) || all[0].Kind != aip.Added {
		t.Errorf("of the first version: %d changes, %v, %v", len(all), next, err)
	}
	if _, _, err := aip.Changes(t.Context(), &old, is, aip.Places{Was: 3}, 1); !fault.Is(err, fault.Invalid) {
		t.Errorf("from within a line: %v", err)
	}
}
