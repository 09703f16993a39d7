package api

import (
	"html"
	"strings"
	"testing"
)

// TestResolvePage: on the page of an object, what turns the direction of a text around is shown.
func TestResolvePage(t *testing.T) {
	var out strings.Builder
	turned := []string{"a\u202eb"}
	is := resolved{ARK: "ark:/99999/fk4", What: turned, Who: turned, When: turned}
	if err := resolvePage.Execute(&out, is); err != nil {
		t.Fatal(err)
	}
	if page := html.UnescapeString(out.String()); strings.Count(page, "a[U+202E]b") != 4 ||
		strings.Contains(page, "\u202e") {
		t.Errorf("%s", page)
	}
}
