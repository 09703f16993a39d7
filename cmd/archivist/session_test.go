package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"archivist/cmd/archivist/command/commandtest"
	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue/queuetest"
	"archivist/pkg/ingest/stage/stagetest"
	"archivist/pkg/kernel/bucket/buckettest"
	"archivist/pkg/kernel/table/tabletest"
)

// TestSession is a depositor's first day, against the real handlers, queue and stages
// on tables and buckets in this process. It is recorded in testdata/session.txt, which
// -update writes anew; its commands and how they end are compared.
func TestSession(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "session.txt"))
	if err != nil {
		t.Fatal(err)
	}
	commandtest.EmptyHome(t)
	files := map[string]string{"/map.txt": "the map of Ghent", "/notes.txt": "what the surveyor wrote"}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := files[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer source.Close()
	files["/ghent.checkm"] = manifest1[:strings.Index(manifest1, "https://")] +
		source.URL + "/map.txt | md5 | 44ad42c2aa8a0f79c0dbf43d2c1d4b0b | 16 | | map.txt |\n" +
		source.URL + "/notes.txt | | | | | notes.txt |\n#%eof\n"
	s := newSession(t)
	s.hide = map[string]string{
		source.URL:                     "https://files.example.org",
		s.console.Env["ARCHIVIST_API"]: "https://archive.example.org",
	}

	submit := "submit " + source.URL + "/ghent.checkm --collection maps --local-id map-17 --what Ghent " +
		"--new-collection"
	s.do(submit+" --dry-run", 0)
	s.do(submit+" --watch", 4) // the manifest has a wrong digest
	jobs, err := s.client.Jobs(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	s.do("batch report "+jobs[0].Batch, 0)
	files["/ghent.checkm"] = strings.Replace(
		files["/ghent.checkm"],
		"44ad42c2aa8a0f79c0dbf43d2c1d4b0b",
		"9562ba425eb13bffe313e8434ba15377",
		1,
	)
	s.do(submit+" --watch", 0)
	s.do("object list --collection maps", 0)
	objects, err := s.client.Objects(t.Context(), v1.Filter{Collection: "maps"})
	if err != nil || len(objects) != 1 {
		t.Fatal(objects, err)
	}
	s.do("object files "+objects[0].ARK, 0)
	s.do("object get "+objects[0].ARK+" producer/map.txt --dir ghent", 0)
	s.do("job list --collection maps --state failed --json id,state", 0)
	s.do("queue", 0)
	if got, err := os.ReadFile("ghent/producer/map.txt"); err != nil || string(got) != files["/map.txt"] {
		t.Errorf("%q, %v", got, err)
	}

	if *update {
		if err := os.WriteFile(file, []byte(s.text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	recorded, err := os.ReadFile(file)
	got, want := commandsOf(s.text.String()), commandsOf(string(recorded))
	if err != nil || strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("%v: the session is another one than the recorded; run with -update\n%s", err, &s.text)
	}
}

// commandsOf are the commands of a recorded session, and how they ended.
func commandsOf(text string) []string {
	return regexp.MustCompile(`(?m)^(\$ archivist|--- exit code) .*$`).FindAllString(text, -1)
}

// session is an archive in this process, and somebody at its console.
type session struct {
	t       *testing.T
	console *commandtest.Console
	client  *v1.Client
	url     string // of the source
	hide    map[string]string
	text    strings.Builder
}

func newSession(t *testing.T) *session {
	s3 := httptest.NewServer(buckettest.New(t.TempDir()))
	t.Cleanup(s3.Close)
	c := with(t, "")
	c.Width, c.Env["NO_COLOR"], c.Env["USER"] = 80, "1", "ann"
	now := func() time.Time {
		c.Now = c.Now.Add(time.Millisecond)
		return c.Now
	}
	m := queuetest.New(tabletest.Table(tabletest.New()), now, 50)
	stages := stagetest.New(m, s3.URL)
	handler := &api.API{Open: true, Queue: m.Queue, Inventory: stages.Inventory, Collections: stages.Collections,
		Root: stages.Root, Work: stages.Work.Bucket, Identity: stages.Identity(), Log: m.Queue.Log}
	srv := httptest.NewServer(handler.Handler())
	t.Cleanup(srv.Close)
	c.Env["ARCHIVIST_API"] = srv.URL
	c.OnWait = func() {
		if err := m.Run(t.Context(), 1); err != nil {
			t.Error(err)
		}
	}
	return &session{t: t, console: c, client: &v1.Client{URL: srv.URL, HTTP: srv.Client()}}
}

// do runs a command and records it.
func (s *session) do(line string, want int) {
	s.t.Helper()
	code := s.console.Run(line)
	if code != want {
		s.t.Fatalf("%s: exit code %d\n%s%s", line, code, &s.console.Out, &s.console.Err)
	}
	text := fmt.Sprintf("$ archivist %s\n%s--- exit code %d\n\n", line, s.console.Seen(), code)
	for real, shown := range s.hide {
		text = strings.ReplaceAll(text, real, shown)
	}
	s.text.WriteString(text)
}
