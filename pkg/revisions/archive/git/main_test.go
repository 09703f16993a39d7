package git

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/http/cgi"
	"net/http/httptest"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"archivist/pkg/kernel/bucket"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/archivetest"
)

// environment keeps the configuration of this machine out, and makes hashes reproducible.
var environment = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "LC_ALL=C",
	"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada",
	"GIT_COMMITTER_EMAIL=ada@example.org")

// run runs git in a folder with an input.
func run(t testing.TB, folder, input string, args ...string) string {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir, cmd.Env, cmd.Stdin = folder, environment, strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// bare makes an empty bare repository.
func bare(t testing.TB) string {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "maps.git")
	run(t, ".", "", "init", "-q", "--bare", "-b", "main", folder)
	return folder
}

// stream is a history in the form of git fast-import.
func stream(branch string, history []archivetest.Revision) string {
	var b bytes.Buffer
	data := func(text string) { fmt.Fprintf(&b, "data %d\n%s\n", len(text), text) }
	for i, r := range history {
		fmt.Fprintf(&b, "commit refs/heads/%s\nauthor %s <%s@example.org> %d +0100\n", branch, r.Author, r.Author,
			1_600_000_000+i)
		fmt.Fprintf(&b, "committer Host <host@example.org> %d +0000\n", 1_700_000_000+i)
		data(r.Message)
		fmt.Fprintln(&b, "deleteall")
		for _, path := range slices.Sorted(maps.Keys(r.Files)) {
			f := r.Files[path]
			mode, content := "100644", f.Content
			switch {
			case f.Link != "":
				mode, content = "120000", f.Link
			case f.Executable:
				mode = "100755"
			}
			fmt.Fprintf(&b, "M %s inline %q\n", mode, path)
			data(content)
		}
	}
	return b.String()
}

// imported is a bare repository with a history on the branch main.
func imported(t testing.TB, history []archivetest.Revision) string {
	t.Helper()
	folder := bare(t)
	run(t, folder, stream("main", history), "-c", "core.quotePath=false", "fast-import", "--quiet", "--force")
	return folder
}

// server serves the repositories below a folder by git http-backend, to a user with a password if there is one.
// It counts the packs that are requested.
type server struct {
	*httptest.Server
	packs int
}

func serve(t testing.TB, folder, user, password string) *server {
	t.Helper()
	at := run(t, ".", "", "--exec-path")
	backend := &cgi.Handler{Path: filepath.Join(at, "git-http-backend"),
		Env: slices.Concat(environment, []string{"GIT_PROJECT_ROOT=" + folder, "GIT_HTTP_EXPORT_ALL=1"})}
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		gotUser, gotPassword, _ := r.BasicAuth()
		if user != "" && (gotUser != user || gotPassword != password) {
			w.Header().Set("WWW-Authenticate", "Basic")
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/git-upload-pack") {
			s.packs++
		}
		backend.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// deps are for sources in a test: the secret "password" is that of serve.
func deps(t testing.TB) Deps {
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	client.Tries = 1
	return Deps{HTTP: client, Cache: filepath.Join(t.TempDir(), "cache"),
		Secret: func(context.Context, string) (string, error) { return "ada:open sesame", nil }}
}

func open(t testing.TB, d Deps, url string) *Source {
	t.Helper()
	l := archive.Location{Kind: archive.Git, URL: url, Branch: "main"}
	if err := l.Check(true); err != nil {
		t.Fatal(err)
	}
	s, err := Open(l, d)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// overHTTPOf is a source of the repository in a folder, read by HTTP.
func overHTTPOf(t testing.TB, folder string) (*Source, *server) {
	t.Helper()
	srv := serve(t, filepath.Dir(folder), "", "")
	return open(t, deps(t), srv.URL+"/"+filepath.Base(folder)), srv
}

// inBucketOf is a source of a copy of the repository in a bucket.
func inBucketOf(t testing.TB, folder string) (*Source, bucket.Bucket) {
	t.Helper()
	_, buckets := buckettest.Open(t, "repositories")
	upload(t, buckets[0], folder)
	d := deps(t)
	d.Bucket = func(string) bucket.Bucket { return buckets[0] }
	return open(t, d, "s3://repositories/some/maps.git"), buckets[0]
}

// upload copies a repository into a bucket.
func upload(t testing.TB, b bucket.Bucket, folder string) {
	t.Helper()
	err := os.CopyFS(filepath.Join(t.TempDir(), "copy"), os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := b.DeleteAll(t.Context(), "some/", func() bool { return true }); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(folder, path)
		return b.Put(t.Context(), "some/maps.git/"+name, data, bucket.Condition{})
	})
	if err != nil {
		t.Fatal(err)
	}
}
