package curation

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"archivist/pkg/kernel/fault"
)

var (
	five = 5
	full = Record{Source: "show", ID: "1", Title: "A, \"B\"\nC", URL: "https://x.org/1.mp3", Size: 3, SHA256: "ab",
		Withdrawn: true, Priority: &five, Curated: 1_795_341_600_000, Initial: 1_795_305_600_000}
	short = Record{ID: "2", URL: "u"}
)

type found struct {
	line int
	rec  Record
}

func read(r io.Reader, f Format) (all []found, err error) {
	err = Read(r, f, func(line int, rec Record) error {
		all = append(all, found{line, rec})
		return nil
	})
	return all, err
}

// TestRead: both formats give the same records, however the bytes arrive.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		format Format
		text   string
		lines  [2]int
	}{
		{CSV, "\uFEFFid,source,title,url,size,sha256,withdrawn,priority,curated,initial\r\n" +
			"1,show,\"A, \"\"B\"\"\r\nC\",https://x.org/1.mp3,3,ab,true,5,2026-11-22T10:00:00Z,2026-11-22\r\n" +
			"2,,,u,,,,,,\r\n", [2]int{2, 4}},
		{JSONLines, "\uFEFF" + `{"source":"show","id":"1","title":"A, \"B\"\nC","url":"https://x.org/1.mp3","size":3,` +
			`"sha256":"ab","withdrawn":true,"priority":5,"curated":"2026-11-22T11:00:00+01:00","initial":1795305600000}` +
			"\n\n" + `{"id":"2","url":"u"}`, [2]int{1, 3}},
	} {
		want := []found{{c.lines[0], full}, {c.lines[1], short}}
		got, err := read(iotest.OneByteReader(strings.NewReader(c.text)), c.format)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v\n%+v\n%+v", c.format, err, got, want)
		}
	}
}

// TestRefusedFiles: what is wrong is refused with its place and what is expected.
func TestRefusedFiles(t *testing.T) {
	for _, c := range []struct {
		format     Format
		text, want string
	}{
		{CSV, "", "the file is empty"},
		{CSV, "id,url,Titel\n", `line 1, field 3: there is no column "Titel"; the columns are source, id, title, url`},
		{CSV, "id;url\n", `there is no column "id;url"`},
		{CSV, "id,url,id\n", `line 1, field 3: the column "id" is there twice`},
		{CSV, "id,title\n", `line 1: the column "url" is missing`},
		{CSV, "id,url\n1\n", "line 2, column 1: wrong number of fields"},
		{CSV, "id,url\n1,a\"b\n", `line 2, column 4: bare " in non-quoted-field`},
		{CSV, "id,url\n1,\"ab\n", `column 7: extraneous or missing " in quoted-field`},
		{CSV, "id,url,priority\n1,u,\n2,u,high\n", `line 3, column 5: priority: found "high"; expected a whole number`},
		{CSV, "id,url,size\n1,u,99999999999999999999\n", `size: found "99999999999999999999"`},
		{CSV, "id,url,withdrawn\n1,u,yes\n", `withdrawn: found "yes"; expected true or false`},
		{CSV, "id,url,curated\n1,u,soon\n", `curated: found "soon"; expected a time like`},
		{CSV, "id,url\n1,\xff\n", "line 2, column 3: url: the text is not UTF-8"},
		{CSV, "id,url\n1,\"" + strings.Repeat("a\n", MaxRecord), "more than 65536 bytes; is a quotation mark missing?"},
		{JSONLines, "{}\n" + `{"id":"1","titel":"x"}`,
			`line 2, column 11: there is no field "titel"; the fields are source`},
		{JSONLines, `{"id":"1","id":"2"}`, `line 1, column 11: the field "id" is there twice`},
		{JSONLines, `{"id":1}`, "line 1, column 7: id: a JSON number is not possible here"},
		{JSONLines, `{"curated":true}`, `curated: found "true"; expected a time like`},
		{JSONLines, `{"id":"1"`, "line 1, column 10: unexpected EOF"},
		{JSONLines, `{"id":"1"} x`, "line 1, column 12: invalid character 'x'"},
		{JSONLines, `{"project":"p"}`, `there is no field "project"`},
		{JSONLines, "\n" + strings.Repeat(" ", MaxRecord), "line 2: it has more than 65536 bytes"},
	} {
		_, err := read(strings.NewReader(c.text), c.format)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.60q: %v\nwant %s", c.text, err, c.want)
		}
	}
}

// TestErrorsOfOthers: an error of the file, and one of who takes the records, end the reading as they are.
func TestErrorsOfOthers(t *testing.T) {
	broken := errors.New("broken")
	for _, f := range []Format{CSV, JSONLines} {
		text := map[Format]string{CSV: "id,url\n1,u\n2,u\n", JSONLines: `{"id":"1"}` + "\n" + `{"id":"2"}` + "\n"}[f]
		got, err := read(io.MultiReader(strings.NewReader(text), iotest.ErrReader(broken)), f)
		if !errors.Is(err, broken) || fault.Of(err) != "" || len(got) != 2 {
			t.Errorf("%s: %+v, %v", f, got, err)
		}
		n := 0
		err = Read(strings.NewReader(text), f, func(int, Record) error { n++; return broken })
		if err != broken || n != 1 {
			t.Errorf("%s: %d, %v", f, n, err)
		}
	}
	names := map[string]Format{"a.csv": CSV, "a.b.JSONL": JSONLines, "a.ndjson": JSONLines, "a.json": ""}
	for name, want := range names {
		got, err := FormatOf(name)
		if got != want || (err != nil) != (want == "") {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
}

// TestDecode: a message has the project and the kind besides the record.
func TestDecode(t *testing.T) {
	got, err := Decode(`{"project":"p","kind":"clip","id":"2","url":"u"}`)
	if err != nil || !reflect.DeepEqual(got, Message{"p", "clip", short}) {
		t.Errorf("%+v, %v", got, err)
	}
	for text, want := range map[string]string{
		`{"id":"2","x":1}`: `no curated record: column 11: there is no field "x"; the fields are project, kind`,
		"":                 "unexpected EOF",
		"[]":               "a JSON [ is not possible here",
		`{"title":"` + strings.Repeat("a", MaxRecord) + `"}`: "at most 65536 are accepted",
	} {
		_, err := Decode(text)
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v", text, err)
		}
	}
}
