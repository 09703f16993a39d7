package git

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

// TestSource: what every source does, in each of the three places.
func TestSource(t *testing.T) {
	places := map[string]func(t *testing.T, folder string) archive.Source{
		"HTTP":   func(t *testing.T, folder string) archive.Source { s, _ := overHTTPOf(t, folder); return s },
		"Bucket": func(t *testing.T, folder string) archive.Source { s, _ := inBucketOf(t, folder); return s },
		"Disk":   func(t *testing.T, folder string) archive.Source { return open(t, deps(t), "file://"+folder) },
	}
	for name, place := range places {
		t.Run(name, func(t *testing.T) {
			archivetest.Run(t, archivetest.Kind{Links: true, Tokens: true,
				Make: func(t *testing.T, history []archivetest.Revision) archive.Source {
					return place(t, imported(t, history))
				}})
		})
	}
}

// numbered is a history of n revisions.
func numbered(n int) (all []archivetest.Revision) {
	for i := range n {
		all = append(all, archivetest.Revision{Author: "Ada", Message: fmt.Sprint(i + 1),
			Files: map[string]archivetest.File{"n": archivetest.Text(fmt.Sprint(i + 1))}})
	}
	return all
}

func head(t *testing.T, s *Source, want int64) {
	t.Helper()
	if n, err := s.Head(t.Context()); err != nil || n != want {
		t.Fatalf("the head is %d, %v; want %d", n, err, want)
	}
}

func message(t *testing.T, s *Source, n int64) string {
	t.Helper()
	r, err := s.Revision(t.Context(), n)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(r.Message)
}

// TestThousand: a long history is fetched once; later only what is new, and only when it is asked for.
func TestThousand(t *testing.T) {
	folder := imported(t, numbered(1000))
	s, srv := overHTTPOf(t, folder)
	head(t, s, 1000)
	other := open(t, s.deps, s.location.URL) // as another invocation
	for _, n := range []int64{1, 2, 500, 1000} {
		if got := message(t, other, n); got != fmt.Sprint(n) {
			t.Errorf("revision %d is %q", n, got)
		}
	}
	head(t, other, 1000)
	if srv.packs != 1 {
		t.Errorf("%d packs were requested; want 1", srv.packs)
	}
	more := strings.Replace(stream("main", numbered(3)), "deleteall", "from refs/heads/main^0\ndeleteall", 1)
	run(t, folder, more, "fast-import", "--quiet")
	if got := message(t, s, 1002); got != "2" || srv.packs != 2 {
		t.Errorf("revision 1002 is %q, after %d packs; want 2", got, srv.packs)
	}
	if before := size(s.folder.repository); before > 400_000 {
		t.Errorf("the cache has %d bytes", before)
	}
}

// TestMerges: the revisions are the first parents; numbers are as git counts them.
func TestMerges(t *testing.T) {
	work := t.TempDir()
	git := func(args ...string) string { return run(t, work, "", args...) }
	git("init", "-q", "-b", "main")
	commit := func(text string) { git("commit", "-q", "--allow-empty", "-m", text) }
	commit("1")
	git("checkout", "-q", "-b", "side")
	commit("side 1")
	commit("side 2")
	git("checkout", "-q", "main")
	commit("2")
	git("merge", "-q", "--no-ff", "side", "-m", "3: merge")
	commit("4")
	s := open(t, deps(t), "file://"+work) // it has a folder .git
	head(t, s, 4)
	if want := git("rev-list", "--count", "--first-parent", "main"); want != "4" {
		t.Errorf("git counts %s", want)
	}
	for n, want := range []string{1: "1", 2: "2", 3: "3: merge", 4: "4"} {
		if n > 0 && message(t, s, int64(n)) != want {
			t.Errorf("revision %d is %q; want %q", n, message(t, s, int64(n)), want)
		}
	}
}

// TestRewritten: after a forced push the same numbers have other transactions, also when the branch is shorter.
func TestRewritten(t *testing.T) {
	folder := imported(t, numbered(20))
	served, _ := overHTTPOf(t, folder)
	inBucket, b := inBucketOf(t, folder)
	sources := map[string]*Source{"HTTP": served, "Bucket": inBucket, "Disk": open(t, deps(t), "file://"+folder)}
	transaction := func(s *Source, n int64) string {
		r, err := s.Revision(t.Context(), n)
		if err != nil {
			t.Fatal(err)
		}
		return r.Transaction
	}
	before := map[string]string{}
	for name, s := range sources {
		head(t, s, 20)
		before[name] = transaction(s, 12)
	}
	changed := numbered(15)
	changed[11].Message = "12, changed"
	run(t, folder, stream("main", changed), "fast-import", "--quiet", "--force")
	run(t, folder, "", "gc", "-q", "--prune=now")
	upload(t, b, folder)
	for name, s := range sources {
		head(t, s, 15)
		if got := message(t, s, 12); got != "12, changed" || transaction(s, 12) == before[name] {
			t.Errorf("%s: revision 12 is %q", name, got)
		}
		if got := message(t, s, 11); got != "11" {
			t.Errorf("%s: revision 11 is %q", name, got)
		}
	}
	run(t, folder, "", "update-ref", "refs/heads/main", "main~5")
	upload(t, b, folder)
	for _, s := range sources {
		head(t, s, 10)
	}
}

// TestNames: the name of a repository may need escapes in its URL.
func TestNames(t *testing.T) {
	folder := imported(t, numbered(3))
	named := filepath.Join(filepath.Dir(folder), "maps & ä + 1.git")
	if err := os.Rename(folder, named); err != nil {
		t.Fatal(err)
	}
	escaped := "/" + url.PathEscape(filepath.Base(named))
	head(t, open(t, deps(t), "file://"+filepath.Dir(named)+escaped), 3)
	s := open(t, deps(t), serve(t, filepath.Dir(named), "", "").URL+escaped)
	head(t, s, 3)
	archivetest.CheckCheckout(t, s, 2, numbered(3)[1].Files)
}

// TestSubmodules: they are left out, and it is said.
func TestSubmodules(t *testing.T) {
	folder := bare(t)
	run(t, folder, "commit refs/heads/main\ncommitter A <a@b> 1700000000 +0000\ndata 1\nx\n"+
		"M 160000 0123456789012345678901234567890123456789 lib/sub\nM 100644 inline a\ndata 1\na\n",
		"fast-import", "--quiet")
	d := deps(t)
	var notes []string
	d.Note = func(text string) { notes = append(notes, text) }
	s := open(t, d, "file://"+folder)
	archivetest.CheckCheckout(t, s, 1, map[string]archivetest.File{"a": archivetest.Text("a")})
	if len(notes) != 1 || !strings.Contains(notes[0], "the submodule lib/sub is left out") {
		t.Errorf("the notes are %q", notes)
	}
}

// TestHostileTrees: paths that Git does not allow are refused with the path, whatever a repository has.
func TestHostileTrees(t *testing.T) {
	for _, name := range []string{"..", ".git", ".GIT", ".", "a\x00b"} {
		folder := bare(t)
		blob := run(t, folder, "evil", "hash-object", "-w", "--stdin")
		raw := make([]byte, 20)
		for i := range raw {
			fmt.Sscanf(blob[2*i:2*i+2], "%02x", &raw[i])
		}
		inner := writeObject(t, folder, "tree", "100644 "+strings.ReplaceAll(name, "\x00", "")+"\x00"+string(raw))
		tree := writeObject(t, folder, "tree", "40000 d\x00"+string(hexBytes(inner)))
		if name == "a\x00b" { // two entries with one name: a link, and a folder with a file
			link := run(t, folder, "/tmp", "hash-object", "-w", "--stdin")
			tree = writeObject(t, folder, "tree", "120000 d\x00"+string(hexBytes(link))+
				"40000 d\x00"+string(hexBytes(inner)))
		}
		commit := run(t, folder, "", "commit-tree", tree, "-m", "x")
		run(t, folder, "", "update-ref", "refs/heads/main", commit)
		s := open(t, deps(t), "file://"+folder)
		err := s.Checkout(t.Context(), 1, t.TempDir())
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), `"d`) {
			t.Errorf("%q: %v", name, err)
		}
	}
}

func hexBytes(hash string) []byte {
	var raw []byte
	for i := 0; i < len(hash); i += 2 {
		var b byte
		fmt.Sscanf(hash[i:i+2], "%02x", &b)
		raw = append(raw, b)
	}
	return raw
}

// writeObject writes an object that git would refuse to make.
func writeObject(t *testing.T, folder, kind, content string) string {
	t.Helper()
	return run(t, folder, content, "hash-object", "-w", "--literally", "-t", kind, "--stdin")
}

// TestBomb: a small repository with very many paths is refused, and soon.
func TestBomb(t *testing.T) {
	folder := bare(t)
	at := run(t, folder, "x", "hash-object", "-w", "--stdin")
	kind := "100644 "
	for range 12 {
		var b strings.Builder
		for i := range 10 {
			fmt.Fprintf(&b, "%sf%d\x00%s", kind, i, hexBytes(at))
		}
		at, kind = writeObject(t, folder, "tree", b.String()), "40000 "
	}
	root := writeObject(t, folder, "tree", "40000 _workflows\x00"+string(hexBytes(at)))
	commit := run(t, folder, "", "commit-tree", root, "-m", "x")
	run(t, folder, "", "update-ref", "refs/heads/main", commit)
	d := deps(t)
	d.Limits = archive.Limits{Files: 2_000}
	s := open(t, d, "file://"+folder)
	_, workflows := s.Workflows(t.Context(), 1)
	_, changed := s.Changed(t.Context(), 0, 1)
	for what, err := range map[string]error{"Workflows": workflows, "Changed": changed,
		"Checkout": s.Checkout(t.Context(), 1, t.TempDir())} {
		if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "more than 2000 files") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestAnswers: what a repository lacks is said, with the true cause.
func TestAnswers(t *testing.T) {
	folder := imported(t, numbered(2))
	srv := serve(t, filepath.Dir(folder), "ada", "open sesame")
	plain := serve(t, filepath.Dir(folder), "", "")
	none := bare(t)
	noneServed := serve(t, filepath.Dir(none), "", "")
	sha256 := filepath.Join(t.TempDir(), "sha256.git")
	run(t, ".", "", "init", "-q", "--bare", "--object-format=sha256", sha256)
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasPrefix(r.URL.Path, "/busy"):
			http.Error(w, "busy", http.StatusServiceUnavailable)
		case strings.HasPrefix(r.URL.Path, "/away"):
			http.Redirect(w, r, "http://169.254.169.254"+r.URL.Path, http.StatusFound)
		default:
			fmt.Fprint(w, "<html>not git</html>")
		}
	}))
	t.Cleanup(page.Close)
	for _, c := range []struct {
		url, branch, secret string
		kind                fault.Kind
		want                string
	}{
		{srv.URL + "/maps.git", "main", "password", "", ""},
		{srv.URL + "/maps.git", "main", "", fault.Denied, "asks for a user and a password; the archive names none"},
		{srv.URL + "/maps.git", "main", "wrong", fault.Denied, "refuses the user and password of the secret wrong"},
		{srv.URL + "/maps.git", "main", "form", fault.Invalid, "the secret form does not have the form user:password"},
		{srv.URL + "/maps.git", "main", "none", fault.Unavailable, "the secret none could not be read"},
		{plain.URL + "/maps.git", "other", "", fault.Invalid, `has no branch "other"`},
		{plain.URL + "/not.git", "main", "", fault.Invalid, "404 Not Found: there is no Git repository"},
		{page.URL + "/a%20b", "main", "", fault.Invalid, "/a%20b does not answer as a Git repository"},
		{page.URL + "/busy", "main", "", fault.Unavailable, "answered 503"},
		{page.URL + "/away", "main", "", fault.Invalid, "169.254.169.254, which is not a public address"},
		{"http://127.0.0.1:1/x.git", "main", "", fault.Unavailable, "connection refused"},
		{"http://10.0.0.1/x.git", "main", "", fault.Invalid, "10.0.0.1, which is not a public address"},
		{"file://" + folder, "other", "", fault.Invalid, `has no branch "other"`},
		{"file://" + t.TempDir(), "main", "", fault.Invalid, "is not a Git repository: it has no file HEAD"},
		{"file://" + sha256, "main", "", fault.Invalid, "cannot be read"},
		{"file://" + none, "main", "", "", ""},
		{noneServed.URL + "/maps.git", "main", "", "", ""},
	} {
		d := deps(t)
		d.Secret = func(_ context.Context, name string) (string, error) {
			if name == "none" {
				return "", fmt.Errorf("no such secret")
			}
			return map[string]string{"password": "ada:open sesame", "wrong": "ada:x", "form": "ada"}[name], nil
		}
		s, err := Open(archive.Location{Kind: archive.Git, URL: c.url, Branch: c.branch, Secret: c.secret}, d)
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Head(t.Context())
		if fault.Of(err) != c.kind || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s %s %s: %v; want %s %s", c.url, c.branch, c.secret, err, c.kind, c.want)
		}
		if err != nil && strings.Contains(err.Error(), "sesame") {
			t.Errorf("the password is in %v", err)
		}
	}
}

// TestEmpty: a repository without commits has no revision, until it has one.
func TestEmpty(t *testing.T) {
	folder := bare(t)
	served, _ := overHTTPOf(t, folder)
	inBucket, b := inBucketOf(t, folder)
	sources := []*Source{served, inBucket, open(t, deps(t), "file://"+folder)}
	for _, s := range sources {
		head(t, s, 0)
		if _, err := s.Revision(t.Context(), 1); !fault.Is(err, fault.NotFound) {
			t.Errorf("%s: %v", s.location, err)
		}
	}
	run(t, folder, stream("main", numbered(1)), "fast-import", "--quiet")
	upload(t, b, folder)
	for _, s := range sources {
		head(t, s, 1)
	}
}

// TestTime: a server that does not answer costs no more than the time that there is.
func TestTime(t *testing.T) {
	waiting := make(chan bool)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-waiting:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(srv.Close)
	t.Cleanup(func() { close(waiting) })
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	_, err := open(t, deps(t), srv.URL+"/x.git").Head(ctx)
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "the time was up") {
		t.Errorf("after the time: %v", err)
	}
}

// TestPacks: after very many fetches the repository is fetched anew.
func TestPacks(t *testing.T) {
	folder := imported(t, numbered(1))
	s, _ := overHTTPOf(t, folder)
	head(t, s, 1)
	for i := range mostPacks + 5 {
		more := strings.Replace(stream("main", numbered(1)), "deleteall", "from refs/heads/main^0\ndeleteall", 1)
		run(t, folder, more, "fast-import", "--quiet")
		head(t, s, int64(i+2))
	}
	packs, _ := filepath.Glob(s.folder.repository + "/objects/pack/*.pack")
	if len(packs) > mostPacks || len(packs) == 0 {
		t.Errorf("there are %d packs", len(packs))
	}
}
