package checkm

import (
	"encoding/binary"
	"errors"
	"fmt"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"
)

const (
	profile = "#%profile | http://uc3.cdlib.org/registry/ingest/manifest/"
	fields  = "#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName | nie:mimeType\n"
	prefix = "#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#\n"
	start  = "#%checkm_0.7\n" + profile + "mrt-ingest-manifest\n" + prefix + fields
	batch  = "#%checkm_0.7\n" + profile + "mrt-batch-manifest\n" + prefix +
		"#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | " +
		"nfo:fileName | mrt:primaryIdentifier | mrt:localIdentifier | mrt:creator | mrt:title | mrt:date\n"
	md5  = "d41d8cd98f00b204e9800998ecf8427e"
	good = "http://x/a | md5 | " + md5 + " | 0 | | a.txt |\n"
	eof  = "#%eof\n"
)

// ruleCases has one small manifest per rule (source: the section on manifests).
var ruleCases = []struct {
	name, text string
	severity   Severity // "" = accepted without a problem
	line       int
	says       string
}{
	{"the smallest", start + good + eof, "", 0, ""},
	{"a byte order mark", "\ufeff" + start + good + eof, Warning, 1, "byte order mark"},
	{"CRLF", strings.ReplaceAll(start+good+eof, "\n", "\r\n"), "", 0, ""},
	{"directives in any case",
		"#%CHECKM_0.7\n#%PROFILE | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n#%Prefix | a | " +
			"b\n#%Fields | nfo:fileUrl\nhttp://x/a | | | | | a.txt\n#%EOF\n", Error, 5, "not declared"},
	{"#%columns for #%fields", strings.Replace(start, "#%fields", "#%columns", 1) + good + eof, "", 0, ""},
	{"comments and blank lines", start + "# a comment\n\n   \n" + good + "\n" + eof, "", 0, ""},
	{"an unknown directive", start + "#%colour | red\n" + good + eof, Warning, 5, "not known"},
	{"the older registry", strings.Replace(start, "ingest/manifest/mrt-ingest-manifest", "mrt/mrt-object-manifest", 1) +
		good + eof, "", 0, ""},
	{"no declaration", strings.TrimPrefix(start, "#%checkm_0.7\n") + good + eof, Warning, 6, "no #%checkm"},
	{"no prefix", strings.Replace(start, prefix, "", 1) + good + eof, Warning, 6, "no #%prefix"},
	{"no fields", strings.Replace(start, fields, "", 1) + good + eof, Warning, 6, "no #%fields"},
	{"no final line break", start + good + "#%eof", Warning, 6, "no line break"},
	{"no profile", "#%checkm_0.7\n#%prefix | a | b\n" + fields + good + eof, Error, 6, "no #%profile"},
	{"an unknown profile",
		"#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-other\n#%prefix | a | b\n" +
			fields + good + eof, Error, 2, "found the profile"},
	{"a known profile elsewhere", "#%checkm_0.7\n#%profile | http://example.org/mrt-ingest-manifest\n#%prefix | " +
		"a | b\n" + fields + good + eof, Error, 2, "found the profile"},
	{"no eof", start + good, Error, 6, "no #%eof"},
	{"a blank line after eof", start + good + eof + "\n", Warning, 7, "after #%eof"},
	{"the prefixes of Merritt", strings.Replace(start, prefix,
		prefix+"#%prefix | mrt: | http://uc3.cdlib.org/ontology/mom#\n#%Prefix | NIE: | "+
			"http://www.semanticdesktop.org/ontologies/2007/01/19/nie#\n", 1) + good + eof, "", 0, ""},
	{"a prefix of another ontology", strings.Replace(start, "2007/03/22/nfo#", "1999/nfo#", 1) + good + eof, Warning, 3,
		"expected http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#"},
	{"a prefix that is not the profile's", strings.Replace(start, prefix,
		prefix+"#%prefix | dc: | http://purl.org/dc/terms/\n", 1) + good + eof, Warning, 4,
		"\"dc:\" is not one of the profile's"},
	{"a line after eof", start + good + eof + "more\n", Warning, 7, "after #%eof"},
	{"nothing listed", start + eof, Error, 6, "has no rows"},
	{"columns match by the part after the colon", strings.Replace(start, "nfo:fileUrl", "other:fileURL", 1) + good +
		eof, "", 0, ""},
	{"an unknown column", strings.Replace(start, "nie:mimeType", "nie:colour", 1) + good + eof, Warning, 4,
		`"nie:colour" is not known`},
	{"another order", strings.Replace(start, "nfo:hashAlgorithm | nfo:hashValue", "nfo:hashValue | nfo:hashAlgorithm",
		1) + "http://x/a | " + md5 + " | md5 | 0 | | a.txt |\n" + eof, Warning, 4, "another order"},
	{"an order declared that is not the rows'", strings.Replace(start, "nfo:fileUrl | nfo:hashAlgorithm",
		"nfo:hashAlgorithm | nfo:fileUrl", 1) + good + eof, Warning, 5, "first column"},
	{"missing trailing columns", start + "http://x/a | md5 | " + md5 + " | 0 | | a.txt\n" + eof, "", 0, ""},
	{"an empty column too many", start + strings.TrimSuffix(good, "\n") + " | \n" + eof, Warning, 5, "empty column"},
	{"a filled column too many", start + strings.TrimSuffix(good, "\n") + " | | more\n" + eof, Error, 5,
		"not declared"},
	{"%20 and %7c in a name", start + "http://x/a%20b | md5 | " + md5 + " | 0 | | a%20b%7cc%7Cd |\n" + eof, "", 0, ""},
	{"no name", start + "http://x/dir/a.txt | md5 | " + md5 + " | 0 | | |\n" + eof, Warning, 5, `"dir/a.txt" is taken`},
	{"a name twice", start + good + good + eof, Error, 6, "line 5 too"},
	{"a case-only clash", start + good + strings.Replace(good, "a.txt", "A.txt", 1) + eof, Warning, 6,
		"in case or in Unicode normalization only"},
	{"NFC and NFD", start + strings.Replace(good, "a.txt", "caf\u00e9/a", 1) + strings.Replace(good, "a.txt",
		"cafe\u0301/a", 1) + eof, Warning, 6, "of line 5 in case or in Unicode normalization only"},
	{"NFC and NFD of other names", start + strings.Replace(good, "a.txt", "caf\u00e9/a", 1) + strings.Replace(good,
		"a.txt", "cafe\u0301/b", 1) + eof, "", 0, ""},
	{"a file that is a folder", start + strings.Replace(good, "a.txt", "a", 1) + strings.Replace(good, "a.txt", "a/b",
		1) + eof, Error, 6, "also the fileName of line 5"},
	{"a folder that is a file", start + strings.Replace(good, "a.txt", "a/b/c", 1) + strings.Replace(good, "a.txt", "a",
		1) + eof, Error, 6, "the folder of the file of line 5"},
	{"..", start + strings.Replace(good, "a.txt", "../a", 1) + eof, Error, 5, "path segment"},
	{"an absolute name", start + strings.Replace(good, "a.txt", "/a", 1) + eof, Error, 5,
		"begins or ends with a slash"},
	{"a control character", start + strings.Replace(good, "a.txt", "a\x01b", 1) + eof, Error, 5, "control character"},
	{"a line that is not UTF-8", start + "http://x/\xff\n" + good + eof, Error, 5, "not UTF-8"},
	{"s3", start + strings.Replace(good, "http://x/a", "s3://bucket", 1) + eof, Error, 5, "expected s3://bucket/key"},
	{"ftp", start + strings.Replace(good, "http://", "ftp://", 1) + eof, Error, 5, "expected an http"},
	{"no URL", start + strings.Replace(good, "http://x/a", "", 1) + eof, Error, 5, "expected an http"},
	{"an algorithm alone", start + strings.Replace(good, md5, "", 1) + eof, Error, 5, "no digest"},
	{"a digest alone", start + strings.Replace(good, "| md5 |", "| |", 1) + eof, Error, 5, "no algorithm"},
	{"md2", start + strings.Replace(good, "| md5 |", "| md2 |", 1) + eof, Error, 5, "found the algorithm"},
	{"an algorithm with a hyphen, in capitals", start + "http://x/a | SHA-256 | " + strings.Repeat("AB", 32) +
		" | 0 | | a |\n" + eof, "", 0, ""},
	{"a short digest", start + strings.Replace(good, md5, "abc", 1) + eof, Error, 5, "digest of 3 characters"},
	{"a digest that is not hexadecimal", start + strings.Replace(good, md5, strings.Repeat("x", 32), 1) + eof, Error, 5,
		"hexadecimal"},
	{"no digest", start + "http://x/a | | | 0 | | a |\n" + eof, Warning, 5, "no digest"},
	{"a size that is no number", start + strings.Replace(good, "| 0 |", "| big |", 1) + eof, Error, 5,
		"found the size"},
	{"a negative size", start + strings.Replace(good, "| 0 |", "| -1 |", 1) + eof, Error, 5, "found the size"},
	{"a date that is none", start + strings.Replace(good, "| 0 | |", "| 0 | yesterday |", 1) + eof, Warning, 5,
		"ISO 8601"},
	{"a date", start + strings.Replace(good, "| 0 | |", "| 0 | 2026-11-21T15:30:00Z |", 1) + eof, "", 0, ""},
	{"CSV", "fileUrl,hash\nhttp://x/a,1\n", Error, 1, "looks like CSV"},
	{"a batch", batch + "http://x/a | md5 | " + md5 + " | 0 | | a.checkm | ark:/99999/fk4tq65d6k | one; two | A | B " +
		"| 2026\n" + eof, "", 0, ""},
	{"a primary identifier that is no ARK", batch + "http://x/a | md5 | " + md5 + " | 0 | | a.checkm | doi:10.1/2 | " +
		"| | |\n" + eof, Error, 5, "expected an ARK"},
	{"a local id twice in a batch", batch + "http://x/a | | | | | a | | one; two\nhttp://x/b | md5 | " + md5 +
		" | 0 | | b | | three; two\n" + eof, Warning, 6, "the localIdentifier \"two\" is that of line 5 too"},
	{"a local id twice in a batch, NFC and NFD", batch + "http://x/a | | | | | a | | \u00e9\nhttp://x/b | | | | | b " +
		"| | e\u0301\n" + eof, Warning, 6, "in another Unicode normalization"},
	{"a primary identifier twice in a batch", batch + "http://x/a | | | | | a | ark:/99999/fk4tq65d6k\nhttp://x/b | " +
		"| | | | b | ark:99999/fk4tq65d6k\n" + eof, Warning, 6, "is that of line 5 too"},
	{"a name twice in a batch", batch + strings.Repeat("http://x/a | md5 | "+md5+" | 0 | | a.checkm | | | | |\n", 2) +
		eof, "", 0, ""},
	{"no name in a batch", batch + "http://x/dir/a.checkm | md5 | " + md5 + " | 0 | | | | | | |\n" + eof, Warning, 5,
		`"a.checkm" is taken`},
}

func Example() {
	const manifest = `#%checkm_0.7
#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest
#%prefix | nfo: | http://www.semanticdesktop.org/ontologies/2007/03/22/nfo#
#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName
https://example.org/1 | md5 | d41d8cd98f00b204e9800998ecf8427e | 0 | | maps/one.tif
https://example.org/2 | sha-1 | da39a3ee | many | | maps/two.tif
#%eof
`
	m, rows, problems, err := ReadAll(strings.NewReader(manifest), Options{})
	fmt.Println(m.Kind, m.Rows, err)
	fmt.Println(rows[0].Name, rows[0].Algorithm, rows[0].Size)
	for _, p := range problems {
		fmt.Println(p.Severity, p)
	}
	// Output:
	// object 2 <nil>
	// maps/one.tif md5 0
	// error line 6, column 33: found a digest of 8 characters; expected 40 hexadecimal characters for sha1
	// error line 6, column 44: found the size "many"; expected a number of bytes
}

func TestRules(t *testing.T) {
	if len(ruleCases) < 40 {
		t.Errorf("%d cases", len(ruleCases))
	}
	for _, c := range ruleCases {
		_, problems, err := Read(strings.NewReader(c.text), Options{}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if rejected := len(Rejected(problems)) > 0; rejected != (c.severity == Error) || c.severity == "" &&
			len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
			continue
		}
		found := c.severity == ""
		for _, p := range problems {
			found = found || p.Severity == c.severity && p.Line == c.line && strings.Contains(p.Message, c.says)
		}
		if !found {
			t.Errorf("%s: got %+v, want a %s at line %d that says %q", c.name, problems, c.severity, c.line, c.says)
		}
	}
}

func TestRequireDigest(t *testing.T) {
	_, problems, err := Read(strings.NewReader(start+"http://x/a | | | 0 | | a |\n"+eof),
		Options{RequireDigest: true}, nil)
	if err != nil || len(Rejected(problems)) != 1 {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestColumnsOfProblems(t *testing.T) {
	_, problems, err := Read(strings.NewReader(start+"http://x/a | md5 |  abc | 0 | | a |\n"+eof), Options{}, nil)
	if err != nil || len(problems) != 1 || problems[0].Column != 21 {
		t.Errorf("%+v, %v", problems, err)
	}
}

func TestAllProblemsAtOnce(t *testing.T) {
	_, problems, err := Read(strings.NewReader(start+strings.Repeat("ftp://x/a | md5 | abc | big | | .. |\n", 60)+eof),
		Options{}, nil)
	if err != nil || len(problems) != MaxProblems {
		t.Errorf("%d problems, %v", len(problems), err)
	}
}

// TestWarningsHideNoError: however many warnings there are, a manifest with an error is
// rejected.
func TestWarningsHideNoError(t *testing.T) {
	undigested := ""
	for i := range 2 * MaxProblems {
		undigested += fmt.Sprintf("http://x/a | | | 0 | | a%d |\n", i)
	}
	_, problems, err := Read(strings.NewReader(start+undigested), Options{}, nil)
	if err != nil || len(problems) != MaxProblems || len(Rejected(problems)) != 1 {
		t.Errorf("%d problems, %v, %v", len(problems), Rejected(problems), err)
	}
}

func TestBatchRows(t *testing.T) {
	_, rows, problems, err := ReadAll(strings.NewReader(batch+"http://x/a%20b | MD5 | "+strings.ToUpper(md5)+
		" | 7 | | a%20b | ark:/99999/fk4tq65d6k | one; two ;one | A%7cB | C | 2026\n"+eof), Options{})
	want := []Row{{Line: 5, URL: "http://x/a%20b", Algorithm: "md5", Digest: md5, Size: 7, Name: "a b",
		Primary: "ark:/99999/fk4tq65d6k", Local: []string{"one", "two"}, Creator: "A|B", Title: "C", Date: "2026"}}
	if err != nil || len(problems) > 0 || !reflect.DeepEqual(rows, want) {
		t.Errorf("got %+v, %v, %v", rows, problems, err)
	}
}

// TestRoundTrip: rows that are written are read the same, whatever their values are.
// A manifest to be submitted refuses what it has no code for.
func TestRoundTrip(t *testing.T) {
	hostile := rapid.SampledFrom([]string{"|", "%7c", "%7C", "%20", "%25", "%", "%2", " ", "\t", "\n", "\r", "\u00a0",
		"\u0085", "\u2028", "\x01", "#", "\ufeff", "é", "/"})
	text := rapid.Custom(func(t *rapid.T) string {
		return strings.Join(rapid.SliceOfN(rapid.OneOf(hostile, rapid.StringN(0, 5, 20)), 0, 6).Draw(t, "parts"), "")
	})
	again := func(t *rapid.T, manifest string, o Options, want Row) {
		_, rows, problems, err := ReadAll(strings.NewReader(manifest), o)
		want.Line = strings.Count(manifest[:strings.LastIndex(manifest, "\nhttp")+1], "\n") + 1
		if err != nil || len(Rejected(problems)) > 0 || len(rows) != 1 || !reflect.DeepEqual(rows[0], want) {
			t.Fatalf("%+v became %+v, %v, %v in\n%s", want, rows, problems, err, manifest)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		in := Row{URL: "http://x/a", Algorithm: "md5", Digest: md5, Size: rapid.Int64Min(-1).Draw(t, "size"),
			Name: text.Draw(t, "name"), Modified: text.Draw(t, "date"), MediaType: text.Draw(t, "type")}
		if BadName(in.Name) != "" {
			in.Name = "a"
		}
		var kept strings.Builder
		m := NewStored(&kept, "a comment")
		if err := errors.Join(m.Row(in), m.Close()); err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(kept.String(), "#%checkm_0.7\n# a comment\n") {
			t.Fatalf("it begins with %.40q", kept.String())
		}
		again(t, kept.String(), Options{Stored: true}, in)
		var object strings.Builder
		if err := Write(&object, profile[len("#%profile | "):]+"mrt-ingest-manifest", []Row{in}); err == nil {
			again(t, object.String(), Options{}, in)
		} else if plain := regexp.MustCompile(`^[!-$&-~]*$`); plain.MatchString(in.Name + in.Modified + in.MediaType) {
			t.Fatalf("%+v was refused: %v", in, err)
		}
		row := Row{URL: in.URL, Algorithm: in.Algorithm, Digest: in.Digest, Size: in.Size, Name: in.Name,
			Title: text.Draw(t, "title"), Creator: text.Draw(t, "creator"), Local: []string{"a", "b"}}
		var list strings.Builder
		if WriteBatch(&list, profile[len("#%profile | "):]+"mrt-batch-manifest", []Row{row}) == nil {
			again(t, list.String(), Options{}, row)
		}
	})
	var b strings.Builder
	if err := Write(&b, "p", []Row{{URL: "http://x/a|b c\n"}}); err != nil ||
		!strings.Contains(b.String(), "\nhttp://x/a%7cb%20c%0a | ") {
		t.Errorf("a URL is written as %s, %v", b.String(), err)
	}
}

// wide is a text in UTF-16, with or without a byte order mark.
func wide(text string, order binary.AppendByteOrder, mark bool) string {
	var b []byte
	if mark {
		b = order.AppendUint16(b, 0xfeff)
	}
	for _, u := range utf16.Encode([]rune(text)) {
		b = order.AppendUint16(b, u)
	}
	return string(b)
}

// TestUTF16: a manifest in UTF-16 is known as one, and is refused with the reason alone,
// with and without a byte order mark. Another text in UTF-16 is no manifest.
func TestUTF16(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		for _, mark := range []bool{true, false} {
			text := wide(start+good+eof, order, mark)
			_, problems, err := Read(strings.NewReader(text), Options{}, nil)
			want := []Problem{{Error, 1, 1, "the manifest is in UTF-16; save it as UTF-8"}}
			if !IsManifest([]byte(text)) || err != nil || !reflect.DeepEqual(problems, want) {
				t.Errorf("%v, mark %v: a manifest: %v, %v, %v", order, mark, IsManifest([]byte(text)), problems, err)
			}
			if IsManifest([]byte(wide("a text", order, mark))) {
				t.Errorf("%v, mark %v: a text is a manifest", order, mark)
			}
		}
	}
}
