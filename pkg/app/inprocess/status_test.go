package inprocess

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest"
)

// section is a section of the status, as it is now.
func (w *world) section(name string) v1.StatusSection {
	w.Helper()
	s, err := w.api.Status(w.Context())
	w.must(err)
	i := slices.IndexFunc(s.Sections, func(p v1.StatusSection) bool { return p.Name == name })
	if i < 0 {
		w.Fatalf("there is no section %s in %+v", name, s)
	}
	return s.Sections[i]
}

// says fails the test unless a section is in a state, and has lines with texts in this order.
func (w *world) says(name, state string, texts ...string) v1.StatusSection {
	w.Helper()
	s := w.section(name)
	all := s.Summary
	for _, l := range s.Lines {
		all += "\n" + l.Text
	}
	at := 0
	for _, text := range texts {
		i := strings.Index(all[at:], text)
		if i < 0 {
			w.Errorf("%q is not behind %q in %+v", text, all[:at], s)
			continue
		}
		at += i + len(text)
	}
	if s.State != state {
		w.Errorf("%s is %s: %+v; expected %s", name, s.State, s, state)
	}
	return s
}

// TestStatus: in a bubble, the status of a system at rest needs nobody. Failed jobs are grouped by their causes until
// they are a day old, holds have their reasons, and a scheduler that is silent is seen.
func TestStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := begin(t, Settings{})
		w.completed(w.two())
		s, err := w.api.Status(t.Context())
		if err != nil || s.Attention || len(s.Sections) != 10 {
			t.Fatalf("%+v, %v", s, err)
		}
		w.says("alarms", v1.SectionAbsent, "no alarms")
		w.says("archives", v1.SectionAbsent, "no revision queue")
		w.says("preservation", v1.SectionOK, "makes no copies")

		manifest := w.src.batch(t, w.src.object(t, "four", "/a.txt", "/b.txt"), w.src.object(t, "five", "/c.txt"))
		w.src.mu.Lock()
		delete(w.src.files, "/a.txt")
		delete(w.src.files, "/c.txt")
		w.src.mu.Unlock()
		w.until("the batch failed", func() func() bool {
			id := w.submit(manifest)
			return func() bool { return w.batch(id).State == v1.Failed }
		}())
		failed := w.says("failures", v1.SectionAttention, "2 jobs", "404")
		if len(failed.Lines) != 1 || failed.Lines[0].Count != 2 {
			t.Errorf("%+v", failed)
		}
		_, filter, _ := strings.Cut(failed.Lines[0].Command, " --message '")
		jobs, err := w.api.Jobs(t.Context(), v1.Filter{State: "Failed", Message: strings.TrimSuffix(filter, "'")})
		if err != nil || len(jobs) != 2 {
			t.Errorf("%s lists %d jobs, %v", failed.Lines[0].Command, len(jobs), err)
		}

		_, err = w.api.Act(t.Context(), ingest.Target{Kind: ingest.TargetCollection, ID: "maps"},
			v1.Action{Action: "hold", Reason: "the scans are wrong"}, "")
		w.must(err)
		w.says("holds", v1.SectionOK, "collection:maps", "the scans are wrong")

		time.Sleep(25 * time.Hour) // of the bubble: they are failed still, and nobody has done anything
		failed = w.says("failures", v1.SectionAttention, "nothing failed in the last 24 hours; 2 jobs before")
		if len(failed.Lines) != 1 || failed.Lines[0].Count != 2 || failed.Lines[0].Command == "" {
			t.Errorf("%+v", failed)
		}
	})
}
