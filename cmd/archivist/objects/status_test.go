package objects

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	v1 "archivist/pkg/api/v1"
)

// listed answers with pages of objects, the last changed first, and lets them change between two pages.
type listed struct {
	pages  [][]v1.Object
	change func(*listed) // before the page after the first; nil once it was called
}

func (l *listed) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasSuffix(r.URL.Path, "/collections") {
		_ = json.NewEncoder(w).Encode(v1.List[v1.CollectionName]{Items: []v1.CollectionName{{Name: "empty"},
			{Name: "maps"}}})
		return
	}
	if r.URL.Query().Get("collection") == "empty" {
		_ = json.NewEncoder(w).Encode(v1.List[v1.Object]{})
		return
	}
	n := len(r.URL.Query().Get("cursor"))
	if n == 1 && l.change != nil {
		l.change(l)
		l.change = nil
	}
	out := v1.List[v1.Object]{Items: l.pages[n]}
	if n+1 < len(l.pages) {
		out.Cursor = strings.Repeat("x", n+1)
	}
	_ = json.NewEncoder(w).Encode(out)
}

// status is what the command prints.
func status(t *testing.T, l *listed, line string) (all []preservationStatus) {
	t.Helper()
	srv := httptest.NewServer(l)
	defer srv.Close()
	c := with(t, srv.URL)
	if code := c.Run(line + " --json collection,objects,verified,damaged,notCopied,oldestCheck,attention"); code != 0 {
		t.Fatalf("code %d: %s", code, &c.Err)
	}
	if err := json.Unmarshal(c.Out.Bytes(), &all); err != nil {
		t.Fatalf("%v: %s", err, &c.Out)
	}
	return all
}

// object is one whose newest version is 2, with the outcomes of the last checks: "ok", "damaged", "" for none, or
// "old" for one of version 1. A copy of "none" is missing.
func object(ark, stored, copied string) v1.Object {
	check := func(outcome, day string) v1.Fixity {
		f := v1.Fixity{FixityOutcome: outcome, FixityChecked: "2026-11-" + day + "T00:00:00Z", FixityVersion: 2}
		switch outcome {
		case "":
			f = v1.Fixity{}
		case "old":
			f.FixityOutcome, f.FixityVersion = "ok", 1
		}
		return f
	}
	o := v1.Object{ARK: ark, Version: 2, Modified: "2026-11-01T00:00:00Z", Fixity: check(stored, "20")}
	if copied != "none" {
		o.Copy = &v1.ObjectCopy{Version: 2, Fixity: check(copied, "10")}
	}
	return o
}

// TestPreservationStatus: a copy counts as verified if its last check found the newest version right.
func TestPreservationStatus(t *testing.T) {
	for _, c := range []struct {
		object    v1.Object
		verified  int
		damaged   int
		notCopied int
		oldest    string
		why       string
	}{
		{object("a", "ok", "ok"), 2, 0, 0, "2026-11-10T00:00:00Z", ""},
		{object("a", "ok", "none"), 1, 0, 1, "2026-11-20T00:00:00Z", ""},
		{object("a", "ok", ""), 1, 0, 0, "", "the copy: not checked yet"},
		{object("a", "", "ok"), 1, 0, 0, "", "the stored files: not checked yet"},
		{object("a", "", "none"), 0, 0, 1, "", "the stored files: not checked yet"},
		{object("a", "old", "old"), 0, 0, 0, "2026-11-10T00:00:00Z",
			"the stored files: version 1 was checked, version 2 not yet; " +
				"the copy: version 1 was checked, version 2 not yet"},
		{object("a", "damaged", "ok"), 1, 1, 0, "2026-11-10T00:00:00Z",
			"the stored files: damaged on 2026-11-20T00:00:00Z"},
		{object("a", "ok", "unreadable"), 1, 1, 0, "2026-11-10T00:00:00Z",
			"the copy: unreadable on 2026-11-10T00:00:00Z"},
	} {
		want := preservationStatus{Collection: "maps", Objects: 1, Verified: []int{0, 0, 0}, Damaged: c.damaged,
			NotCopied: c.notCopied, OldestCheck: c.oldest, Attention: []needsAttention{}}
		want.Verified[c.verified] = 1
		if c.why != "" {
			want.Attention = []needsAttention{{ARK: "a", Verified: c.verified, Why: c.why}}
		}
		all := status(t, &listed{pages: [][]v1.Object{{c.object}}}, "object preservation status")
		if !reflect.DeepEqual(all, []preservationStatus{want}) {
			t.Errorf("got %+v, want %+v", all, want)
		}
	}
	late := object("a", "ok", "old")
	late.Copy.Version = 1
	all := status(t, &listed{pages: [][]v1.Object{{late}}}, "object preservation status -c maps")
	if s := all[0]; s.NotCopied != 1 || s.Verified[1] != 1 ||
		!strings.HasPrefix(s.Attention[0].Why, "the copy has version 1 of 2; ") {
		t.Errorf("got %+v", s)
	}
}

// TestStatusOfWhatChanges: an object that moves to the front of the list during the reading is counted once, as it
// is then; the worst objects come first.
func TestStatusOfWhatChanges(t *testing.T) {
	l := &listed{pages: [][]v1.Object{{object("a", "ok", "ok")}, {object("b", "ok", "")}, {object("c", "ok", "ok")},
		{object("d", "", "")}}}
	l.change = func(l *listed) {
		changed := object("c", "damaged", "ok")
		changed.Modified = "2026-11-02T00:00:00Z"
		l.pages = [][]v1.Object{{changed}, {object("a", "ok", "ok")}, {object("b", "ok", "")}, {object("d", "", "")}}
	}
	s := status(t, l, "object preservation status")[0]
	var worst []string
	for _, n := range s.Attention {
		worst = append(worst, n.ARK)
	}
	if s.Objects != 4 || !reflect.DeepEqual(s.Verified, []int{1, 2, 1}) || s.Damaged != 1 ||
		!reflect.DeepEqual(worst, []string{"c", "d", "b"}) {
		t.Errorf("got %+v", s)
	}
}
