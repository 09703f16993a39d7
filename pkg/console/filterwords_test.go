package console_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// TestFilterWords: a field of filters is completed by all words that the API has, and by names
// of the archive, for those who may see events; each page with such a field has the script that
// does it; and the page of events explains each word.
func TestFilterWords(t *testing.T) {
	w := begin(t, false)
	w.adminOf(w.signed("alma"))
	w.submit(w.file("sample", "here.txt", "content"), v1.Completed)
	var fails atomic.Bool
	w.outside(&fails, "The function is broken")
	w.line()

	b := w.as("vera")
	resp, text := b.get("filter.json")
	var got v1.FilterWords
	w.must(json.Unmarshal([]byte(text), &got))
	all, err := w.api.FilterWords(t.Context())
	w.must(err)
	if resp.Header.Get("Content-Type") != "application/json" ||
		len(got.Subjects) != len(all.Subjects) ||
		!slices.Equal(got.Signs, all.Signs) || len(all.Terms) == 0 {
		t.Errorf("%v\n%s", resp.Header, text)
	}
	values := map[string][]string{}
	for _, term := range got.Terms {
		values[term.Name] = term.Values
	}
	for term, value := range map[string]string{"parent": "sample", "component": "second",
		"outcome": "failure"} {
		if !slices.Contains(values[term], value) {
			t.Errorf("of %s: %q", term, values[term])
		}
	}
	if !slices.Contains(values["component"], "download") || slices.Contains(values["parent"], "site") {
		t.Errorf("%q", values)
	}
	if resp, _ := w.as("dora").get("filter.json"); resp.StatusCode != http.StatusForbidden {
		t.Errorf("a depositor gets %d", resp.StatusCode)
	}

	_, page := b.get("events")
	for _, term := range all.Terms {
		if !strings.Contains(page, "<dt><code>"+term.Name+"</code></dt><dd>"+term.Means) {
			t.Errorf("%s is not explained:\n%s", term.Name, page)
		}
	}
	for _, path := range []string{"events", "acts", "consumers/outside",
		"deed?kind=consumer&deed=redrive-some&id=outside"} {
		_, page := w.users["alma"].get(path)
		if !strings.Contains(page, `data-words="./`) || !strings.Contains(page, "/filter-") {
			t.Errorf("%s:\n%s", path, page)
		}
	}
}
