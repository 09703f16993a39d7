package console_test

import (
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestFormats: a collection shows its files and bytes by format, and so does a page of all,
// which a depositor sees of their own collections only.
func TestFormats(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.as("alma"))
	w.submit(w.file("sample", "a.txt", "some content"), v1.Completed)
	w.submit(w.file("letters", "b.csv", "a,b"), v1.Completed)
	b, page := w.signed("vera"), ""
	w.until("all is counted", func() bool {
		_, page = b.get("formats")
		return strings.Contains(page, "text/plain") && strings.Contains(page, "text/csv")
	})
	for _, says := range []string{"All collections", "2 files", "newest versions of 2 objects",
		"archivist collection formats", "formats.csv"} {
		if !strings.Contains(page, says) {
			t.Errorf("the page does not say %q\n%s", says, page)
		}
	}
	if strings.Contains(page, "Not whole") {
		t.Errorf("all is counted, and the page says otherwise\n%s", page)
	}
	_, page = b.get("collections/sample")
	if !strings.Contains(page, "<td class=\"n\">12 B</td>") ||
		strings.Contains(page, "text/csv") {
		t.Errorf("the collection:\n%s", page)
	}
	resp, page := b.get("formats.csv?collection=sample")
	if kind := resp.Header.Get("Content-Type"); kind != v1.CSVMedia ||
		!strings.Contains(page, "text/plain") {
		t.Errorf("the table is %s:\n%s", kind, page)
	}

	theirs := w.signed("dora")
	_, page = theirs.get("formats")
	if !strings.Contains(page, "text/plain") || strings.Contains(page, "text/csv") {
		t.Errorf("a depositor sees\n%s", page)
	}
	for _, path := range []string{"formats?collection=letters", "formats.csv?collection=letters"} {
		resp, page = theirs.get(path)
		if resp.StatusCode != 404 || strings.Contains(page, "text/csv") {
			t.Errorf("%s: a depositor of others gets %d\n%s", path, resp.StatusCode, page)
		}
	}
}
