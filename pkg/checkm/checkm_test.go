package checkm

import (
	"strings"
	"testing"
)

const start = "#%checkm_0.7\n#%profile | http://uc3.cdlib.org/registry/ingest/manifest/mrt-ingest-manifest\n#%prefix | nfo: | x\n#%fields | nfo:fileUrl | nfo:hashAlgorithm | nfo:hashValue | nfo:fileSize | nfo:fileLastModified | nfo:fileName | nie:mimeType\n"

const md5 = "d41d8cd98f00b204e9800998ecf8427e"

func TestRead(t *testing.T) {
	cases := []struct {
		name, text string
		want       string // of the first error, "" = accepted
	}{
		{"the smallest", start + "http://x/a | md5 | " + md5 + " | 0 | | a.txt |\n#%eof\n", ""},
		{"any case, CRLF, comments, blank lines", strings.ToUpper(start[:13]) + strings.ReplaceAll(start[13:], "\n", "\r\n") + "\r\n# c\r\nhttp://x/a|MD5|" + strings.ToUpper(md5) + "|0||a.txt|\r\n#%EOF\r\n", ""},
		{"missing trailing columns", start + "http://x/a.txt\n#%eof\n", ""},
		{"%20 and %7c decode in names", start + "http://x/a%20b | | | | | a%20b%7cc\n#%eof", ""},
		{"sha-256 with a hyphen", start + "http://x/a | SHA-256 | " + strings.Repeat("0", 64) + " | | | a\n#%eof", ""},
		{"no eof", start + "http://x/a.txt\n", "no #%eof"},
		{"no profile", "#%checkm_0.7\nhttp://x/a.txt\n#%eof", "no #%profile"},
		{"another profile", "#%checkm_0.7\n#%profile | http://x/other\nhttp://x/a.txt\n#%eof", "not known"},
		{"no file", start + "#%eof", "lists no file"},
		{"ftp", start + "ftp://x/a | | | | | a\n#%eof", "expected an http"},
		{"algorithm alone", start + "http://x/a | md5 | | | | a\n#%eof", "no digest"},
		{"digest alone", start + "http://x/a | | " + md5 + " | | | a\n#%eof", "no algorithm"},
		{"md2", start + "http://x/a | md2 | " + md5 + " | | | a\n#%eof", "found the algorithm"},
		{"short digest", start + "http://x/a | md5 | abc | | | a\n#%eof", "found a digest of 3"},
		{"size", start + "http://x/a | | | many | | a\n#%eof", "found the size"},
		{"name twice", start + "http://x/a | | | | | a\nhttp://x/b | | | | | a\n#%eof", "is that of line 5"},
		{"file and folder", start + "http://x/a | | | | | a\nhttp://x/b | | | | | a/b\n#%eof", "also the folder"},
		{"..", start + "http://x/a | | | | | ../a\n#%eof", "path segment"},
		{"extra column", start + "http://x/a | | | | | a | | more\n#%eof", "not declared"},
		{"CSV", "fileUrl,hash\nhttp://x/a,1\n", "looks like CSV"},
	}
	for _, c := range cases {
		m, problems, err := Read(strings.NewReader(c.text))
		if err != nil {
			t.Fatal(err)
		}
		bad := Rejected(problems)
		switch {
		case c.want == "" && len(bad) > 0:
			t.Errorf("%s: rejected: %v", c.name, bad)
		case c.want == "" && len(m.Rows) != 1:
			t.Errorf("%s: %d rows", c.name, len(m.Rows))
		case c.want != "" && (len(bad) == 0 || !strings.Contains(bad[0].String(), c.want)):
			t.Errorf("%s: got %v, want %q", c.name, bad, c.want)
		}
	}
}

func FuzzRoundTrip(f *testing.F) {
	f.Add("http://x/a", "dir/a b|c", int64(5))
	f.Fuzz(func(t *testing.T, u, name string, size int64) {
		if strings.TrimSpace(name) != name || strings.ContainsAny(name, "%") || BadName(name) != "" || size < 0 || strings.ContainsAny(u, "| \n\r\t") {
			return
		}
		var b strings.Builder
		in := Row{URL: "http://x/" + u, Algorithm: "md5", Digest: md5, Size: size, Name: name}
		if err := Write(&b, "http://x/mrt-ingest-manifest", []Row{in}); err != nil {
			t.Fatal(err)
		}
		m, problems, err := Read(strings.NewReader(b.String()))
		if err != nil || len(m.Rows) != 1 {
			return // a URL that is none
		}
		got := m.Rows[0]
		if got.Name != name || got.Size != size || got.Digest != md5 {
			t.Errorf("%+v became %+v (%v)", in, got, problems)
		}
	})
}
