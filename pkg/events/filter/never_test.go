package filter_test

import (
	"slices"
	"testing"

	"archivist/pkg/events/filter"
)

// TestNever: what no event can have is named; what DSpace's configurations name beside what happens is not hidden.
func TestNever(t *testing.T) {
	const vain, none = ": events about it have the actions add, create, modify", ": no event about it has that action"
	for text, want := range map[string][]string{
		"*+*":                               nil,
		"Object+Create|Modify":              nil,
		"Collection+Add|Modify_Metadata":    nil,
		"File+Create|Disseminate":           nil,
		"Job|Batch+Delete":                  nil,
		"Object|Collection+Modify_Metadata": {"Object+modify-metadata" + vain},
		"Item+Modify_Metadata":              {"Object+modify-metadata" + vain},
		"Item+Create|Install":               {"Object+install" + none},
		"*+Install|Remove|Create":           {"All+install" + none, "All+remove" + none},
		"Bundle|Object+Create":              {"Bundle: no event is about one"},
		"Community+*:Object+All":            {"Community: no event is about one"},
	} {
		f, err := filter.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		if got := f.Never(); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
