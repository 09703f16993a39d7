package api_test

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/api"
	v1 "archivist/pkg/api/v1"
	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/research"
)

// TestFullEpisode: an episode that gets no more leases says why.
func TestFullEpisode(t *testing.T) {
	m := api.WireMedia(research.Known{State: research.Closed, Pairs: 3, Leased: 2, Open: 1,
		Full: "the episode has 100 leases"})
	if m.Reason != "the episode has 100 leases" || m.Coverage.Open != 1 {
		t.Errorf("%+v", m)
	}
}

// waiting is a queue of pending work.
type waiting struct {
	mu     sync.Mutex
	bodies []string
}

func (w *waiting) send(_ context.Context, m research.Message) error {
	body, err := json.Marshal(m)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = append(w.bodies, string(body))
	return err
}

func (w *waiting) Receive(context.Context, string) (body, receipt string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.bodies) == 0 {
		return "", "", nil
	}
	return w.bodies[0], "first", nil
}

func (w *waiting) Delete(context.Context, string, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = w.bodies[1:]
	return nil
}

func (w *waiting) Return(context.Context, string, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bodies = append(w.bodies[1:], w.bodies[0])
	return nil
}

var jingles = v1.ResearchDefinition{Name: "jingles", MaxClips: 2,
	Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1", Settings: map[string]any{"threshold": 0.6}}}

// record is a record with that id.
func recordOf(id string) v1.ResearchRecord {
	return v1.ResearchRecord{Source: "radio", ID: id, Title: "Title of " + id, URL: "https://example.org/" + id}
}

// TestResearch: a project is configured, filled, researched by one researcher, and its views show what
// was found.
func TestResearch(t *testing.T) {
	c, q := serve(t, through)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	fill(t, c)
	welcome, err := c.Hello(ctx, "jingles", v1.ResearchHello{Researcher: "bench-3", Capacity: 2})
	if err != nil || welcome.RenewSeconds != 30 {
		t.Errorf("%+v, %v", welcome, err)
	}
	present, err := c.Researchers(ctx, "jingles")
	if err != nil || len(present) != 1 || present[0].Capacity != 2 {
		t.Errorf("%+v, %v", present, err)
	}
	next := v1.ResearchNext{Researcher: "bench-3", Token: "one"}
	if none, err := c.NextWork(ctx, "jingles", next); none != nil || err != nil {
		t.Errorf("%+v, %v", none, err)
	}
	pass(t, q, c)
	work, err := c.NextWork(ctx, "jingles", next)
	must(err)
	if work == nil || len(work.Clips) != 2 || work.Episode.URL == "" || work.Analysis.Name != "correlation" {
		t.Fatalf("%+v", work)
	}
	again, err := c.NextWork(ctx, "jingles", next)
	if err != nil || again.Lease.ID != work.Lease.ID {
		t.Errorf("%+v, %v", again, err)
	}
	accept := v1.ResearchAccept{ResearchNext: next, Lease: work.Lease.ID}
	if same, err := c.AcceptWork(ctx, "jingles", accept); err != nil || same.Lease.ID != work.Lease.ID {
		t.Errorf("%+v, %v", same, err)
	}
	accept.Researcher = "another"
	if _, err := c.AcceptWork(ctx, "jingles", accept); !fault.Is(err, fault.Conflict) {
		t.Errorf("by another: %v", err)
	}
	x, err := c.ExplainWith(ctx, "jingles/"+work.Episode.Key, v1.ExplainOf{Clip: work.Clips[0].Key})
	if err != nil || x.WaitsFor != "worker" || !strings.HasSuffix(x.Why, "accepted by bench-3") {
		t.Errorf("%+v, %v", x, err)
	}
	report := v1.ResearchReport{Project: "jingles", Lease: work.Lease.ID, Researcher: "bench-3",
		Analysis: work.Lease.Analysis, Episode: work.Episode.Key, Sequence: 1, Clip: work.Clips[0].Key,
		Hits: []v1.ResearchHit{{Offset: 5e9, Length: 1e9, Score: 0.9}}}
	second := report
	second.Sequence, second.Clip, second.Hits, second.Final, second.Count = 2, work.Clips[1].Key, nil, true, 2
	broken := report
	broken.Sequence = -1
	if err := c.ReportWork(ctx, "jingles", report, broken); !fault.Is(err, fault.Invalid) ||
		!strings.Contains(err.Error(), "reports[1].sequence") {
		t.Errorf("a broken report: %v", err)
	}
	must(c.ReportWork(ctx, "jingles", report, second))
	must(c.ReportWork(ctx, "jingles", second))
	seen(t, c, work)
	must(c.Bye(ctx, "jingles", "bench-3"))
	if present, err := c.Researchers(ctx, "jingles"); err != nil || len(present) != 0 {
		t.Errorf("%+v, %v", present, err)
	}
}

// TestDifference: two researchers find something else, a third one is asked, and a person decides.
func TestDifference(t *testing.T) {
	c, q := serve(t, through)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	project := jingles
	project.Quorum = 2
	made, err := c.ApplyResearch(ctx, project, "new")
	if err != nil || made.Quorum != 2 {
		t.Fatal(made, err)
	}
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		_, err := c.Curate(ctx, "jingles", kind, []v1.ResearchRecord{recordOf("one")})
		must(err)
	}
	finds := func(name string, hits ...v1.ResearchHit) *v1.ResearchWork {
		t.Helper()
		_, err := c.Hello(ctx, "jingles", v1.ResearchHello{Researcher: name, Capacity: 1})
		must(err)
		pass(t, q, c)
		work, err := c.NextWork(ctx, "jingles", v1.ResearchNext{Researcher: name, Token: q.NewID()})
		must(err)
		if work == nil {
			return nil
		}
		must(c.ReportWork(ctx, "jingles", v1.ResearchReport{Project: "jingles", Lease: work.Lease.ID, Researcher: name,
			Analysis: work.Lease.Analysis, Episode: work.Episode.Key, Sequence: 1, Clip: work.Clips[0].Key, Hits: hits,
			Final: true, Count: 1}))
		return work
	}
	first := finds("bench-1", v1.ResearchHit{Offset: 5e9, Length: 1e9, Score: 0.9})
	if again := finds("bench-1"); again != nil {
		t.Errorf("the same researcher gets %+v", again)
	}
	second := finds("bench-2")
	list, err := c.ResearchDifferences(ctx, "jingles", 10)
	if err != nil || len(list) != 1 || len(list[0].Results) != 2 || list[0].Results[0].Lease != first.Lease.ID {
		t.Fatalf("%+v, %v", list, err)
	}
	d := v1.ResearchDecision{Episode: list[0].Episode, Clip: list[0].Clip, Another: true, Reason: "to be sure"}
	x, err := c.DecidePair(ctx, "jingles", d)
	if err != nil || x.WaitsFor != "turn" && x.WaitsFor != "researcher" {
		t.Errorf("%+v, %v", x, err)
	}
	_, err = c.Hello(ctx, "jingles", v1.ResearchHello{Researcher: "bench-3", Capacity: 1})
	must(err)
	pass(t, q, c)
	leases, err := c.ResearchLeases(ctx, "jingles", 10)
	must(err)
	_, err = c.AcceptWork(ctx, "jingles", v1.ResearchAccept{Lease: leases[0].ID,
		ResearchNext: v1.ResearchNext{Researcher: "bench-2", Token: "t"}})
	if !fault.Is(err, fault.Held) {
		t.Errorf("accepted by the second one again: %v", err)
	}
	if third := finds("bench-3", v1.ResearchHit{Offset: 90e9, Length: 1e9, Score: 0.9}); third == nil {
		t.Fatal("the third one gets nothing")
	}
	d.Another, d.Lease = false, second.Lease.ID
	if x, err = c.DecidePair(ctx, "jingles", d); err != nil || !strings.Contains(x.Why, "is researched") {
		t.Errorf("%+v, %v", x, err)
	}
}

// TestReviewPair: what was found waits for a person, who accepts one place and rejects the other;
// the export has what is accepted, and says how many places wait.
func TestReviewPair(t *testing.T) {
	c, q := serve(t, through)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	project := jingles
	project.Review = true
	made, err := c.ApplyResearch(ctx, project, "new")
	if err != nil || !made.Review {
		t.Fatal(made, err)
	}
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		_, err := c.Curate(ctx, "jingles", kind, []v1.ResearchRecord{recordOf("one")})
		must(err)
	}
	_, err = c.Hello(ctx, "jingles", v1.ResearchHello{Researcher: "bench-1", Capacity: 1})
	must(err)
	pass(t, q, c)
	work, err := c.NextWork(ctx, "jingles", v1.ResearchNext{Researcher: "bench-1", Token: "t"})
	must(err)
	must(c.ReportWork(ctx, "jingles", v1.ResearchReport{Project: "jingles", Lease: work.Lease.ID,
		Researcher: "bench-1", Analysis: work.Lease.Analysis, Episode: work.Episode.Key, Sequence: 1,
		Clip: work.Clips[0].Key, Final: true, Count: 1,
		Hits: []v1.ResearchHit{{Offset: 5e9, Length: 1e9, Score: 0.9}, {Offset: 9e9, Length: 1e9, Score: 0.6}}}))
	exports(t, c, work.Episode.Key, "2")
	list, err := c.ResearchReviews(ctx, "jingles", 10)
	if err != nil || len(list) != 1 || list[0].Waiting != 2 ||
		!slices.Equal(list[0].Reviews, []string{"waits", "waits"}) {
		t.Fatalf("%+v, %v", list, err)
	}
	r := v1.ResearchReview{Action: "accept", Episode: list[0].Episode, Clip: list[0].Clip,
		Lease: list[0].Lease, Hit: 2, Reason: "I have listened to it."}
	for range 2 {
		x, err := c.ReviewPair(ctx, "jingles", r)
		if err != nil || x.WaitsFor != "person" || !strings.Contains(x.Why, "1 of its 2 places wait") {
			t.Errorf("%+v, %v", x, err)
		}
	}
	exports(t, c, work.Episode.Key, "1", 9e9)
	status, err := c.Status(ctx)
	must(err)
	part := named(status, "research")
	if len(part.Lines) != 1 || part.Lines[0].Count != 1 || !part.Lines[0].Attention ||
		part.Lines[0].Command != "archivist research reviews jingles" ||
		part.Summary != "1 project, 1 place to review, 0 pairs to decide on" {
		t.Errorf("%+v", part)
	}
	r.Action = "reject"
	if _, err := c.ReviewPair(ctx, "jingles", r); !fault.Is(err, fault.Conflict) {
		t.Errorf("rejected what is accepted: %v", err)
	}
	r.Hit = 0
	x, err := c.ReviewPair(ctx, "jingles", r)
	if err != nil || x.WaitsFor != "nothing" {
		t.Errorf("%+v, %v", x, err)
	}
	exports(t, c, work.Episode.Key, "0", 9e9)
	results, err := c.ResearchResults(ctx, "jingles", v1.Episodes, work.Episode.Key, 0)
	if err != nil || !slices.Equal(results[0].Reviews, []string{"rejected", "accepted"}) {
		t.Errorf("%+v, %v", results, err)
	}
	r.Lease = "other"
	if _, err := c.ReviewPair(ctx, "jingles", r); !fault.Is(err, fault.Conflict) {
		t.Errorf("a lease that does not count: %v", err)
	}
}

// exports checks which places of the project are exported, and how many wait, by each view.
func exports(t *testing.T, c *v1.Client, episode, waits string, offsets ...int64) {
	t.Helper()
	var is []int64
	n, err := c.ResearchOffsets(t.Context(), "jingles", "", func(o v1.ResearchOffset) error {
		is = append(is, o.Offset)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	resp, text := ask(t, http.MethodGet,
		c.URL+"/v1/research/jingles/offsets?format=audacity&episode="+episode, "")
	st, err := c.ResearchStatus(t.Context(), "jingles")
	if err != nil || !slices.Equal(is, offsets) || strings.Count(text, "\n") != len(offsets) ||
		strconv.Itoa(n) != waits || resp.Header.Get("Places-Waiting") != waits ||
		strconv.FormatInt(st.Unreviewed, 10) != waits {
		t.Errorf("exported %v %q, %d wait, %v, %d by the status", is, text, n, resp.Header,
			st.Unreviewed)
	}
}

// fill configures the project, and adds two episodes and two clips.
func fill(t *testing.T, c *v1.Client) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	made, err := c.ApplyResearch(ctx, jingles, "new")
	must(err)
	if made.Round != 1 || made.MaxClips != 2 || made.Analysis.Settings["threshold"] != 0.6 {
		t.Errorf("%+v", made)
	}
	all, err := c.ResearchProjects(ctx)
	if err != nil || len(all) != 1 || all[0].Name != "jingles" {
		t.Errorf("%+v, %v", all, err)
	}
	episodes, err := c.Curate(ctx, "jingles", v1.Episodes, []v1.ResearchRecord{recordOf("morning"), {},
		recordOf("noon")})
	must(err)
	if len(episodes) != 3 || episodes[0].Key == "" || episodes[1].Key != "" || episodes[1].Problem == "" ||
		episodes[2].Problem != "" {
		t.Errorf("%+v", episodes)
	}
	wrong := recordOf("x")
	wrong.SHA256 = "no"
	late := recordOf("y")
	late.Curated = "yesterday"
	clips, err := c.Curate(ctx, "jingles", v1.Clips, []v1.ResearchRecord{recordOf("a"), wrong, late, recordOf("b")})
	must(err)
	if clips[1].Field != "sha256" || clips[2].Field != "curated" || clips[3].Key == "" {
		t.Errorf("%+v", clips)
	}
}

// pass lets the assigner assign work, whose messages the API receives.
func pass(t *testing.T, q *queue.Queue, c *v1.Client) {
	t.Helper()
	s := &research.Store{Table: q.Table, Leases: &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}, Now: q.Now,
		NewID: q.NewID, Times: research.Default, Projects: []string{"jingles"}, Send: inboxes[c.URL].send}
	_, err := s.Pass(t.Context(), "jingles", q.Now().Add(time.Minute))
	if err != nil {
		t.Fatal(err)
	}
}

// seen checks what the views show after a work item was researched: the first of its clips was found.
func seen(t *testing.T, c *v1.Client, work *v1.ResearchWork) {
	t.Helper()
	ctx := t.Context()
	st, err := c.ResearchStatus(ctx, "jingles")
	if err != nil || st.Coverage != (v1.ResearchCoverage{Pairs: 4, Researched: 2, Leased: 2}) || st.Results != 2 ||
		st.Episodes.Closed != 2 || st.Clips.Live != 2 || st.Leases != 1 || st.Waiting != 1 || st.Researchers != 1 {
		t.Errorf("%+v, %v", st, err)
	}
	e, err := c.ResearchMediaOf(ctx, "jingles", v1.Episodes, work.Episode.Key)
	if err != nil || e.State != "closed" || e.Coverage.Researched != 2 {
		t.Errorf("%+v, %v", e, err)
	}
	for kind, n := range map[string]int{v1.Episodes: 2, v1.Clips: 2} {
		if list, err := c.ResearchMedia(ctx, "jingles", kind, "", 0); err != nil || len(list) != n {
			t.Errorf("%s: %+v, %v", kind, list, err)
		}
	}
	results, err := c.ResearchResults(ctx, "jingles", v1.Episodes, work.Episode.Key, 0)
	if err != nil || len(results) != 2 {
		t.Errorf("%+v, %v", results, err)
	}
	results, err = c.ResearchResults(ctx, "jingles", v1.Clips, work.Clips[0].Key, 0)
	if err != nil || len(results) != 1 || results[0].Hits[0].Offset != 5e9 {
		t.Errorf("%+v, %v", results, err)
	}
	for _, episode := range []string{"", work.Episode.Key} {
		n := 0
		_, err = c.ResearchOffsets(ctx, "jingles", episode, func(o v1.ResearchOffset) error {
			n++
			if o.Title == "" || o.Offset != 5e9 {
				t.Errorf("%+v", o)
			}
			return nil
		})
		if err != nil || n != 1 {
			t.Errorf("%d offsets, %v", n, err)
		}
	}
	path := c.URL + "/v1/research/jingles/offsets?format=webvtt"
	if resp, text := ask(t, http.MethodGet, path, ""); resp.StatusCode != 422 {
		t.Errorf("WebVTT of all: %d %s", resp.StatusCode, text)
	}
	resp, text := ask(t, http.MethodGet, path+"&episode="+work.Episode.Key, "")
	if !strings.Contains(text, "00:00:05.000 --> 00:00:06.000\nTitle of ") ||
		resp.Header.Get("Content-Type") != v1.OffsetsMedia[v1.OffsetsWebVTT] {
		t.Errorf("%v %s", resp.Header, text)
	}
	for part, last := range map[string]string{"": v1.EventProjectApplied, "leases/" + work.Lease.ID: v1.EventLeaseEnded,
		"episodes/" + work.Episode.Key: v1.EventEpisodeResearched, "clips/" + work.Clips[0].Key: v1.EventClipCurated} {
		list, err := c.ResearchEvents(ctx, "jingles", part, 0)
		if err != nil || len(list) == 0 || list[len(list)-1].Type != last {
			t.Errorf("%s: %+v, %v", part, list, err)
		}
	}
}

// TestResearchActions: what people do needs a reason, and is answered by the state after it.
func TestResearchActions(t *testing.T) {
	c, q := serve(t, through)
	ctx := t.Context()
	_, err := c.ResearchStatus(ctx, "jingles")
	if !fault.Is(err, fault.NotFound) {
		t.Errorf("without a project: %v", err)
	}
	other := jingles
	other.Name = "songs"
	if _, err := c.ApplyResearch(ctx, other, ""); !fault.Is(err, fault.Invalid) {
		t.Errorf("a project without a queue: %v", err)
	}
	_, err = c.ApplyResearch(ctx, jingles, "new")
	if err != nil {
		t.Fatal(err)
	}
	paused, err := c.ActOnResearch(ctx, "jingles", v1.ResearchAction{Action: "pause", Reason: "wait"})
	if err != nil || !strings.HasSuffix(paused.Paused, "wait") {
		t.Errorf("%+v, %v", paused, err)
	}
	resumed, err := c.ActOnResearch(ctx, "jingles", v1.ResearchAction{Action: "resume", Reason: "go on"})
	if err != nil || resumed.Paused != "" {
		t.Errorf("%+v, %v", resumed, err)
	}
	keys, err := c.Curate(ctx, "jingles", v1.Episodes, []v1.ResearchRecord{recordOf("morning")})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Curate(ctx, "jingles", v1.Clips, []v1.ResearchRecord{recordOf("a")}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.RetryResearch(ctx, "jingles", v1.Episodes, keys[0].Key, "again"); !fault.Is(err, fault.Conflict) {
		t.Errorf("what is not set aside: %v", err)
	}
	pass(t, q, c)
	leases, err := c.ResearchLeases(ctx, "jingles", 0)
	if err != nil || len(leases) != 1 {
		t.Fatalf("%+v, %v", leases, err)
	}
	ended, err := c.RevokeLease(ctx, "jingles", leases[0].ID, "it hangs")
	if err != nil || ended.Why != "revoked" {
		t.Errorf("%+v, %v", ended, err)
	}
	err = c.ReportWork(ctx, "jingles", v1.ResearchReport{Project: "jingles", Lease: leases[0].ID, Researcher: "r",
		Analysis: "correlation@1", Episode: keys[0].Key, Sequence: 1, Final: true, Count: 1,
		Problem: &v1.ResearchProblem{Of: "episode", Kind: "rejected", Reason: "it is silent"}})
	if err != nil {
		t.Fatal(err)
	}
	st, err := c.ResearchStatus(ctx, "jingles")
	if err != nil || len(st.Trouble) != 1 || st.Trouble[0].Kind != "episode" ||
		st.Trouble[0].Media.Reason != "it is silent" {
		t.Errorf("%+v, %v", st, err)
	}
	back, err := c.RetryResearch(ctx, "jingles", v1.Episodes, keys[0].Key, "replaced")
	if err != nil || back.State != "ready" {
		t.Errorf("%+v, %v", back, err)
	}
}
