package docs

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/archive/git"
)

// told is what a hook sends.
type told struct {
	Revision    int64
	Transaction string
	path, who   string
}

// listener is an API that hooks tell of revisions. It answers when it may.
func listener(t *testing.T, may chan bool) (url string, got chan told) {
	t.Helper()
	got = make(chan told, 100)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		<-may
		var one told
		body, _ := io.ReadAll(r.Body)
		if err := json.Unmarshal(body, &one); err != nil || r.Method != http.MethodPost {
			t.Errorf("%s of %q: %v", r.Method, body, err)
		}
		one.path, one.who = r.URL.Path, r.Header.Get("Authorization")
		got <- one
	}))
	t.Cleanup(srv.Close)
	return srv.URL, got
}

// hook installs a hook of the document, as a reader does.
func hook(t *testing.T, title, path, api string, replace ...string) {
	t.Helper()
	text := read(t, filepath.Join(root, "docs", "revisions.md"))
	m := regexp.MustCompile("(?s)\n" + title + "[^\n]*\n.*?```text\n(.*?)```").FindStringSubmatch(text)
	if m == nil {
		t.Fatalf("docs/revisions.md has no hook of %s", title)
	}
	script := m[1]
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(script, replace[i]) {
			t.Fatalf("the hook of %s has no %q", title, replace[i])
		}
		script = strings.Replace(script, replace[i], replace[i+1], 1)
	}
	replaced := strings.Replace(script, "API=https://API_ID.execute-api.REGION.amazonaws.com/prod TOKEN=arc_ID_SECRET",
		"API="+api+" TOKEN=the-token", 1)
	if replaced == script {
		t.Fatalf("the hook of %s does not set API and TOKEN", title)
	}
	if err := os.WriteFile(path, []byte(replaced), 0o755); err != nil {
		t.Fatal(err)
	}
}

// in runs a program in a folder.
func in(t *testing.T, folder, program string, args ...string) string {
	t.Helper()
	cmd := exec.Command(program, args...)
	cmd.Dir = folder
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL=/dev/null", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada",
		"GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s", program, args, err, out)
	}
	return strings.TrimSpace(string(out))
}

// await takes so many notices by their revision.
func await(t *testing.T, got chan told, n int) map[int64]told {
	t.Helper()
	all := map[int64]told{}
	for range n {
		select {
		case one := <-got:
			if one.path != "/v1/archives/maps/revisions" || one.who != "Bearer the-token" {
				t.Errorf("told %+v", one)
			}
			all[one.Revision] = one
		case <-time.After(3 * time.Minute):
			t.Fatalf("the hook told of %v; %d notices are missing", all, n-len(all))
		}
	}
	return all
}

// TestGitHook: the hook of Git tells of each revision of the branch, with the number and the transaction that the
// archive has. A push does not wait for it, and does not fail with it.
func TestGitHook(t *testing.T) {
	may := make(chan bool)
	api, got := listener(t, may)
	folder := t.TempDir()
	bare, work := filepath.Join(folder, "maps.git"), filepath.Join(folder, "work")
	in(t, folder, "git", "init", "-q", "--bare", "-b", "main", bare)
	in(t, bare, "git", "config", "receive.denyDeleteCurrent", "ignore")
	in(t, folder, "git", "init", "-q", "-b", "main", work)
	hook(t, "Git", filepath.Join(bare, "hooks", "post-receive"), api)
	commit := func(text string) { in(t, work, "git", "commit", "-q", "--allow-empty", "-m", text) }
	commit("1")
	commit("2")
	in(t, work, "git", "push", "-q", bare, "main") // it ends although nobody answers yet
	close(may)
	first := await(t, got, 2)
	commit("3")
	in(t, work, "git", "checkout", "-q", "-b", "side", "HEAD~1")
	commit("side 1")
	commit("side 2")
	in(t, work, "git", "push", "-q", bare, "side") // another branch
	in(t, work, "git", "checkout", "-q", "main")
	in(t, work, "git", "merge", "-q", "--no-ff", "side", "-m", "4")
	in(t, work, "git", "push", "-q", bare, "main")
	second := await(t, got, 2)
	source, err := git.Open(archive.Location{Kind: archive.Git, URL: "file://" + bare, Branch: "main"},
		git.Deps{Cache: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	for n := int64(1); n <= 4; n++ {
		one, there := first[n]
		if n > 2 {
			one, there = second[n]
		}
		r, err := source.Revision(t.Context(), n)
		if err != nil || !there || one.Transaction != r.Transaction || strings.TrimSpace(r.Message) != fmt.Sprint(n) {
			t.Errorf("of revision %d the hook told %+v; it is %+v, %v", n, one, r, err)
		}
	}
	in(t, work, "git", "push", "-q", bare, ":main") // the branch is removed: nothing to tell
	hook(t, "Git", filepath.Join(bare, "hooks", "post-receive"), "http://127.0.0.1:1")
	in(t, work, "git", "push", "-q", bare, "main") // nobody listens
	select {
	case one := <-got:
		t.Errorf("told of %+v in addition", one)
	default:
	}
}

// TestSubversionHook: the hook of Subversion tells of the revision, with the transaction that the archive has.
// svnlook stands for Subversion's own: no registry of packages has it.
func TestSubversionHook(t *testing.T) {
	may := make(chan bool)
	api, got := listener(t, may)
	folder := t.TempDir()
	svnlook := `#!/bin/sh
case "$*" in
  "uuid /srv/my maps") echo f24b0ebb-8882-46f9-b9cf-868ae5b49db0 ;;
  "propget --revprop -r 12 /srv/my maps svn:date") printf 2026-11-23T06:05:16.932047Z ;;
  *) exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(folder, "svnlook"), []byte(svnlook), 0o755); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "post-commit")
	hook(t, "Subversion", path, api, "PATH=", "PATH="+folder+":")
	in(t, folder, path, "/srv/my maps", "12", "11-d") // it ends although nobody answers yet
	close(may)
	want := "f24b0ebb-8882-46f9-b9cf-868ae5b49db0@2026-11-23T06:05:16.932047Z"
	if one := await(t, got, 1)[12]; one.Transaction != want {
		t.Errorf("told %+v; want the transaction %s", one, want)
	}
	hook(t, "Subversion", path, "http://127.0.0.1:1", "PATH=", "PATH="+folder+":")
	in(t, folder, path, "/srv/my maps", "12", "11-d") // nobody listens
}
