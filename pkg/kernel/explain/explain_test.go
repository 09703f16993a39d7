package explain_test

import (
	"errors"
	"testing"

	"archivist/pkg/kernel/explain"
	"archivist/pkg/kernel/fault"
)

// part is one that waits for another, since a time, with something to do.
func part(id, on string, since int64) explain.Part {
	return explain.Part{Link: explain.Link{ID: id, Waits: explain.Lock}, On: on, Since: since, Until: since + 1,
		Do: []explain.Step{{What: "see to " + id}}}
}

// TestChain: a chain leads to the root, of which it says since when it waits and what to do.
func TestChain(t *testing.T) {
	all := map[string]explain.Part{"b": part("b", "c", 2), "c": part("c", "", 3), "lost": part("lost", "gone", 4),
		"cycle": part("cycle", "cycle", 5)}
	broken := errors.New("broken")
	next := func(id string) (explain.Part, error) {
		if id == "broken" {
			return explain.Part{}, broken
		}
		p, known := all[id]
		if !known {
			return p, fault.New(fault.NotFound, "there is no %s", id)
		}
		return p, nil
	}
	for _, k := range []struct {
		on, root string
		links    int
		cut      bool
	}{
		{"", "a", 1, false}, {"b", "c", 3, false}, {"lost", "lost", 2, false}, {"cycle", "cycle", 20, true},
	} {
		x, err := explain.Chain(part("a", k.on, 1), next)
		if err != nil || len(x.Chain) != k.links || x.Root().ID != k.root || x.Cut != k.cut || x.ID != "a" {
			t.Errorf("on %s: %+v, %v", k.on, x, err)
			continue
		}
		root := part("a", "", 1)
		if k.on != "" {
			root = all[k.root]
		}
		if x.Since != root.Since || x.Until != root.Until || x.Do[0] != root.Do[0] {
			t.Errorf("on %s: since %d, until %d, to do %v", k.on, x.Since, x.Until, x.Do)
		}
	}
	if _, err := explain.Chain(part("a", "broken", 1), next); !errors.Is(err, broken) {
		t.Errorf("an error is %v", err)
	}
}

// TestAdd: a fact without a value is none.
func TestAdd(t *testing.T) {
	p := part("a", "", 1)
	p.Add("execution", "")
	p.Add("tries", "3")
	if x := explain.Only(p); len(x.Facts) != 1 || x.Facts[0].Name != "tries" || x.Root().ID != "a" {
		t.Errorf("%+v", x)
	}
}
