package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"archivist/cmd/archivist/command/commandtest"
	v1 "archivist/pkg/api/v1"
)

// TestOperatorSession is an operator's day, against the real handlers, queue and stages in
// this process. It is recorded in testdata/operator.txt, which -update writes.
func TestOperatorSession(t *testing.T) {
	file, err := filepath.Abs(filepath.Join("testdata", "operator.txt"))
	if err != nil {
		t.Fatal(err)
	}
	commandtest.EmptyHome(t)
	files := map[string]string{"/map.txt": "the map of Ghent"}
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, known := files[r.URL.Path]
		if !known {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(text))
	}))
	defer source.Close()
	s := newSession(t)
	s.hide = map[string]string{
		source.URL:                     "https://files.example.org",
		s.console.Env["ARCHIVIST_API"]: "https://archive.example.org",
	}
	s.url = source.URL
	s.holds()
	done := s.requeues(func() { files["/notes.txt"] = "what the surveyor wrote" })
	s.refuses(done)
	s.deletes()
	s.pauses()
	s.says("operation list", 0, "requeue")
	s.says("job show "+done, 0, "job.requeued")

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

// submit submits a file of the source.
func (s *session) submit(name string) (batch string) {
	s.t.Helper()
	s.do("submit "+s.url+"/"+name+" -c maps --type file", 0)
	batches, err := s.client.Batches(s.t.Context(), v1.Filter{Collection: "maps", Limit: 1})
	if err != nil || len(batches) != 1 {
		s.t.Fatal(batches, err)
	}
	return batches[0].ID
}

// holds: what is submitted waits, and is released after the hold.
func (s *session) holds() {
	s.t.Helper()
	s.do("collection hold maps --until 2h --reason rights --new-collection", 0)
	first := s.submit("map.txt")
	s.console.OnWait()
	s.says("batch show "+first+" --watch", 0, "on hold: archivist explain "+first)
	s.says("explain "+first, 0, "on hold")
	s.says("batch release "+first+" --reason rights", 5, "collection maps is on hold")
	s.says("queue holds", 0, `by an operator (unverified: "ann"): rights`)
	s.says("queue", 0, "collection:maps")
	s.says("collection release maps --reason cleared", 0,
		"archivist job release --collection maps --state held --keep-own-holds --reason cleared")
	s.do("job release --collection maps --all-held --reason cleared", 0)
	s.do("batch show "+first+" --watch", 0)
}

// requeues: the source is corrected, the job is requeued in bulk, and reported again.
func (s *session) requeues(correct func()) (job string) {
	s.t.Helper()
	second := s.submit("notes.txt")
	s.do("batch show "+second+" --watch", 4)
	s.says("job requeue --batch "+second+" --all-failed --reason there --dry-run", 0,
		"archivist job requeue --batch "+second+" --all-failed --reason there")
	correct()
	s.do("job requeue --batch "+second+" --all-failed --reason there", 0)
	s.do("job show "+second+"-00001 --watch", 0)
	s.do("batch update-report "+second+" --reason fixed", 0)
	s.do("batch show "+second+" --watch", 0)

	return second + "-00001"
}

// refuses: actions that are refused say why, and what is possible.
func (s *session) refuses(done string) {
	s.t.Helper()
	s.says("job requeue "+done+" --reason again", 4, "is Completed")
	s.says("job hold "+done+" --reason wait", 4, "is Completed")
	s.says("job requeue --state held --reason x", 2, "requeue acts on jobs that are Failed")
}

// deletes: a deletion has a warning, which is confirmed by the command that it shows.
func (s *session) deletes() {
	s.t.Helper()
	third := s.submit("lost.txt")
	s.do("batch show "+third+" --watch", 4)
	s.says("batch delete "+third+" --reason lost", 4, "archivist batch delete "+third+" --reason lost --confirm")
	s.do("batch delete "+third+" --reason lost --confirm", 0)
	s.says("batch list -c maps --state deleted", 0, third)
}

// pauses: the queue shows what is paused.
func (s *session) pauses() {
	s.t.Helper()
	s.do("queue pause --until 90m --reason network", 0)
	s.says("queue pause --until 90m --reason network", 0, "already paused")
	s.do("queue pause-storage --reason disks", 0)
	s.says("queue", 0, "storage since")
	batch := s.submit("map.txt")
	s.console.OnWait()
	job := batch + "-00001"
	s.says("explain "+job, 0, "paused")
	s.do("job prioritize "+job+" --priority 0 --reason exhibition", 0)
	s.do("job hold "+job+" --until 3d --reason rights", 0)
	s.says("job list -c maps --state held", 0, job)
	s.says("job show "+job, 0, "job:"+job+" since")
	s.says("batch cancel "+batch+" --reason twice", 0, "follow it archivist operation show ")
	s.do("batch show "+batch+" --watch", 4)
	s.says("batch show "+batch, 0, `by an operator (unverified: "ann"): twice`)
	s.says("job list -c maps --state deleted", 0, job)
	s.do("queue resume-storage --reason disks", 0)
	s.do("queue resume --reason network", 0)
}

// says runs a command and records it. It must print a text.
func (s *session) says(line string, want int, text string) {
	s.t.Helper()
	s.do(line, want)
	if !strings.Contains(strings.Join(strings.Fields(s.console.Both.String()), " "), text) {
		s.t.Errorf("%s: it does not print %q\n%s", line, text, &s.console.Both)
	}
}
