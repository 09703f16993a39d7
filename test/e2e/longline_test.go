package e2e

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"archivist/pkg/components/component"
	"archivist/pkg/components/preservation"
	"archivist/pkg/events/event"
)

// TestLongLine: the work of 25 components, each caused by the one before, is all in the permanent record of the object.
// The loop guard ends chains of those that act; it leaves nothing out of the record.
func TestLongLine(t *testing.T) {
	begin(t)
	if _, err := stationCalls(); err != nil {
		t.Fatal(err)
	}
	const length = 25
	l := line{t, components()}
	j := preserve(t, "long", newSource(t), "/long.txt")
	// There can be 30 components, and those that ship come with the first minute. What one of them does is not needed
	// here; it comes back at the end.
	for _, name := range []string{preservation.DelayedBatches, preservation.FileRepair} {
		until(t, "the component "+name+" is there", soon, func() bool {
			_, err := l.s.Get(t.Context(), name)
			return err == nil
		})
	}
	spare, err := l.s.Get(t.Context(), preservation.DelayedBatches)
	l.must(err)
	l.s.Functions = []string{spare.Name}
	l.must(l.s.Delete(t.Context(), spare.Name, forTest))
	t.Cleanup(func() {
		if _, err := l.s.Apply(context.WithoutCancel(t.Context()), spare.Definition, forTest); err != nil {
			t.Error(err)
		}
	})
	id := "object:" + j.Identifiers.Primary
	name := func(n int) string { return fmt.Sprintf("Step_%02d", n) }
	for n := 1; n <= length; n++ {
		l.define(component.Definition{Name: fmt.Sprintf("long-%02d", n), Event: name(n),
			PastSuccess: []string{name(n - 1)}, Future: []string{name(n)}, Wake: true, MaxDepth: component.MaxMaxDepth,
			Items: &component.Items{Filter: "Object+All"}})
	}
	if _, err := l.s.Register(t.Context(), id, name(0), event.Success, forTest); err != nil {
		t.Fatal(err)
	}
	recorded := ""
	until(t, "the record has all steps", 2*soon, func() bool {
		all, err := client.History(t.Context(), j.Identifiers.Primary)
		l.must(err)
		recorded = ""
		for _, e := range all {
			recorded += fmt.Sprintln(e.Type, e.Detail)
		}
		return strings.Contains(recorded, name(length))
	})
	for n := range length + 1 {
		if strings.Count(recorded, name(n)) != 1 {
			t.Errorf("%s is %d times in the record:\n%s", name(n), strings.Count(recorded, name(n)), recorded)
		}
	}
}
