package archives

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/kernel/fault"
)

// growing is an archive that each look finds further on.
type growing struct {
	looks []look
	n     int
}

// look is what one look finds.
type look struct {
	status   v1.ArchiveStatus
	notified int64
	tasks    []v1.Task
}

func (s *growing) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	l := s.looks[min(s.n, len(s.looks)-1)]
	var answer any
	switch {
	case strings.HasSuffix(r.URL.Path, "/tasks"):
		answer = v1.List[v1.Task]{Items: l.tasks}
		s.n++ // it is asked last
	case strings.HasSuffix(r.URL.Path, "/revisions"):
		answer = v1.List[v1.ArchiveRevision]{Items: []v1.ArchiveRevision{{Revision: l.notified, State: "notified"}}}
	default:
		l.status.Name = "maps"
		answer = l.status
	}
	_ = json.NewEncoder(w).Encode(answer)
}

// at is a look at an active archive with a task.
func at(watermark, notified int64, state string) look {
	l := look{notified: notified, tasks: []v1.Task{{ID: "maps/1/index", Revision: 1, Name: "index", State: state}}}
	l.status.Mode, l.status.Watermark, l.status.Open = "active", watermark, map[string]int{}
	if !v1.TaskEnded(state) {
		l.status.Open[state] = 1
		l.status.RunningNow = l.tasks
	}
	return l
}

// held is the same of an archive that is paused.
func held(l look) look {
	l.status.Mode, l.status.Why = "paused", "it is moved"
	return l
}

// byPerson is a look in which a task waits for a person, others wait for that one, and perhaps one more runs.
func byPerson(running string) look {
	l := look{notified: 1}
	l.status.Mode, l.status.Watermark, l.status.Open = "active", 1, map[string]int{"manual": 1, "blocked": 2}
	waits := func(name, on string) v1.Task {
		return v1.Task{ID: "maps/1/" + name, Revision: 1, Name: name, State: "blocked",
			Edges: []v1.TaskEdge{{ID: "maps/1/" + on, Verdict: "open"}}}
	}
	l.tasks = []v1.Task{waits("site", "announce"), waits("announce", "release"),
		{ID: "maps/1/release", Revision: 1, Name: "release", State: "manual"},
		{ID: "maps/1/check", Revision: 1, Name: "check", State: "failed", AllowFailure: true}}
	if running != "" {
		l.status.Open[running], l.tasks[3].State = 1, running
	}
	return l
}

// TestArchiveWatch: it ends when what was notified is planned and all tasks have ended, and fails if one that it has
// seen before that has failed; that of a paused archive ends when nothing runs.
func TestArchiveWatch(t *testing.T) {
	for name, c := range map[string]struct {
		looks []look
		waits int
		exit  int
		says  string
	}{
		"quiet":         {[]look{at(1, 1, "succeeded")}, 0, 0, "planned up to revision 1\nmaps/1  index succeeded"},
		"failed before": {[]look{at(1, 1, "failed")}, 0, 0, "index failed"},
		"succeeds": {[]look{at(1, 1, "blocked"), at(1, 1, "running"), at(1, 1, "succeeded")}, 2, 0,
			", 1 running"},
		"to be planned": {[]look{at(1, 2, "succeeded"), at(2, 2, "succeeded")}, 1, 0, "up to revision 2"},
		"fails": {[]look{at(1, 1, "running"), at(1, 1, "failed")}, 1, 4,
			"archivist archive task logs maps/1/index shows why"},
		"for a person": {[]look{byPerson("running"), byPerson("")}, 1, 0,
			"a person is to go on: archivist archive task start maps/1/release --reason TEXT"},
		"paused":          {[]look{held(at(1, 2, "succeeded"))}, 0, 0, "paused: it is moved"},
		"paused, running": {[]look{held(at(1, 2, "running")), held(at(1, 2, "succeeded"))}, 1, 0, "1 running"},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(&growing{looks: c.looks})
			defer srv.Close()
			console := with(t, srv.URL)
			console.Want(t, "archive show maps --watch", c.exit, c.says)
			if len(console.Waits) != c.waits {
				t.Errorf("it waited %d times", len(console.Waits))
			}
		})
	}
}

// TestNotifyInARun: a run of a task notifies its own archive with its token, and others without.
func TestNotifyInARun(t *testing.T) {
	for id, want := range map[string]string{"maps/13": "t", "plans/2": ""} {
		token := "not asked"
		srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			token = r.Header.Get(v1.RunHeader)
			_, _ = w.Write([]byte(`{"id": "x/1"}`))
		}))
		defer srv.Close()
		c := with(t, srv.URL)
		c.Env["ARCHIVIST_RUN_TOKEN"], c.Env["ARCHIVIST_ARCHIVE"], c.Env["ARCHIVIST_REVISION"] = "t", "maps", "12"
		c.Want(t, "archive revision notify "+id, 0, "x/1")
		if token != want {
			t.Errorf("%s: the token is %q", id, token)
		}
	}
}

// TestWaitInARun: a run of a task does not wait for its own archive.
func TestWaitInARun(t *testing.T) {
	for _, line := range []string{"archive show maps --watch", "archive task run maps index --watch",
		"archive revision show maps/12 --watch"} {
		c := with(t, "http://127.0.0.1:1")
		c.Env["ARCHIVIST_RUN_TOKEN"], c.Env["ARCHIVIST_ARCHIVE"], c.Env["ARCHIVIST_REVISION"] = "t", "maps", "12"
		c.Want(t, line, fault.Edges[fault.Conflict].Exit, "it would wait for itself")
	}
}
