package merritt

import (
	"reflect"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

const (
	media = "multipart/form-data; boundary=b"
	whole = "--b\r\nContent-Disposition: form-data; name=profile\r\n\r\nmaps\r\n--b\r\n" +
		"Content-Disposition: form-data; name=file; filename=a.txt\r\n\r\nabc\r\n--b--\r\n"
)

// TestRead: a form is read if it is whole, and only then: of what was cut anywhere, nothing is made.
func TestRead(t *testing.T) {
	f, err := Read(media, []byte(whole))
	if err != nil || string(f.File) != "abc" || f.Name != "a.txt" {
		t.Fatalf("%+v, %v", f, err)
	}
	end := strings.Index(whole, "--b--") + len("--b--")
	for n := range end {
		if f, err := Read(media, []byte(whole[:n])); !fault.Is(err, fault.Invalid) {
			t.Errorf("%q: %+v, %v", whole[:n], f, err)
		}
	}
}

// TestFields: each field is set, none is known twice, and what is ignored is named.
func TestFields(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range Fields {
		if seen[one.Name] || one.Means == "" || Ignored[one.Name] != "" || unkept(one.Name) {
			t.Errorf("%+v", one)
		}
		seen[one.Name] = true
	}
	in, err := Form{Name: "a", fields: []field{{"profile", "maps"}, {"batch", "1"}, {"localIdentifier", "a; ;b"},
		{"localIdentifier", "c"}}}.Request(Route{})
	want := v1.BatchRequest{Collection: "maps", Mode: "add", Payload: v1.Payload{Filename: "a"},
		Identifiers: &v1.Identifiers{Local: []string{"a", "b", "c"}}}
	if err != nil || !reflect.DeepEqual(in.Batch, want) || len(in.Warnings) != 1 {
		t.Errorf("%+v, %v", in, err)
	}
}

// TestFormatOf: the form of an answer is what the form says, also where it is cut, or else what the header says.
func TestFormatOf(t *testing.T) {
	asks := "--b\r\nContent-Disposition: form-data; name=responseForm\r\n\r\n JSON \r\n"
	for _, row := range []struct {
		media, body, accept string
		want                Format
	}{
		{media, asks + whole, "text/xml", JSON}, {media, asks + "--b\r\nContent", "", JSON}, {media, whole, "", XML},
		{media, whole, "text/html, application/json;q=0.5, text/xml", JSON}, {"", asks, "application/xml", XML},
		{"text/plain", asks, "*/*", XML}, {media, strings.ReplaceAll(asks, "JSON", "anvl"), "application/json", JSON},
	} {
		if got := FormatOf(row.media, []byte(row.body), row.accept); got != row.want {
			t.Errorf("%+v: %s", row, got)
		}
	}
}

// TestNamed: refusals name the fields of the form.
func TestNamed(t *testing.T) {
	for text, want := range map[string]string{"payload.digest: x": "digestValue: x", "collection: y": "profile: y",
		"the collection: y": "the collection: y", "identifiers.primary, metadata.what": "primaryIdentifier, title"} {
		if got := Named(text); got != want {
			t.Errorf("%s: %s", text, got)
		}
	}
}
