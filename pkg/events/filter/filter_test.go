package filter_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/events/filter"
)

// Example compiles a filter, and shows an error.
func Example() {
	f, _ := filter.Compile("item+create|modify{parent=maps, !component=derivatives}")
	fmt.Println(f)
	fmt.Println(f.Match(envelope.Event{Subject: envelope.Ref{Type: "Object", ID: "ark:/99999/fk4x"}, Action: "create",
		Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}}}))
	_, err := filter.Compile("Item+Create{when=now}")
	fmt.Println(err)
	// Output:
	// Object+create|modify{parent=maps, !component=derivatives}
	// true
	// filter: column 13: "when" is not a known term; known: id, parent, actor, component, outcome, property, type
}

var sample = envelope.Event{
	Subject: envelope.Ref{Type: "Object", ID: "ark:/99999/fk4x"}, Type: "object.title", Action: "modify-metadata",
	Outcome: "success", Properties: []string{"dc.date", "dc.title"},
	Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}, {Type: "Batch", ID: "b-1"}},
	Context: envelope.Context{Actor: "ada, countess", Component: "store"},
}

// TestFields: the fields of all clauses.
func TestFields(t *testing.T) {
	f, err := filter.Compile("Job+All{outcome=failure, !id=x*}:Object+All{id=y}:All+All")
	if err != nil || !slices.Equal(f.Fields(), []string{"id", "outcome"}) {
		t.Errorf("%v, %v", f.Fields(), err)
	}
}

// TestTerms: each term, negated or not, with values of every form.
func TestTerms(t *testing.T) {
	for text, want := range map[string]bool{
		"Item+All":   true,
		"Item + All": true,
		" * + Modify | Modify-Metadata : Job+All": true,
		"Job+All":                                   false,
		"Item+Create":                               false,
		"Item+Create:Item+Modify_Metadata":          true,
		"Item+All{id=ark:/99999/fk4x}":              true,
		"Item+All{id=ark:/99999/fk4}":               false,
		"Item+All{id=ark:/99999/*}":                 true,
		`Item+All{id="ark:/99999/"*}`:               true,
		`Item+All{id="ark:/99999/*"}`:               false,
		"Item+All{!id=ark:/99999/fk4x}":             false,
		"Item+All{id=other|ark:/99999/fk4x}":        true,
		"Item+All{parent=maps}":                     true,
		"Item+All{parent=b-1}":                      true,
		"Item+All{parent=map}":                      false,
		"Item+All{parent=map*}":                     true,
		"Item+All{!parent=maps}":                    false,
		"Item+All{!parent=books}":                   true,
		`Item+All{actor="ada, countess"}`:           true,
		"Item+All{actor=ada*}":                      true,
		"Item+All{actor=ada countess}":              false,
		"Item+All{component=store}":                 true,
		"Item+All{!component=store}":                false,
		"Item+All{!component=derivatives|history}":  true,
		"Item+All{OUTCOME=success}":                 true,
		"Item+All{outcome=failure}":                 false,
		"Item+All{property=dc.title}":               true,
		"Item+All{property=title}":                  false,
		"Item+All{!property=dc.title}":              false,
		"Item+All{type=object.*}":                   true,
		"Item+All{type=object.title, parent=maps}":  true,
		"Item+All{type=object.title, parent=books}": false,
		"Item+All{parent=maps, !parent=b-1}":        false,
		"Item+All{parent=books}:Item+All{id=ark*}":  true,
	} {
		f, err := filter.Compile(text)
		if err != nil {
			t.Errorf("%q: %v", text, err)
			continue
		}
		again, err := filter.Compile(f.String())
		if err != nil {
			t.Errorf("%q is written as %q: %v", text, f, err)
			continue
		}
		if f.Match(sample) != want || again.Match(sample) != want || again.String() != f.String() {
			t.Errorf("%q is %s, selects %t; written and read again %s, %t; expected %t",
				text, f, f.Match(sample), again, again.Match(sample), want)
		}
	}
}

// TestAbsent: a term about something that the event does not have does not hold, and a
// negated one does.
func TestAbsent(t *testing.T) {
	bare := envelope.Event{Subject: envelope.Ref{Type: "Job", ID: "j"}, Action: "modify", Outcome: "success"}
	for _, name := range []string{"parent", "actor", "component", "property"} {
		for not, want := range map[string]bool{"": false, "!": true} {
			f, err := filter.Compile("Job+All{" + not + name + "=x}")
			if err != nil || f.Match(bare) != want {
				t.Errorf("%s: %v", f, err)
			}
		}
	}
}

// TestMalformed: an error has the position of what is wrong, and the names that are known
// there.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"":                                  `column 1: no subject type is named here; known: Object or Item,`,
		"  ":                                `column 1: no subject type is named here`,
		"Item":                              `column 5: the filter ends here; expected a plus sign and actions`,
		"Item:Bundle+Add":                   `column 5: unexpected ':'; expected a plus sign`,
		"Item+":                             `column 6: no action is named here`,
		"+Create":                           `column 1: no subject type is named here`,
		"Itm+Create":                        `column 1: "Itm" is not a known subject type; known: Object or Item,`,
		"Item|Colection+Create":             `column 6: "Colection" is not a known subject type`,
		"Item+Create:Job+Modifed":           `column 17: "Modifed" is not a known action; known: create, modify,`,
		"Item+Create|Nothing|Modify":        `column 13: "Nothing"`,
		"Item||Collection+Create":           `column 6: no subject type is named here`,
		"Item+Create+Modify":                `column 13: unexpected 'M'; expected a colon`,
		"Item+Create::Job+All":              `column 13: no subject type is named here`,
		"Ärchiv+Create":                     `column 1: "Ärchiv" is not`,
		"Item+Création|Ünknown":             `column 6: "Création" is not`,
		"Item+Create{":                      `column 13: "" is not a known term; known: id, parent, actor`,
		"Item+Create{}":                     `column 13: "" is not a known term`,
		"Item+Create{when=1}":               `column 13: "when" is not a known term`,
		"Item+Create{id}":                   `column 15: unexpected '}'; expected an equals sign`,
		"Item+Create{id!=1}":                `column 15: unexpected '!'; expected an equals sign and a value (an`,
		"Item+Create{id=}":                  `column 16: a value is missing`,
		"Item+Create{id=*}":                 `column 16: a value is missing; an asterisk`,
		"Item+Create{id=a*b}":               `column 18: unexpected 'b'; expected the end of the value`,
		`Item+Create{id="a}`:                `column 16: the quotation mark has no end`,
		`Item+Create{id=a"b}`:               `column 17: unexpected '"'`,
		"Item+Create{id=a":                  `column 17: the filter ends here; expected a comma before the next term`,
		"Item+Create{id=a, }":               `column 19: "" is not a known term`,
		"Item+Create{id={a}}":               `column 16: a value is missing`,
		"Item+Create{outcome=ok}":           `column 21: "ok" is not a value of outcome; known: success, failure`,
		"Item+Create{outcome=succ*}":        `column 21: "succ*" is not a value`,
		"Item+Create{id=a}Job+All":          `column 18: unexpected 'J'; expected a colon`,
		"Item+Create}":                      `column 12: unexpected '}'`,
		strings.Repeat("Item+Create:", 101): `column 1212: the filter has more than 100 clauses`,
		strings.Repeat("x", 5000):           `column 4097: the filter has more than 4096 characters`,
	} {
		f, err := filter.Compile(text)
		var position *filter.Error
		if !errors.As(err, &position) || !strings.HasPrefix(err.Error(), "filter: "+want) {
			t.Errorf("%.40q: %v, %v; expected %s", text, f, err, want)
		}
	}
}

// TestEveryType: every type of subject that events have can be named, alone.
func TestEveryType(t *testing.T) {
	for _, kind := range event.Types {
		f, err := filter.Compile(kind.String() + "+All")
		if err != nil {
			t.Error(err)
			continue
		}
		for _, other := range event.Types {
			e := envelope.Event{Subject: envelope.Ref{Type: other.String(), ID: "1"}, Action: "disseminate"}
			if f.Match(e) != (kind == other) {
				t.Errorf("%s on a %s", f, other)
			}
		}
	}
}

// TestSelectsFiles: the list of a version's files is needed only by a filter that names File, and may
// select one of them.
func TestSelectsFiles(t *testing.T) {
	version := envelope.Event{ID: "e", Type: "version.create", Action: envelope.Create, Outcome: "success",
		Subject: envelope.Ref{Type: "Version", ID: "ark:/1/a/v1"},
		Parents: []envelope.Ref{{Type: "Collection", ID: "maps"}}}
	without := version
	without.Type = "version.x"
	for text, want := range map[string]bool{
		"All+All":                              false,
		"Version+All":                          false,
		"Bitstream+Create":                     true,
		"Version+Create:File|Job+All":          true,
		"File+Disseminate|Delete":              false,
		"File+All{type=file.disseminate}":      false,
		"File+All{type=file.create}":           true,
		"File+Create{parent=maps}":             true,
		"File+Create{parent=ark:/1/a/v1}":      true,
		"File+Create{parent=other}":            false,
		"File+Create{!parent=maps}":            false,
		"File+Create{id=ark:/1/a/v1/x.tif}":    true,
		"File+Create{id=ark:/1/a/v1/x*|b}":     true,
		"File+Create{id=ark:/1/a/*}":           true,
		"File+Create{id=ark:/1/a/v2/*}":        false,
		"File+Create{id=ark:/1/a/v1}":          false,
		"File+Create{!id=ark:/1/a/v1/x.tif}":   true,
		"File+Create{id=x}:File+Add|Create":    true,
		"File+Create{outcome=failure}:All+All": false,
	} {
		f, err := filter.Compile(text)
		if err != nil || f.SelectsFiles(version) != want {
			t.Errorf("%s: %t, %v", text, !want, err)
		}
		if f.SelectsFiles(without) {
			t.Errorf("%s: an event without files has some", text)
		}
	}
}

// TestAnd: two filters as one select what both do, files too.
func TestAnd(t *testing.T) {
	version := envelope.Event{Subject: envelope.Ref{Type: "Version", ID: "ark:/99999/fk4x/v1"}, Type: "version.create",
		Action: "create", Detail: []byte(`{"fileList":{"key":"k"}}`)}
	for _, c := range []struct {
		one, also     string
		matches, file bool
	}{
		{"All+All", "Object+All", true, false},
		{"All+All", "Job+All", false, false},
		{"Job+All", "Object+All", false, false},
		{"File+All", "All+All", false, true},
		{"File+All", "Version+All", false, false},
		{"File+All", "All+All{id=ark:/99999/fk4x*}", false, true},
		{"File+All", "All+All{id=ark:/99999/fk4y*}", false, false},
		{"All+All", "File+All", false, false},
	} {
		one, err := filter.Compile(c.one)
		if err != nil {
			t.Fatal(err)
		}
		also, err := filter.Compile(c.also)
		if err != nil {
			t.Fatal(err)
		}
		both := one.And(also)
		if both.Match(sample) != c.matches || both.SelectsFiles(version) != c.file {
			t.Errorf("%s and %s: %v, files %v", c.one, c.also, both.Match(sample), both.SelectsFiles(version))
		}
	}
}
