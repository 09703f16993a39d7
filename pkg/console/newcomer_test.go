package console_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestNewcomer: who opens an address or fills in a form wrongly is told what is wrong, where
// that is, and what can be done there: nobody is sent back to a form that was not sent.
func TestNewcomer(t *testing.T) {
	w := begin(t, true)
	b := w.browser()
	for path, says := range map[string][]string{
		"item":                {"422", "Check the address, or search"},
		"event?subject=Job:1": {"422", "Check the address, or search"},
		"archives/none":       {"409", "revisionQueue", "ask those who run the archive"},
		"events?subject=Job": {"422", "TYPE:ID",
			`value="Job" maxlength="1200" dir="auto" aria-invalid="true"`},
		"events?subject=Job:1":   {"200", `name="subject" value="Job:1"`},
		"events?filter=Job":      {"422", `aria-invalid="true" aria-describedby="wrong grammar"`, "column 4"},
		"jobs?after=yesterday":   {"422", "ISO 8601, e.g. 2026-11-22T18:00:00Z"},
		"formats":                {"200", "some seconds after it was preserved"},
		"deed?kind=job&deed=any": {"422", "Check the address, or search"},
	} {
		resp, page := b.get(path)
		for _, text := range says[1:] {
			if !strings.HasPrefix(resp.Status, says[0]) || !strings.Contains(page, text) {
				t.Errorf("%s: %s, no %q:\n%s", path, resp.Status, text, mainOf(page))
			}
		}
	}

	_, page := b.get("queue")
	form := formAt(t, page, "act", "action=pause")
	form.Set("step", "do")
	resp, page := b.post("act", form)
	if resp.StatusCode != http.StatusUnprocessableEntity ||
		!strings.Contains(page, "reason: it is empty; write something") ||
		!strings.Contains(page, "Go back, and correct") {
		t.Errorf("without a reason: %d\n%s", resp.StatusCode, mainOf(page))
	}
	_, page = b.get("submit")
	form = formAt(t, page, "submit")
	form.Set("kind", "url")
	form.Set("collection", "sample")
	_, page = b.post("submit", form)
	if !strings.Contains(page, "it is empty; expected an http or https URL") {
		t.Errorf("without a URL:\n%s", mainOf(page))
	}
}
