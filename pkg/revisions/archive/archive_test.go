package archive

import (
	"archive/tar"
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/workflow"
)

// TestCheck: each location that cannot be read is refused at the door, with the field and the reason.
func TestCheck(t *testing.T) {
	git := func(url, branch, secret string) Location {
		return Location{Kind: Git, URL: url, Branch: branch, Secret: secret}
	}
	svn := func(url string) Location { return Location{Kind: Subversion, URL: url} }
	for _, c := range []struct {
		l    Location
		want string // "": it is good; of one that is good locally only, it begins with an asterisk
	}{
		{git("https://example.org/maps.git", "main", ""), ""},
		{git("https://example.org/maps.git", "feature/ä-1", "archives/maps"), ""},
		{git("http://example.org:8080/maps.git", "main", ""), ""},
		{git("s3://bucket/some/maps.git", "main", ""), ""},
		{svn("https://example.org/svn/maps/trunk"), ""},
		{Location{Kind: Object, ARK: "ark:/99999/fk4tq65d6k"}, ""},

		{git("file:///srv/maps.git", "main", ""), "*url: expected a URL that begins with https:// or http:// or s3://"},
		{git("http://example.org/maps.git", "main", "x"), "*secret: the URL begins with http://"},
		{git("file://host/maps.git", "main", ""), "url: "},
		{git("https://example.org/maps.git", "", ""), "branch: it is missing"},
		{git("https://example.org/maps.git", "refs/heads/main", ""),
			"branch: found \"refs/heads/main\"; expected its name without refs/heads/"},
		{git("https://ada:pw@example.org/maps.git", "main", ""), "url: it has credentials"},
		{git("https://example.org/maps.git?token=x", "main", ""), "url: it has a query"},
		{git("https://example.org/maps.git#x", "main", ""), "url: it has a query or a fragment"},
		{git("https://example.org/a%25.git", "main", ""), "url: its path has one of the characters %, ? and #"},
		{git("https://example.org/a%3f.git", "main", ""), "url: its path has one of the characters %, ? and #"},
		{git("https://example.org/a%20b.git", "main", ""), ""},
		{git("https:///maps.git", "main", ""), "url: it has no host"},
		{git("https://:80/maps.git", "main", ""), "url: it has no host"},
		{git("https:maps.git", "main", ""), "url: expected https:// before the host"},
		{git("ssh://example.org/maps.git", "main", ""), "url: expected a URL that begins with"},
		{git("git@example.org:maps.git", "main", ""), "url: "},
		{git("/srv/maps.git", "main", ""), "url: expected a URL that begins with"},
		{git("", "main", ""), "url: expected a URL that begins with"},
		{git("https://example.org/\x00", "main", ""), "url: it cannot be read"},
		{git("https://example.org/"+strings.Repeat("x", MaxURL), "main", ""),
			"url: found 1020 bytes; expected at most 1000"},
		{git("s3://B/x", "main", ""), "url: found the bucket \"B\"; expected s3://bucket/prefix"},
		{git("s3://bucket/x", "main", "secret"), "secret: an archive at s3://"},
		{git("https://example.org/maps.git", "main", "a b"), "secret: expected the name of a secret"},
		{Location{Kind: Git, URL: "https://e.org/x", Branch: "main", ARK: "ark:/99999/fk4tq65d6k"},
			"ark: an archive of the kind git"},
		{svn("file:///srv/svn"), "url: expected a URL that begins with https:// or http://"},
		{svn("svn://example.org/x"), "url: expected a URL"},
		{Location{Kind: Subversion, URL: "https://e.org/x", Branch: "main"},
			"branch: an archive of the kind svn has none"},
		{Location{Kind: Object, ARK: "ark:99999/fk4-tq65d6k"},
			"ark: found \"ark:99999/fk4-tq65d6k\"; expected it in the form ark:/99999/fk4tq65d6k"},
		{Location{Kind: Object, ARK: "fk4"}, "ark: "},
		{Location{Kind: Object}, "ark: "},
		{Location{Kind: Object, ARK: "ark:/99999/fk4tq65d6k", URL: "https://x.org"},
			"url: an archive of the kind object has none"},
		{Location{Kind: "cvs"}, `kind: found "cvs"; expected object, git or svn`},
		{Location{}, `kind: found ""; expected object`},
	} {
		for _, local := range []bool{false, true} {
			err := c.l.Check(local)
			want, onlyLocal := strings.CutPrefix(c.want, "*")
			if want == "" || onlyLocal && local {
				if err != nil {
					t.Errorf("%+v: %v", c.l, err)
				}
			} else if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), want) {
				t.Errorf("%+v, local %v: %v; want %s", c.l, local, err, want)
			}
		}
	}
}

// TestPlaces: a URL that no connection can be made to is refused.
func TestPlaces(t *testing.T) {
	for url, want := range map[string]string{
		"https://example.org:99999/maps":   "url: found the port 99999; expected 1 to 65535",
		"https://example.org:0/maps":       "url: found the port 0; expected 1 to 65535",
		"https://example.org/a%0Ab":        "url: its path has a control character",
		"https://[2001:db8::1]:8443/maps/": "",
	} {
		err := Location{Kind: Subversion, URL: url}.Check(false)
		if fmt.Sprint(err) != cmp.Or(want, "<nil>") {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestTransactions: what cannot be said of any revision is refused.
func TestTransactions(t *testing.T) {
	hash := strings.Repeat("0123456789", 4)
	for _, c := range []struct {
		kind, text string
		ok         bool
	}{
		{Git, "", true}, {Git, hash, true}, {Git, hash[:7], false}, {Git, strings.Repeat("A", 40), false},
		{Git, hash + "0", false}, {Git, "t1", false},
		{Subversion, "0d4f-1@2026-11-23T10:00:00.000000Z", true}, {Subversion, "0d4f-1@", true},
		{Subversion, "@", false},
		{Subversion, "0d4f-1", false}, {Subversion, "12", false}, {Object, "x", true},
	} {
		err := Location{Kind: c.kind}.CheckTransaction(c.text)
		if (err == nil) != c.ok || err != nil && !strings.HasPrefix(err.Error(), "transaction: found ") {
			t.Errorf("%s %q: %v", c.kind, c.text, err)
		}
	}
}

// TestBranches: what Git refuses as the name of a branch is refused at the door.
func TestBranches(t *testing.T) {
	for _, branch := range []string{"a b", "-x", "/x", "x/", "x//y", ".x", "x/.y", "x..y", "x.", "x.lock", "x.lock/y",
		"x@{y", "@", "a~1", "a^", "a:b", "a?", "a*", "a[", `a\b`, "a\x7f", "a\nb", "\xff", strings.Repeat("x", 201)} {
		err := Location{Kind: Git, URL: "https://example.org/maps.git", Branch: branch}.Check(true)
		if !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(), "branch: ") {
			t.Errorf("the branch %q: %v", branch, err)
		}
	}
}

func TestToken(t *testing.T) {
	for message, want := range map[string]string{
		"Subject\n\nArchivist-Run: abc":                                 "abc",
		"Subject\r\n\r\nText\r\n\r\narchivist-run:abc\r\n":              "abc",
		"Subject\n\nSigned-off-by: Ada\nArchivist-Run: 1\nOther: x\n\n": "1",
		"Subject\n\nArchivist-Run: 1\nArchivist-Run: 2":                 "2",
		"Archivist-Run: subject":                                        "",
		"Subject\nArchivist-Run: no paragraph":                          "",
		"Subject\n\nArchivist-Run: x\n\nThe end":                        "",
		"":                                                              "",
		"Subject\n\nArchivist-Run: " + strings.Repeat("x", maxToken+1):  "",
	} {
		if got := Token(message); got != want {
			t.Errorf("%q has the token %q; want %q", message, got, want)
		}
	}
}

func TestCut(t *testing.T) {
	if got := Cut("aä\xff", 100); got != "aä\uFFFD" {
		t.Errorf("got %q", got)
	}
	if got := Cut("aäö", 4); got != "aä" {
		t.Errorf("got %q", got)
	}
}

// fixed is a source of one revision with these files.
type fixed map[string]string

func (f fixed) Head(context.Context) (int64, error) { return 1, nil }
func (f fixed) Revision(_ context.Context, n int64) (Revision, error) {
	return Revision{Number: n, Time: time.Unix(1_700_000_000, 5)}, nil
}
func (f fixed) Workflows(context.Context, int64) ([]workflow.File, error) { return nil, nil }
func (f fixed) Changed(context.Context, int64, int64) ([]string, error)   { return nil, nil }
func (f fixed) Checkout(_ context.Context, _ int64, folder string) error {
	w, err := NewWriter(folder, Limits{})
	if err != nil {
		return err
	}
	for path, content := range f { // in any order
		target, link := strings.CutPrefix(content, "-> ")
		switch {
		case link:
			err = w.Link(path, target)
		default:
			err = w.File(path, strings.HasSuffix(path, ".sh"), strings.NewReader(content))
		}
		if err != nil {
			return err
		}
	}
	return w.Close()
}

// TestPack: the same revision has the same bytes, and comes out of its pack as it went in.
func TestPack(t *testing.T) {
	files := fixed{"a b/ä.txt": "ä\r\n", "run.sh": "#!/bin/sh", "d/link": "-> ../run.sh", "empty": "",
		strings.Repeat("long/", 60) + "x": "x",
		"big":                             strings.Repeat("0123456789", 100_000)}
	var first bytes.Buffer
	for i := range 5 {
		var b bytes.Buffer
		if err := Pack(t.Context(), files, 1, 2_000_000, &b); err != nil {
			t.Fatal(err)
		}
		if i == 0 {
			first = b
		} else if !bytes.Equal(b.Bytes(), first.Bytes()) {
			t.Fatal("a second pack has other bytes")
		}
	}
	folder := t.TempDir()
	if err := Unpack(bytes.NewReader(first.Bytes()), folder, 2_000_000); err != nil {
		t.Fatal(err)
	}
	for path, want := range files {
		data, err := os.ReadFile(filepath.Join(folder, path))
		if target, link := strings.CutPrefix(want, "-> "); link {
			want = ""
			var got string
			got, err = os.Readlink(filepath.Join(folder, path))
			data = []byte(strings.TrimPrefix(got, target))
		}
		if err != nil || string(data) != want {
			t.Errorf("%q has %.50q, %v", path, data, err)
		}
	}
	info, err := os.Stat(filepath.Join(folder, "run.sh"))
	if err != nil || info.Mode().Perm() != 0o755 {
		t.Errorf("%v, %v", info, err)
	}
	err = Pack(t.Context(), files, 1, 999_999, io.Discard)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "more than 999999 bytes") {
		t.Errorf("too large to pack: %v", err)
	}
	err = Unpack(bytes.NewReader(first.Bytes()), t.TempDir(), 999_999)
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "more than 999999 bytes") {
		t.Errorf("too large to unpack: %v", err)
	}
}

// packed is a tar.gz with entries, which need not be such as Pack writes.
func packed(t *testing.T, entries ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	zipped := gzip.NewWriter(&b)
	w := tar.NewWriter(zipped)
	for _, h := range entries {
		h.Size = 0
		if h.Typeflag == tar.TypeReg {
			h.Size = 1
		}
		if err := w.WriteHeader(&h); err != nil {
			t.Fatal(err)
		}
		if h.Size > 0 {
			fmt.Fprint(w, "x")
		}
	}
	_ = w.Close()
	_ = zipped.Close()
	return b.Bytes()
}

// TestUnpackHostile: no entry of a pack is written outside of the folder.
func TestUnpackHostile(t *testing.T) {
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name} }
	link := func(name, target string) tar.Header {
		return tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: target}
	}
	good := packed(t, file("a"))
	for name, pack := range map[string][]byte{
		"absolute":      packed(t, file("/tmp/x")),
		"up":            packed(t, file("../x")),
		"up inside":     packed(t, file("a/../../x")),
		"not clean":     packed(t, file("a/../x")),
		"link up":       packed(t, link("l", "../x")),
		"link absolute": packed(t, link("l", "/etc")),
		"through link":  packed(t, link("l", "/tmp"), file("l/x")),
		"two links":     packed(t, link("a", "."), link("b", "a/..")),
		"two files":     packed(t, file("a"), file("a")),
		"file, folder":  packed(t, file("a"), file("a/b")),
		"hard link":     packed(t, file("a"), tar.Header{Typeflag: tar.TypeLink, Name: "b", Linkname: "a"}),
		"device":        packed(t, tar.Header{Typeflag: tar.TypeChar, Name: "b"}),
		"long name":     packed(t, file(strings.Repeat("x", 256))),
		"cut":           good[:len(good)-10],
		"no gzip":       []byte("x"),
		"nothing":       nil,
	} {
		parent := t.TempDir()
		folder := filepath.Join(parent, "in")
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
		err := Unpack(bytes.NewReader(pack), folder, 100)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: %v", name, err)
		}
		if entries, _ := os.ReadDir(parent); len(entries) != 1 {
			t.Errorf("%s: wrote %v", name, entries)
		}
	}
	if err := Unpack(bytes.NewReader(good), t.TempDir(), 100); err != nil {
		t.Error(err)
	}
}

// TestRatio: a small pack of very much is refused, when it is packed and when it is unpacked.
func TestRatio(t *testing.T) {
	if err := checkRatio(atLeast-1, 1); err != nil {
		t.Errorf("little content: %v", err)
	}
	if err := checkRatio(atLeast, atLeast/maxRatio+1); err != nil {
		t.Errorf("a usual ratio: %v", err)
	}
	if err := checkRatio(atLeast*2, atLeast/maxRatio); !fault.Is(err, fault.Invalid) {
		t.Errorf("a high ratio: %v", err)
	}
}
