package component

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/registry"
)

// TestLargeDefinition: what is accepted can be paused, resumed and deleted, with a reason as long as there
// can be; a larger definition is refused, and it says what to do.
func TestLargeDefinition(t *testing.T) {
	s := newStore(t)
	s.Functions = []string{"x"}
	d := checker("check", "Checked")
	d.Items = &Items{}
	for n := range 155 {
		d.Items.IDs = append(d.Items.IDs, fmt.Sprintf("item:%04d%s", n, strings.Repeat("x", 190)))
	}
	by := By{Actor: "ada", Reason: strings.Repeat("ä", registry.MaxReason)}
	if _, err := s.Apply(t.Context(), d, by); err != nil {
		t.Fatal(err)
	}
	larger := d
	larger.Items = &Items{IDs: append(d.Items.IDs, d.Items.IDs[:10]...)}
	_, err := s.Apply(t.Context(), larger, by)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "filter in place of ids") {
		t.Errorf("a larger one: %v", err)
	}
	err = errors.Join(s.Pause(t.Context(), d.Name, by), s.Resume(t.Context(), d.Name, by),
		s.Delete(t.Context(), d.Name, by))
	if err != nil {
		t.Error(err)
	}
}
