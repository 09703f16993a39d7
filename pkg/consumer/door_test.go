package consumer_test

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/consumer"
	"archivist/pkg/fault"
)

// TestDeletedWhileRebuilt: a consumer that is deleted during its rebuild and made again runs, and
// the rebuild does not go on with it.
func TestDeletedWhileRebuilt(t *testing.T) {
	b := newBench(t)
	b.runtime.State = &state{objects: []string{"a"}}
	b.apply(define("c"))
	b.add("maps", "a")
	p, err := b.store.Rebuild(t.Context(), "c", "", bob)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.store.Delete(t.Context(), "c", true, bob); err != nil {
		t.Fatal(err)
	}
	b.now = b.now.Add(time.Second)
	b.apply(define("c"))
	b.run("c", "maps")
	b.want("the new one handles", b.handled(), "a.1")
	b.settle()
	b.want("after the rebuild's end", b.handled(), "a.1")
	if p := b.show(p.ID); !p.Cancelled {
		t.Errorf("the rebuild is %+v", p)
	}
}

// TestApplyRepeated: a request that comes again, late, does not undo what others changed meanwhile,
// and does not make a deleted consumer again.
func TestApplyRepeated(t *testing.T) {
	b := newBench(t)
	ann := consumer.By{Actor: "ann", Request: "r1"}
	apply := func(batch int, by consumer.By) (consumer.Consumer, error) {
		return b.store.Apply(t.Context(), define("c", func(d def) { d.Batch = batch }), by)
	}
	if _, err := apply(5, ann); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(7, bob); err != nil {
		t.Fatal(err)
	}
	if c, err := apply(5, ann); err != nil || c.Batch != 7 || c.Version != 2 {
		t.Errorf("after the repeated request: %+v, %v", c, err)
	}
	if err := b.store.Delete(t.Context(), "c", false, bob); err != nil {
		t.Fatal(err)
	}
	if _, err := apply(5, ann); !fault.Is(err, fault.Conflict) || !strings.Contains(err.Error(), "deleted since") {
		t.Errorf("repeated after the deletion: %v", err)
	}
	b.want("events", b.history("c"), "created changed deleted")
}

// TestCharacters: limits of texts count characters, as the API does.
func TestCharacters(t *testing.T) {
	d := define("c", func(d def) {
		d.Description = strings.Repeat("ü", consumer.MaxDescription)
		d.Filter = "*+*{id=" + strings.Repeat("ü", consumer.MaxFilter-8) + "}"
	})
	if err := d.Check(); err != nil {
		t.Error(err)
	}
	d.Filter += "ü"
	if err := d.Check(); err == nil || !strings.Contains(err.Error(), "4097 characters") {
		t.Errorf("one too many: %v", err)
	}
}
