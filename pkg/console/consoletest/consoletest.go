// Package consoletest reads pages of the console as a browser does, for tests.
package consoletest

import (
	"net/url"
	"strings"
	"testing"

	"golang.org/x/net/html"
)

// Parse is a page as a browser reads it.
func Parse(t *testing.T, page string) *html.Node {
	t.Helper()
	doc, err := html.Parse(strings.NewReader(page))
	if err != nil {
		t.Fatal(err)
	}
	return doc
}

// Attr is an attribute of an element, "" if it has none.
func Attr(n *html.Node, name string) string {
	for _, a := range n.Attr {
		if a.Key == name {
			return a.Val
		}
	}
	return ""
}

// Form are the fields of the first form that is sent to an address that ends so, and for which all marks hold: a mark
// is NAME=VALUE of a field. It is nil if there is none.
func Form(t *testing.T, page, to string, marks ...string) url.Values {
	t.Helper()
	for n := range Parse(t, page).Descendants() {
		if n.Data != "form" || !strings.HasSuffix(Attr(n, "action"), to) {
			continue
		}
		form := url.Values{}
		for f := range n.Descendants() {
			checkbox := Attr(f, "type") == "checkbox" || Attr(f, "type") == "radio"
			if f.Data == "input" && Attr(f, "name") != "" && !checkbox {
				form.Add(Attr(f, "name"), Attr(f, "value"))
			}
		}
		fits := true
		for _, m := range marks {
			name, value, _ := strings.Cut(m, "=")
			fits = fits && form.Get(name) == value
		}
		if fits {
			return form
		}
	}
	return nil
}
