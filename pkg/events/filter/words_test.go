package filter_test

import (
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/filter"
)

// TestLanguage: what is said of the language is the language: each name is read, what no event
// has is not said, each sign is read where it is said to be, and nothing that a filter can name
// is missing.
func TestLanguage(t *testing.T) {
	w := filter.Language()
	read := func(text string) *filter.Filter {
		f, err := filter.Compile(text)
		if err != nil {
			t.Fatalf("%q: %v", text, err)
		}
		return f
	}
	types := []string{}
	for _, s := range w.Subjects {
		types = append(types, s.Types...)
		for _, name := range append([]string{s.Name}, s.Also...) {
			f := read(name + "+" + strings.Join(s.Actions, "|"))
			if never := f.Never(); len(never) > 0 || len(s.Types) == 0 {
				t.Errorf("%s: %v, types %v", f, never, s.Types)
			}
		}
	}
	for _, k := range envelope.Kinds {
		if !slices.Contains(types, k.Type) {
			t.Errorf("the type %s is missing", k.Type)
		}
	}
	for _, a := range w.Actions {
		if never := read("All+" + a).Never(); len(never) > 0 {
			t.Error(never)
		}
	}
	for _, term := range w.Terms {
		for _, value := range append([]string{"x"}, term.Values...) {
			if _, err := filter.Compile("All+All{" + term.Name + "=" + value + "}"); err != nil &&
				(!term.Only || value != "x") {
				t.Error(err)
			}
		}
		if term.Means == "" {
			t.Errorf("%s: it is not said what it means", term.Name)
		}
	}
	_, err := filter.Compile("All+All{none=x}")
	for _, name := range strings.Split(err.Error()[strings.Index(err.Error(), "known: ")+7:], ", ") {
		if !slices.ContainsFunc(w.Terms, func(t filter.Term) bool { return t.Name == name }) {
			t.Errorf("the term %s is missing", name)
		}
	}
	// Before and behind a sign, by the place after which it is.
	around := map[string][2]string{
		filter.AfterSubject: {"Job", "Batch+All"}, filter.AfterAction: {"Job+Create", "Modify"},
		filter.AfterBrace: {"Job+All{", "type=x}"}, filter.AfterField: {"Job+All{type", "x}"},
		filter.AfterValue: {"Job+All{type=x", "id=y}"}, filter.AfterTerms: {"Job+All{id=y}", "Job+All"}}
	behind := map[string]string{filter.AfterSubject + "+": "All", filter.AfterAction + "{": "id=x}",
		filter.AfterAction + ":": "Job+All", filter.AfterValue + "|": "y}",
		filter.AfterValue + "*": "}", filter.AfterValue + "}": " "}
	for _, s := range w.Signs {
		parts, known := around[s.After]
		if another, is := behind[s.After+s.Text]; is {
			parts[1] = another
		}
		if !known || s.Means == "" {
			t.Errorf("%+v", s)
		}
		read(parts[0] + s.Text + parts[1])
	}
}
