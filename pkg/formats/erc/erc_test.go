package erc

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"testing"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"
)

const (
	oai  = `<dc xmlns="http://www.openarchives.org/OAI/2.0/oai_dc/" xmlns:d="http://purl.org/dc/elements/1.1/">`
	cite = `<resource xmlns="http://datacite.org/schema/kernel-4">`
)

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		read func(io.Reader) (Kernel, error)
		text string
		want Kernel
	}{
		"ERC": {ReadERC, "erc:\nwho: Lovelace, Ada\nwho: Menabrea\nwhat: Notes\n upon the memoir\nwhen: 1843\n" +
			"where: ark:/99999/x\nwhere: local\nwhere: local\nrights: none\ncolour: red\n",
			Kernel{Who: []string{"Lovelace, Ada", "Menabrea"}, What: []string{"Notes upon the memoir"},
				When: []string{"1843"}, Where: []string{"ark:/99999/x", "local"},
				More: map[string][]string{"rights": {"none"}}}},
		"byte order mark": {ReadERC, "\ufeffwho: A\n", Kernel{Who: []string{"A"}}},
		"identifiers":     {ReadERC, "where: a; b;\n", Kernel{Where: []string{"a", "b"}}},
		"short form": {ReadERC, "erc: Lovelace | Notes | 1843 | ark:/99999/x\n",
			Kernel{Who: []string{"Lovelace"}, What: []string{"Notes"}, When: []string{"1843"},
				Where: []string{"ark:/99999/x"}}},
		"coded": {ReadERC, "who: (:unas)\nwhat: (:unkn)\nwhen: (:null)\nwhere: (:unav) something\n",
			Kernel{What: []string{"(:unkn)"}, When: []string{"(:null)"}, Where: []string{"(:unav) something"}}},
		"a value beside codes": {ReadERC, "who: (:UNKN)\nwho: A\nwho: (:none)\nwhat: (:TBA)\n" +
			"when: (:Unkn)\nwhen: (:none)\nwhere: (:unkn); a\n",
			Kernel{Who: []string{"A"}, When: []string{"(:unkn)"}, Where: []string{"a"}}},
		"lines are joined": {ReadDC, oai + "<d:title>\n  Notes \r\n upon\u2028the memoir</d:title></dc>",
			Kernel{What: []string{"Notes upon the memoir"}}},
		"DC": {ReadDC, oai + `<d:creator>A</d:creator><d:creator>B</d:creator><d:title>T &amp; U</d:title>` +
			`<d:date>2026</d:date><d:rights>CC0</d:rights><d:subject>s</d:subject><d:subject>t</d:subject><other>x</other></dc>`,
			Kernel{Who: []string{"A", "B"}, What: []string{"T & U"}, When: []string{"2026"},
				More: map[string][]string{"rights": {"CC0"}, "subject": {"s", "t"}}}},
		"DataCite": {ReadDataCite, cite + `<creators><creator><creatorName>A</creatorName></creator></creators>` +
			`<titles><title>T</title></titles><publicationYear>2026</publicationYear>` +
			`<descriptions><description>one<br/>two</description></descriptions></resource>`,
			Kernel{Who: []string{"A"}, What: []string{"T"}, When: []string{"2026"},
				More: map[string][]string{"description": {"one\ntwo"}}}},
	} {
		got, err := c.read(strings.NewReader(c.text))
		if err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s: got %+v, %v, want %+v", name, got, err, c.want)
		}
	}
	for _, bad := range []string{
		"<dc", "<dc>&unknown;</dc>",
		`<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><x>&e;</x>`,
		`<?xml version="1.0" encoding="EBCDIC-none"?><x/>`,
	} {
		if k, err := ReadDC(strings.NewReader(bad)); err == nil {
			t.Errorf("%s was read as %v", bad, k)
		}
	}
	_, err := ReadERC(strings.NewReader("what: caf\xe9\n"))
	if err == nil || !strings.Contains(err.Error(), "save the file as UTF-8") {
		t.Errorf("an ERC in Latin-1 gave %v", err)
	}
}

// TestManyValues: a description of very many values is read in time that grows
// with their number.
func TestManyValues(t *testing.T) {
	var b strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&b, "who: %d\nwhere: id%d\n", i, i)
	}
	k, err := ReadERC(strings.NewReader(b.String()))
	if err != nil || len(k.Who) != 50_000 || len(k.Where) != 50_000 || k.Who[49_999] != "49999" {
		t.Errorf("%d creators, %d identifiers, %v", len(k.Who), len(k.Where), err)
	}
}

func TestCharsets(t *testing.T) {
	doc := func(declared string) string {
		return `<?xml version="1.0"` + declared + `?>` + oai + `<d:title>Café “œ”</d:title></dc>`
	}
	encoded := func(in encoding.Encoding, text string) string {
		s, err := in.NewEncoder().String(text)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	little := unicode.UTF16(unicode.LittleEndian, unicode.UseBOM)
	plainLittle := unicode.UTF16(unicode.LittleEndian, unicode.IgnoreBOM)
	big := unicode.UTF16(unicode.BigEndian, unicode.UseBOM)
	for name, text := range map[string]string{
		"UTF-8":                  doc(` encoding="UTF-8"`),
		"UTF-8 with a BOM":       "\ufeff" + doc(` encoding="utf-8"`),
		"windows-1252":           encoded(charmap.Windows1252, doc(` encoding="windows-1252"`)),
		"UTF-16 LE with BOM":     encoded(little, doc(` encoding="UTF-16"`)),
		"UTF-16 BE with BOM":     encoded(big, doc(` encoding="utf-16"`)),
		"UTF-16 LE without BOM":  encoded(plainLittle, doc(` encoding="UTF-16LE"`)),
		"UTF-16, no declaration": encoded(big, doc("")),
	} {
		if k, err := ReadDC(strings.NewReader(text)); err != nil || len(k.What) != 1 || k.What[0] != "Café “œ”" {
			t.Errorf("%s: got %+v, %v", name, k, err)
		}
	}
	latin := `<?xml version="1.0" encoding="ISO-8859-1"?>` + oai + "<d:title>Caf\xe9</d:title></dc>"
	if k, err := ReadDC(strings.NewReader(latin)); err != nil || k.What[0] != "Café" {
		t.Errorf("ISO-8859-1: got %+v, %v", k, err)
	}
}

func TestOr(t *testing.T) {
	k := Kernel{Who: []string{"a"}, Where: []string{"1"}, More: map[string][]string{"rights": {"r"}}}.
		Or(Kernel{Who: []string{"b"}, What: []string{"c"}, Where: []string{"1", "2"},
			More: map[string][]string{"rights": {"s"}, "subject": {"t"}}})
	want := Kernel{Who: []string{"a"}, What: []string{"c"}, Where: []string{"1", "2"},
		More: map[string][]string{"rights": {"r"}, "subject": {"t"}}}
	if !reflect.DeepEqual(k, want) {
		t.Errorf("got %+v, want %+v", k, want)
	}
}
