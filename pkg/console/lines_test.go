package console_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// line makes two components, and an item that has passed the first one and failed at the second.
func (w *world) line() {
	w.Helper()
	arn := w.Register("work", func(_ context.Context, in []byte) ([]byte, error) {
		if strings.Contains(string(in), `"component":"second"`) {
			return nil, errors.New(evil)
		}
		return []byte("{}"), nil
	})
	for name, after := range map[string]string{"first": "Received", "second": "First_done"} {
		event := strings.ToUpper(name[:1]) + name[1:] + "_done"
		_, err := w.api.ApplyComponent(w.Context(), v1.ComponentDefinition{Name: name, Event: event,
			Description: evil, PastSuccess: []string{after}, Future: []string{event},
			Types: []string{"delivery"},
			Wake:  true, Runnable: v1.ComponentRunnable{Lambda: arn}}, evil, "")
		w.must(err)
	}
	_, err := w.api.CreateItem(w.Context(), v1.ItemRequest{ID: "item:one", Reason: evil,
		ItemShape: v1.ItemShape{Types: []string{"delivery"}}}, "")
	w.must(err)
	_, err = w.api.ActOnItem(w.Context(), "item:one", v1.ItemAction{Action: "event",
		Event:  "Received",
		Reason: evil}, "")
	w.must(err)
	w.until("the item has failed", func() bool {
		is, err := w.api.Component(w.Context(), "second")
		w.must(err)
		return is.Counts.Failed == 1 && is.Counts.Running == 0 && is.Filling == nil
	})
}

// TestLinePages: the line is a picture with numbers; an item is seen, forced, and its events are revoked.
func TestLinePages(t *testing.T) {
	w := begin(t, true)
	w.line()
	b := w.browser()
	b.plain("components/first", "components/second", "item?id=item:one")
	_, page := b.get("components")
	harmless(t, "components", page)
	if !strings.Contains(page, "<svg") || !strings.Contains(page, "Second_done; 1 failed") ||
		!strings.Contains(page, "components/second?class=failed") {
		t.Errorf("the line:\n%s", page)
	}
	_, page = b.get("components/second?class=failed")
	if !strings.Contains(page, "item?id=item%3aone") {
		t.Errorf("the failed items:\n%s", page)
	}
	_, page = b.get("item?id=item:one")
	at, page := b.doDeed(page, "event", "event", "Second_done")
	if at != "item?id=item%3Aone" || !strings.Contains(page,
		"The event is recorded.") {
		t.Errorf("%s\n%s", at, page)
	}
	is, err := w.api.Item(t.Context(), "item:one")
	if err != nil || len(is.Events) != 3 || is.Events[2].Outcome != "success" &&
		is.Events[1].Outcome != "success" {
		t.Errorf("%+v, %v", is, err)
	}
	at, page = b.doDeed(page, "revoke", "events", "Second_done, First_done")
	if at != "item?id=item%3Aone" || !strings.Contains(page, ">revoked<") {
		t.Errorf("%s\n%s", at, page)
	}
	_, text := b.doDeed(page, "prioritize", "priority", "many")
	if !strings.Contains(text, "expected a whole number") || !strings.Contains(text,
		`aria-invalid="true"`) {
		t.Errorf("%s", text)
	}
	_, page = b.get("components/first")
	at, page = b.doDeed(page, "run")
	// What was revoked is ready again: either the run of that has taken it, or this one does.
	idle := at == "deed" && strings.Contains(page, "no item is ready")
	if !idle && !strings.HasPrefix(at, "components/first/runs/") {
		t.Errorf("%s\n%s", at, page)
	}
	w.light(map[string]int{"components": 50, "components/first": 20, "item?id=item:one": 30})
}

// TestLineRoles: each role sees the lines that the API gives it, and is offered what it may do.
func TestLineRoles(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	w.line()
	runs, err := w.api.Runs(t.Context(), "first", 1)
	w.must(err)
	none, all := [5]string{}, "event prioritize restart revoke stop"
	w.roles([]roleRow{
		{"components", usual, none},
		{"components/first", usual, [5]string{"delete pause run", "pause run"}},
		{"components/none", [5]int{404, 404, 404, 403, 403}, none},
		{"components/first/runs/" + runs[0].ID, usual, none},
		{"item?id=item:one", usual, [5]string{all, all}},
		{"item?id=item:none", [5]int{404, 404, 404, 403, 403}, none},
		{"item", [5]int{422, 422, 422, 422, 422}, none},
	})
	w.denied("item", "event", []string{"item:one"}, []string{"vera", "dora", "nora"}, "event",
		"Second_done")
	w.denied("component", "pause", []string{"first"}, []string{"vera", "dora", "nora"})
	w.denied("component", "delete", []string{"first"}, []string{"otto", "vera", "dora", "nora"})
}
