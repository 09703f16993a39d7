package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"reflect"
	"slices"
	"testing"

	"archivist/pkg/ingest"
)

var update = flag.Bool("update", false, "write the stored OpenAPI document anew")

// contract is the OpenAPI document as clients know it, indented, otherwise as it is served.
const contract = "testdata/openapi.json"

// mostDifferences is how many lines a failure has, at most.
const mostDifferences = 20

// TestContract: the document is the stored one, so that no change of a type of this program changes the API unnoticed.
func TestContract(t *testing.T) {
	c, _ := serve(t, through)
	_, served := ask(t, "GET", c.URL+"/openapi.json", "")
	var text bytes.Buffer
	if err := json.Indent(&text, []byte(served), "", " "); err != nil {
		t.Fatal(err)
	}
	text.WriteByte('\n')
	if *update {
		if err := os.WriteFile(contract, text.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}

	stored, err := os.ReadFile(contract)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Equal(text.Bytes(), stored) {
		return
	}

	var got, want any
	if err := json.Unmarshal(text.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(stored, &want); err != nil {
		t.Fatalf("%s: %v", contract, err)
	}
	all := differences("", got, want)
	for _, d := range all[:min(len(all), mostDifferences)] {
		t.Error(d)
	}
	t.Errorf("%d differences between the document and %s (0: the order). If they are meant: -update",
		len(all), contract)
}

// differences are where two JSON values differ, a line for each: a field that only one of them has, or another value.
// Fields are named by their path, and objects of lists by their names if they have some, as parameters do.
func differences(at string, got, want any) (out []string) {
	a, isObject := fieldsOf(got)
	b, wasObject := fieldsOf(want)
	if !isObject || !wasObject {
		if !reflect.DeepEqual(got, want) {
			out = append(out, fmt.Sprintf("%s: it is %s, and was %s", at, short(got), short(want)))
		}
		return out
	}

	names := maps.Clone(a)
	maps.Copy(names, b)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		is, now := a[name]
		was, before := b[name]
		path := at + "/" + name
		switch {
		case !before:
			out = append(out, fmt.Sprintf("%s: it is new: %s", path, short(is)))
		case !now:
			out = append(out, fmt.Sprintf("%s: it is missing; it was %s", path, short(was)))
		default:
			out = append(out, differences(path, is, was)...)
		}
	}
	return out
}

// fieldsOf are the fields of an object, or the elements of a list of objects that have names.
func fieldsOf(value any) (object, bool) {
	list, isList := value.([]any)
	if !isList {
		fields, is := value.(object)
		return fields, is
	}
	out := object{}
	for _, element := range list {
		fields, _ := element.(object)
		name, is := fields["name"].(string)
		if !is {
			return nil, false
		}
		out[name] = fields
	}
	return out, true
}

// short is a value as JSON, so much of it as fits on a line.
func short(value any) string {
	text, _ := json.Marshal(value)
	return ingest.Cut(string(text), 120)
}

// TestContractSaysWhatDiffers: a failure names fields and parameters, each in a line.
func TestContractSaysWhatDiffers(t *testing.T) {
	before := object{"a": object{"b": 1.0, "gone": true}, "p": []any{object{"name": "q", "in": "path"}},
		"l": []any{"x"}}
	after := object{"a": object{"b": 2.0, "c": "new"}, "p": []any{object{"name": "q", "in": "query"}},
		"l": []any{"y"}}
	want := []string{"/a/b: it is 2, and was 1", `/a/c: it is new: "new"`, "/a/gone: it is missing; it was true",
		`/l: it is ["y"], and was ["x"]`, `/p/q/in: it is "query", and was "path"`}
	if got := differences("", after, before); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := differences("", before, before); len(got) > 0 {
		t.Errorf("a document differs from itself: %q", got)
	}
}
