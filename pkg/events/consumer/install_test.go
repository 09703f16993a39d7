package consumer_test

import (
	"strings"
	"testing"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/fault"
)

// TestInstall: a release brings a definition once. What a person changes or deletes since stays so,
// until a release brings another one; a definition that is refused holds up no other.
func TestInstall(t *testing.T) {
	b := newBench(t)
	install := func(all ...consumer.Definition) {
		t.Helper()
		if err := b.store.Install(t.Context(), all); err != nil {
			t.Fatal(err)
		}
	}
	first, second := define("first"), define("second")
	install(first, second)
	install(first, second)
	b.want("events", b.history("first"), "created")
	tuned := first
	tuned.Batch = 7
	b.apply(tuned)
	if err := b.store.Delete(t.Context(), "second", false, bob); err != nil {
		t.Fatal(err)
	}
	install(first, second)
	b.want("events of what was changed", b.history("first"), "created changed")
	b.want("events of what was deleted", b.history("second"), "created deleted")

	broken := define("broken", func(d *consumer.Definition) { d.Filter = "Planet+Create" })
	first.Window = 11
	err := b.store.Install(t.Context(), []consumer.Definition{broken, first, second})
	if err == nil || !strings.Contains(err.Error(), "consumer broken, which ships: filter: column 1") {
		t.Errorf("a definition that is not accepted: %v", err)
	}
	if c, err := b.store.Get(t.Context(), "first"); err != nil || c.Window != 11 || c.Batch == 7 {
		t.Errorf("of the new release: %+v, %v", c, err)
	}
}

// TestUninstall: a consumer that the settings leave out is deleted, whatever it has not handled; with other settings it
// is made again. One that a person has made stays.
func TestUninstall(t *testing.T) {
	b := newBench(t)
	b.apply(define("mine"))
	for range 2 {
		if err := b.store.Install(t.Context(), []consumer.Definition{define("first")}); err != nil {
			t.Fatal(err)
		}
		if c, err := b.store.Get(t.Context(), "first"); err != nil || c.Name != "first" {
			t.Fatalf("%+v, %v", c, err)
		}
		for range 2 {
			for _, name := range []string{"first", "mine", "none"} {
				if err := b.store.Uninstall(t.Context(), name); err != nil {
					t.Fatal(err)
				}
			}
		}
		if c, err := b.store.Get(t.Context(), "first"); !fault.Is(err, fault.NotFound) {
			t.Errorf("what was uninstalled is there: %+v, %v", c, err)
		}
	}
	if _, err := b.store.Get(t.Context(), "mine"); err != nil {
		t.Error(err)
	}
	// A person has deleted it before.
	if err := b.store.Install(t.Context(), []consumer.Definition{define("first")}); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Delete(t.Context(), "first", true, bob); err != nil {
		t.Fatal(err)
	}
	if err := b.store.Uninstall(t.Context(), "first"); err != nil {
		t.Error(err)
	}
}
