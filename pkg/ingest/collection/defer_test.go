package collection_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/ingest/collection"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table/tabletest"
)

// TestDefer: a profile can defer consumers that exist; another name is refused, and named.
func TestDefer(t *testing.T) {
	ids := 0
	s := collection.Store{Table: tabletest.Open(t), NewID: func() string { ids++; return fmt.Sprint("id", ids) },
		Consumer: func(_ context.Context, name string) error {
			switch name {
			case "search", "browse":
				return nil
			case "away":
				return errors.New("the table is away")
			}
			return fault.New(fault.NotFound, "there is no consumer %q", name)
		}}
	put := func(names ...string) error {
		return s.Put(t.Context(), "maps", collection.Profile{Title: "Maps", Defer: names},
			collection.By{Actor: "me"}, 1)
	}
	if err := put("search", "serch"); !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"serch"`) {
		t.Errorf("an unknown name: %v", err)
	}
	if err := put("away"); err == nil || fault.Is(err, fault.Invalid) {
		t.Errorf("a name that cannot be looked up: %v", err)
	}
	if err := put(slices.Repeat([]string{"search"}, 51)...); !fault.Is(err, fault.Invalid) {
		t.Errorf("51 names: %v", err)
	}
	if names, err := s.Deferred(t.Context(), "maps"); err != nil || names != nil {
		t.Errorf("after refusals %q are deferred, %v", names, err)
	}
	if err := put("search", "browse"); err != nil {
		t.Error(err)
	}
	if names, err := s.Deferred(t.Context(), "maps"); err != nil || !slices.Equal(names, []string{"search", "browse"}) {
		t.Errorf("%q are deferred, %v", names, err)
	}
	s.Consumer = nil
	if err := put("search"); !fault.Is(err, fault.Invalid) {
		t.Errorf("where there are no consumers: %v", err)
	}
}
