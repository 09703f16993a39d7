package description_test

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/formats/erc"
	"archivist/pkg/ingest"
	"archivist/pkg/ingest/description"
)

const (
	ercFile      = "producer/mrt-erc.txt"
	dataciteFile = "producer/mrt-datacite.xml"
	dcFile       = "producer/mrt-dc.xml"
)

// text is a record of a package.
func text(content string) description.Part {
	return description.Part{Size: int64(len(content)), Open: func() (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader(content)), nil
	}}
}

const (
	datacite = `<resource xmlns="http://datacite.org/schema/kernel-4">` +
		`<creators><creator><creatorName>DataCite who</creatorName></creator></creators>` +
		`<titles><title>DataCite what</title></titles><publicationYear>2001</publicationYear></resource>`
	dublinCore = `<dc xmlns="http://purl.org/dc/elements/1.1/"><creator>DC who</creator><title>DC what</title>` +
		`<date>2002</date><rights>DC rights</rights></dc>`
)

var form = ingest.Metadata{Who: "form who", What: "form what", When: "2003", Where: "form id"}

// parts are the records of a package.
type parts = map[string]description.Part

// TestPrecedence: each element comes from the best source that has it.
func TestPrecedence(t *testing.T) {
	for name, c := range map[string]struct {
		parts parts
		said  ingest.Metadata
		want  string
	}{
		"nothing":  {want: "[] [] [] []"},
		"the form": {said: form, want: "[form who] [form what] [2003] [form id]"},
		"DC before the form": {
			parts: parts{dcFile: text(dublinCore)}, said: form,
			want: "[DC who] [DC what] [2002] [form id]"},
		"DataCite before DC": {
			parts: parts{dcFile: text(dublinCore), dataciteFile: text(datacite)},
			want:  "[DataCite who] [DataCite what] [2001] []"},
		"ERC first, and what it lacks from the next": {
			parts: parts{ercFile: text("what: ERC what\n"), dataciteFile: text(datacite)},
			want:  "[DataCite who] [ERC what] [2001] []"},
		"a code for nothing is nothing": {
			parts: parts{ercFile: text("what: (:unkn)\n")}, said: form,
			want: "[form who] [form what] [2003] [form id]"},
		"identifiers add up": {
			parts: parts{ercFile: text("where: a; b\n")}, said: form,
			want: "[form who] [form what] [2003] [a b form id]"},
		"records below the top level are not used": {
			parts: parts{"producer/x/mrt-erc.txt": text("what: no\n")},
			want:  "[] [] [] []"},
	} {
		d, refused, err := description.Settle(c.parts, c.said)
		if got := fmt.Sprint(d.Who, d.What, d.When, d.Where); err != nil || refused != "" || got != c.want {
			t.Errorf("%s: got %s, want %s (%q, %v)", name, got, c.want, refused, err)
		}
	}
}

// TestInherit: missing elements are those of the version before, except identifiers.
func TestInherit(t *testing.T) {
	d := description.Description{Kernel: erc.Kernel{What: []string{"new"}}}
	d.Inherit(erc.Kernel{Who: []string{"old who"}, What: []string{"old"}, Where: []string{"old id"},
		More: map[string][]string{"rights": {"CC0"}}})
	if got, want := fmt.Sprint(d.Who, d.What, d.Where, d.More), "[old who] [new] [] map[rights:[CC0]]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestIdentifiers: the ARK is distinguished from the other identifiers, in any of its forms.
func TestIdentifiers(t *testing.T) {
	said := ingest.Metadata{Where: "doi:10.1/x; ark:99999/fk4a; ark:/99999/fk4a; y"}
	d, refused, err := description.Settle(nil, said)
	if err != nil || refused != "" || d.ARK != "ark:/99999/fk4a" {
		t.Errorf("the ARK is %q (%q, %v)", d.ARK, refused, err)
	}
	if want := []string{"doi:10.1/x", "y"}; !slices.Equal(d.LocalIDs, want) {
		t.Errorf("the others are %q, want %q", d.LocalIDs, want)
	}
}

// TestRefused: a record that cannot be used is refused with the reason; a record that
// could not be opened is an error.
func TestRefused(t *testing.T) {
	long := description.Part{Size: 1<<20 + 1, Open: func() (io.ReadCloser, error) { panic("it is not opened") }}
	for want, part := range map[string]description.Part{
		"mrt-erc.txt has 1048577 bytes": long,
		"mrt-erc.txt cannot be read":    text("what: caf\xe9\n"),
		"two arks":                      text("where: ark:/99999/fk4a; ark:/99999/fk4b\n"),
	} {
		_, refused, err := description.Settle(parts{ercFile: part}, form)
		if err != nil || !strings.Contains(refused, want) {
			t.Errorf("refused is %q, want %q (%v)", refused, want, err)
		}
	}
	broken := errors.New("the bucket does not answer")
	part := description.Part{Open: func() (io.ReadCloser, error) { return nil, broken }}
	_, refused, err := description.Settle(parts{ercFile: part}, form)
	if !errors.Is(err, broken) {
		t.Errorf("got %q, %v; want the error", refused, err)
	}
}

// TestIsSource: the records are those that Settle reads.
func TestIsSource(t *testing.T) {
	for path, want := range map[string]bool{
		ercFile: true, dataciteFile: true, dcFile: true, "producer/a.txt": false, "mrt-erc.txt": false,
	} {
		if got := description.IsSource(path); got != want {
			t.Errorf("%s: got %v, want %v", path, got, want)
		}
	}
}

// The package's own record takes precedence; the submission adds the rest.
func Example() {
	record := text("what: Notes by the Translator\nwhere: notebook 7\n")
	said := ingest.Metadata{Who: "Ada Lovelace", What: "Notes", When: "1843"}
	d, refused, err := description.Settle(parts{"producer/mrt-erc.txt": record}, said)
	fmt.Println(d.Who, d.What, d.When, d.LocalIDs, refused, err)

	d.Inherit(erc.Kernel{More: map[string][]string{"rights": {"CC0"}}})
	fmt.Println(slices.Collect(maps.Values(d.More)))
	// Output:
	// [Ada Lovelace] [Notes by the Translator] [1843] [notebook 7]  <nil>
	// [[CC0]]
}
