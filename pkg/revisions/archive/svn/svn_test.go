package svn

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

// folder is where the archives of the conformance tests are in their repositories.
const folder = "trunk/maps & ä"

// TestSource: what every source does.
func TestSource(t *testing.T) {
	archivetest.Run(t, archivetest.Kind{Links: true, Tokens: true,
		Make: func(t *testing.T, history []archivetest.Revision) archive.Source {
			return open(t, newTwin(t, below(folder, history)).URL+"/svn"+escape(folder), "")
		}})
}

// TestProtocol: see protocol.
func TestProtocol(t *testing.T) {
	protocol(t, func(history []archivetest.Revision) string { return newTwin(t, history).URL + "/svn" })
}

// protocol: what is peculiar to Subversion. It runs with the twin and with a real server. load makes a repository.
func protocol(t *testing.T, load func([]archivetest.Revision) string) {
	at := func(names ...string) map[string]archivetest.File {
		files := map[string]archivetest.File{}
		for _, name := range names {
			files[name] = archivetest.Text(name)
		}
		return files
	}
	url := load([]archivetest.Revision{
		{Files: at("branches/b"), Author: "Ada", Message: "before the trunk"},
		{Files: at("branches/b", "trunk/a"), Author: "Ada", Message: "token run-2"},
		{Files: at("branches/b", "branches/c", "trunk/a"), Author: "Ada", Message: "elsewhere\x01"},
		{Files: at("branches/b"), Author: "Ada", Message: "the trunk is gone"},
	})
	s := open(t, url+"/trunk", "")
	if n, err := s.Head(t.Context()); err != nil || n != 4 {
		t.Fatalf("the head is %d, %v: the numbers are those of the repository", n, err)
	}
	for n, want := range []map[string]archivetest.File{nil, {}, at("a"), at("a"), {}} {
		for path := range want {
			want[path] = archivetest.Text("trunk/" + path)
		}
		if n > 0 {
			archivetest.CheckCheckout(t, s, int64(n), want)
		}
	}
	for _, c := range []struct {
		base, n int64
		want    []string
	}{{1, 2, []string{"a"}}, {2, 3, nil}, {3, 4, []string{"a"}}, {0, 1, nil}, {1, 4, nil}} {
		if got, err := s.Changed(t.Context(), c.base, c.n); err != nil || !slices.Equal(got, c.want) {
			t.Errorf("between %d and %d: %v, %v", c.base, c.n, got, err)
		}
	}
	for n, token := range []string{"", "", "run-2", "", ""} {
		if n == 0 {
			continue
		}
		r, err := s.Revision(t.Context(), int64(n))
		if err != nil || r.Token != token || !r.Time.Equal(dateOf(n)) || r.Author != "Ada" ||
			r.Transaction != uuid+"@"+dateOf(n).Format("2006-01-02T15:04:05.000000Z") {
			t.Errorf("revision %d is %+v, %v", n, r, err)
		}
		if n == 3 && r.Message != "elsewhere\x01" {
			t.Errorf("a message that XML does not allow: %q", r.Message)
		}
	}
	whole := open(t, url, "") // the root of the repository
	archivetest.CheckCheckout(t, whole, 2, at("branches/b", "trunk/a"))
	empty := open(t, load(nil)+"/trunk", "")
	if n, err := empty.Head(t.Context()); err != nil || n != 0 {
		t.Errorf("the head of an empty repository is %d, %v", n, err)
	}
}

// TestOnlyWhatDiffers: to compare two revisions, folders without a difference are not listed.
func TestOnlyWhatDiffers(t *testing.T) {
	first := map[string]archivetest.File{"same/deep/x": archivetest.Text("1"), "other/deep/x": archivetest.Text("1")}
	second := map[string]archivetest.File{"same/deep/x": archivetest.Text("1"), "other/deep/x": archivetest.Text("2")}
	server := newTwin(t, []archivetest.Revision{{Files: first}, {Files: second}})
	got, err := open(t, server.URL+"/svn", "").Changed(t.Context(), 1, 2)
	if err != nil || !slices.Equal(got, []string{"other/deep/x"}) {
		t.Fatal(got, err)
	}
	slices.Sort(server.listed)
	want := []string{"1/", "1/other", "1/other/deep", "2/", "2/other", "2/other/deep"}
	if !slices.Equal(server.listed, want) {
		t.Errorf("listed %q; want %q", server.listed, want)
	}
}

// TestAnswers: what a server answers is said, with the true cause.
func TestAnswers(t *testing.T) {
	server := newTwin(t, []archivetest.Revision{{Files: map[string]archivetest.File{"a": archivetest.Text("a")}}})
	answer := func(status int, header, value, body string) func(http.ResponseWriter, *http.Request) bool {
		return func(w http.ResponseWriter, _ *http.Request) bool {
			if header != "" {
				w.Header().Set(header, value)
			}
			w.WriteHeader(status)
			fmt.Fprint(w, body)
			return true
		}
	}
	onlyFor := func(method string, f func(http.ResponseWriter, *http.Request) bool) func(http.ResponseWriter,
		*http.Request) bool {
		return func(w http.ResponseWriter, r *http.Request) bool { return r.Method == method && f(w, r) }
	}
	list := func(hrefs string) func(http.ResponseWriter, *http.Request) bool {
		return onlyFor("PROPFIND", answer(207, "", "", `<D:multistatus xmlns:D="DAV:"><D:response><D:href>`+hrefs+
			`</D:href></D:response></D:multistatus>`))
	}
	for _, c := range []struct {
		what, secret string
		before       func(http.ResponseWriter, *http.Request) bool
		kind         fault.Kind
		want         string
	}{
		{"the password", "open sesame", nil, "", ""},
		{"no password", "", nil, fault.Denied, "asks for a user and a password; the archive names none"},
		{"a wrong password", "wrong", nil, fault.Denied, "refuses the user and password of the secret wrong"},
		{"no repository", "open sesame", answer(404, "", "", ""), fault.Invalid, "there is no Subversion repository"},
		{"no Subversion", "open sesame", answer(200, "", "", "<html>"), fault.Invalid,
			"does not answer as a Subversion"},
		{"no WebDAV", "open sesame", answer(405, "", "", ""), fault.Invalid, "it refuses OPTIONS"},
		{"busy", "open sesame", answer(503, "", "", ""), fault.Unavailable, "answered 503"},
		{"moved", "open sesame", answer(301, "Location", "https://example.org/svn?x=1", ""), fault.Invalid,
			"redirects to https://example.org/svn?redacted; register that URL instead"},
		{"no XML", "open sesame", onlyFor("PROPFIND", answer(207, "", "", "<a><b></a>")), fault.Invalid,
			"does not answer as a Subversion repository"},
		{"no status 207", "open sesame", onlyFor("PROPFIND", answer(200, "", "", "")), fault.Invalid,
			"PROPFIND got 200"},
		{"a listing of elsewhere", "open sesame", list("/etc/passwd"), fault.Invalid,
			`lists "/etc/passwd" in the folder`},
		{"a listing of its parent", "open sesame", list("/svn/!svn/rvr/1/.."), fault.Invalid, `lists`},
		{"a file with a slash", "open sesame", list("/svn/!svn/rvr/1/a%2Fb"), fault.Invalid, `lists`},
		{"a folder that is no file", "open sesame", list("/svn/!svn/rvr/1/nothing"), fault.NotFound,
			"has no /svn/!svn/rvr/1/nothing"},
		{"other content", "open sesame", onlyFor(http.MethodGet, answer(200, "", "", "b")), fault.Invalid,
			"is damaged: a has the sha1"},
	} {
		server.user, server.password, server.before = "ada", "open sesame", c.before
		secret := c.secret
		s := open(t, server.URL+"/svn", "")
		s.location.Secret = secret
		err := s.Checkout(t.Context(), 1, t.TempDir())
		if fault.Of(err) != c.kind || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v; want %s %s", c.what, err, c.kind, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("the password is in %v", err)
		}
	}
	for url, want := range map[string]string{"http://10.0.0.1/svn": "10.0.0.1, which is not a public address",
		"http://127.0.0.1:1/svn": "connection refused"} {
		if _, err := open(t, url, "").Head(t.Context()); fault.Of(err) == "" || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// TestLimits: a revision that is too large for a checkout is refused.
func TestLimits(t *testing.T) {
	server := newTwin(t, []archivetest.Revision{{Files: map[string]archivetest.File{"a": archivetest.Text("aaaa"),
		"b/c": archivetest.Text("bbbb"), "b/d": archivetest.Text("bbbb")}}})
	for want, limits := range map[string]archive.Limits{
		"more than 3 files": {Files: 3}, "more than 9 bytes": {Bytes: 9}} {
		d := deps()
		d.Limits = limits
		s, err := Open(archive.Location{Kind: archive.Subversion, URL: server.URL + "/svn"}, d)
		if err != nil {
			t.Fatal(err)
		}
		err = s.Checkout(t.Context(), 1, t.TempDir())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v", limits, err)
		}
	}
}
