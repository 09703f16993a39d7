package doctor_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"archivist/pkg/ingest/queue"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// studied is a world with a project of research.
type studied struct {
	*research.Store
	w    *world
	sent []research.Message
}

// researched is a world with a research project: by their numbers, episode 0 is deferred, 1 is researched,
// 2 is in work, and 3 is in the queue. Clip 2 is deferred.
func researched(t *testing.T) *world {
	w := newWorld(t)
	s := newStudied(w)
	for i := range 4 {
		s.curate(research.Episode, i)
	}
	for i := range 3 {
		s.curate(research.Clip, i)
	}
	s.work(0, &research.Problem{Of: string(research.Episode), Kind: research.Failed, Reason: "404 Not Found"})
	s.work(1, &research.Problem{Of: string(research.Clip), Kind: research.Failed, Reason: "404 Not Found"})
	s.pass()
	s.accept()
	s.pass()
	w.advance(6 * time.Minute)
	s.pass() // counts pairs again, because a clip was deferred
	w.sweep()
	return w
}

// newStudied makes a project without episodes and clips.
func newStudied(w *world) *studied {
	q := w.doctor().Queue
	s := &studied{w: w, Store: &research.Store{Table: q.Table, Now: q.Now, NewID: q.NewID, Times: research.Default,
		Leases: &lease.Store{Table: q.Table, Now: q.Now, NewID: q.NewID}, Projects: []string{"songs"},
		Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }}}}
	s.Send = func(_ context.Context, m research.Message) error { s.sent = append(s.sent, m); return nil }
	s.must(s.Apply(w.Context(), research.Project{Name: "songs", MaxClips: 3,
		Analysis: research.Analysis{Name: "any", Version: "1"}}, research.By{Actor: "ann"}))
	return s
}

func (s *studied) must(err error) {
	s.w.Helper()
	if err != nil {
		s.w.Fatal(err)
	}
}

func (s *studied) curate(kind research.Kind, i int) {
	s.w.Helper()
	priority := 9 - i
	_, err := s.Curate(s.w.Context(), research.Curated{Project: "songs", Kind: kind, Source: "s", ID: fmt.Sprint(i),
		URL: "https://media.example.org/x", Curated: s.Now().UnixMilli(), Priority: &priority},
		research.By{Actor: "ann"})
	s.must(err)
}

func (s *studied) pass() {
	s.w.Helper()
	_, err := s.Pass(s.w.Context(), "songs", s.Now().Add(time.Minute))
	s.must(err)
}

// accept accepts the work item that was sent last.
func (s *studied) accept() research.Work {
	s.w.Helper()
	w, err := s.Accept(s.w.Context(), research.Acceptance{Lease: s.sent[len(s.sent)-1].Lease, Researcher: "r",
		Token: "t"})
	s.must(err)
	return w
}

// work does the next work item, which must be of an episode.
func (s *studied) work(episode int, p *research.Problem) {
	s.w.Helper()
	s.pass()
	w := s.accept()
	if w.Episode.ID != fmt.Sprint(episode) {
		s.w.Fatalf("episode %s is assigned, not %d", w.Episode.ID, episode)
	}
	s.report(w, p)
}

// report reports all clips of a work item, and a problem of the last.
func (s *studied) report(w research.Work, p *research.Problem) {
	s.w.Helper()
	for i, c := range w.Clips {
		r := research.Report{Project: "songs", Lease: w.Lease.ID, Researcher: "r", Analysis: w.Lease.Analysis,
			Episode: w.Episode.Key, Sequence: i + 1, Clip: c.Key}
		if i == len(w.Clips)-1 {
			r.Problem, r.Final, r.Count = p, true, len(w.Clips)
			if p.Of == string(research.Episode) {
				r.Clip = ""
			}
		}
		_, err := s.Record(s.w.Context(), r)
		s.must(err)
	}
}

// Rows of research.

func mediaKey(kind string, i int) table.Key {
	return key(strings.ToUpper(kind)+"#songs/"+research.Key("s", fmt.Sprint(i)), strings.ToUpper(kind))
}

func media(kind string, i int) func(*world) string {
	return func(*world) string { return kind + ":songs/" + research.Key("s", fmt.Sprint(i)) }
}

// text is an attribute of a row.
func (w *world) text(k table.Key, name string) string {
	w.Helper()
	v, ok := w.Rows.Row(k)[name].(*types.AttributeValueMemberS)
	if !ok {
		w.Fatalf("%s has no text %s", k, name)
	}
	return v.Value
}

// lined is the first row of the line that begins with a text.
func (w *world) lineRow(prefix string) table.Key {
	w.Helper()
	return w.firstIn("RESEARCHLINE#songs", prefix)
}

func (w *world) firstIn(pk, prefix string) table.Key {
	w.Helper()
	all := w.rowsIn(pk, prefix)
	if len(all) == 0 {
		w.Fatalf("%s has no row %s", pk, prefix)
	}
	return all[0]
}

func (w *world) rowsIn(pk, prefix string) (all []table.Key) {
	w.Helper()
	var rows []table.Head
	_, err := w.Machine.Queue.Table.Page(w.Context(), table.Query{PK: pk, Prefix: prefix}, &rows)
	if err != nil {
		w.Fatal(err)
	}
	for _, r := range rows {
		all = append(all, r.Key())
	}
	return all
}

// placeOf is the row of an episode in the line.
func (w *world) placeOf(i int) table.Key {
	return key("RESEARCHLINE#songs", w.text(mediaKey("episode", i), "place_in"))
}

// listedAt is the row of a clip in the catalog.
func (w *world) listedAt(i int) table.Key {
	v := w.Rows.Row(mediaKey("clip", i))["catalog_no"].(*types.AttributeValueMemberN)
	return key("CLIPS#songs", fmt.Sprintf("%012s", v.Value))
}

// leaseOf is the lease whose end is at a place of the line.
func (w *world) leaseOf(prefix string) string { return w.text(w.lineRow(prefix), "owned_by") }

func leaseKey(id string) table.Key { return key("RESEARCHLEASE#"+id, "RESEARCHLEASE") }

// counts is the last row of counts of a kind.
func (w *world) counts(kind string) table.Key {
	w.Helper()
	all := w.rowsIn("RESEARCHCOUNTS#songs", kind)
	return all[len(all)-1]
}

func song(*world) string { return "project:songs" }

// ofResearch are the damages of a world with research.
var ofResearch = []damage{
	{"an episode without its row in the line", func(w *world) { w.drop(w.placeOf(1)) },
		one("research-place", media("episode", 1)), true},
	{"a deferred episode without its end", func(w *world) { w.drop(w.lineRow("due#1800000600000#episode")) },
		one("research-place", media("episode", 0)), true},
	{"a deferred clip without its end", func(w *world) { w.drop(w.lineRow("due#1800000600000#clip")) },
		one("research-place", media("clip", 2)), true},
	{"a lease without its end", func(w *world) {
		w.drop(key("RESEARCHLINE#songs", "due#1800007200000#lease#"+
			w.leaseOf("pending")))
	}, one("research-place", func(w *world) string { return "lease:" + w.leaseOf("pending") }),
		true},
	{"what is deferred, and is not listed", func(w *world) {
		w.set(mediaKey("episode", 0), "shelf", nil)
		w.set(mediaKey("clip", 2), "since", str("x"))
	}, func(w *world) []string {
		return []string{"research-place " + media("episode", 0)(w), "research-place " + media("clip", 2)(w)}
	}, true},
	{"a row of the line of no episode", func(w *world) {
		w.insert(key("RESEARCHLINE#songs", "ready#x#none"), "owned_by", str("none"))
	}, one("research-line", row("RESEARCHLINE#songs", "ready#x#none")), true},
	{"an episode twice in the line", func(w *world) {
		w.insert(key("RESEARCHLINE#songs", "ready#x"), "owned_by", str(research.Key("s", "1")))
	}, one("research-line", row("RESEARCHLINE#songs", "ready#x")), true},
	{"ends and waiting of nothing", func(w *world) {
		for _, sk := range []string{"pending#1800000600000#none", "due#1800000600000#lease#none",
			"due#1800000600000#clip#none", "due#1800000600000#episode#none"} {
			w.insert(key("RESEARCHLINE#songs", sk), "owned_by", str("none"))
		}
	}, func(*world) []string {
		at := "research-line RESEARCHLINE#songs/"
		return []string{at + "pending#1800000600000#none", at + "due#1800000600000#lease#none",
			at + "due#1800000600000#clip#none", at + "due#1800000600000#episode#none"}
	}, true},
	{"an episode at another place than its priority says", func(w *world) {
		e := mediaKey("episode", 1)
		w.set(e, "media_json", str(strings.Replace(w.text(e, "media_json"), `"priority":8`, `"priority":5`, 1)))
	}, one("research-place", media("episode", 1)), true},
	{"a closed episode with a pair that is due", func(w *world) { w.set(mediaKey("episode", 1), "researched", nil) },
		func(w *world) []string {
			e := media("episode", 1)(w)
			return []string{"research-place " + e, "research-counts " + e}
		}, true},
	{"an episode that counts its pairs wrongly", func(w *world) {
		w.set(mediaKey("episode", 1), "counted_n", num(7))
		w.set(key("RESEARCHCOUNTS#songs", "round#000001#11"), "pairs_n", num(7)) // the part of this episode
	}, one("research-counts", media("episode", 1)), true},
	{"counts of episodes", func(w *world) { w.set(w.counts("places"), "ready_n", num(7)) },
		one("research-counts", song), true},
	{"counts of results", func(w *world) { w.set(w.counts("round"), "results_n", num(7)) },
		one("research-counts", song), true},
	{"counts that are gone", func(w *world) { w.drop(w.counts("places")) }, one("research-counts", song), true},
	{"researched clips that there are not", func(w *world) {
		bitmap := []byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 16, 0, 0, 0, 1, 0, 2, 0, 9, 0}
		w.set(mediaKey("episode", 1), "researched", &types.AttributeValueMemberB{Value: bitmap})
	}, one("research-numbers", media("episode", 1)), true},
	{"a pair that differs, and is in no list", func(w *world) {
		bitmap := []byte{0x3a, 0x30, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 0, 1, 0}
		w.set(mediaKey("episode", 1), "differs", &types.AttributeValueMemberB{Value: bitmap})
	}, func(w *world) []string {
		e := media("episode", 1)(w)
		return []string{"research-differs " + e, "research-counts " + e}
	}, true},
	{"a pair in that list that does not differ", func(w *world) {
		w.insert(key("RESEARCHOPINIONS#songs/"+research.Key("s", "1"), "pair#"+research.Key("s", "0")),
			"shelf", str("RESEARCHDIFFERS#songs"), "since", str("x"), "round_no", num(1),
			"episode_key", str(research.Key("s", "1")), "clip_key", str(research.Key("s", "0")))
	}, one("research-differs", row("RESEARCHOPINIONS#songs/"+research.Key("s", "1"),
		"pair#"+research.Key("s", "0"))), true},
	{"a pair in the list of reviews of which nothing waits", func(w *world) {
		w.insert(key("RESEARCHOPINIONS#songs/"+research.Key("s", "1"), "pair#"+research.Key("s",
			"0")),
			"shelf", str("RESEARCHREVIEWS#songs/000001"), "since", str("x"), "round_no", num(1),
			"episode_key", str(research.Key("s", "1")), "clip_key", str(research.Key("s", "0")))
	}, one("research-reviews", row("RESEARCHOPINIONS#songs/"+research.Key("s", "1"),
		"pair#"+research.Key("s", "0"))), true},
	{"places that wait, and are neither listed nor counted", func(w *world) {
		w.insert(key("RESEARCHOPINIONS#songs/"+research.Key("s", "1"), "pair#"+research.Key("s",
			"0")),
			"hit_marks", str("aw"), "round_no", num(1), "lease_id", str("x"),
			"episode_key", str(research.Key("s", "1")), "clip_key", str(research.Key("s", "0")))
	}, func(w *world) []string {
		return []string{"research-counts project:songs",
			"research-reviews " + row("RESEARCHOPINIONS#songs/"+
				research.Key("s", "1"), "pair#"+research.Key("s", "0"))(w)}
	}, true},
	{"a clip that is not in the catalog", func(w *world) { w.drop(w.listedAt(0)) },
		one("research-catalog", media("clip", 0)), true},
	{"a clip that is in the catalog as deferred", func(w *world) {
		w.set(w.listedAt(0), "live", &types.AttributeValueMemberBOOL{})
	}, func(w *world) []string {
		return []string{"research-catalog " + media("clip", 0)(w), "research-counts " + media("episode", 1)(w)}
	}, true},
	{"a clip twice in the catalog", func(w *world) {
		w.insert(key("CLIPS#songs", "000000000000"), "owned_by", str(research.Key("s", "1")), "clip_no", num(2))
	}, one("research-catalog", row("CLIPS#songs", "000000000000")), true},
	{"two clips with one number", func(w *world) { w.set(w.listedAt(0), "clip_no", num(2)) },
		func(w *world) []string {
			return []string{"research-catalog project:songs", "research-catalog " + media("clip", 0)(w)}
		}, false},
	{"a number that the project has not given", func(w *world) {
		w.set(mediaKey("clip", 0), "clip_no", num(9))
	}, func(w *world) []string {
		return []string{"research-catalog " + media("clip", 0)(w), "research-catalog " + media("clip", 0)(w)}
	}, false},
	{"a clip that is gone", func(w *world) { w.drop(mediaKey("clip", 0)) }, func(w *world) []string {
		return []string{"research-catalog " + w.firstIn("CLIPS#songs", "").String(), "research-catalog project:songs"}
	}, false},
	{"a lease that is gone", func(w *world) { w.drop(leaseKey(w.leaseOf("pending"))) }, func(w *world) []string {
		return []string{"research-held " + media("episode", 3)(w), "research-line " + w.lineRow("pending").String(),
			"research-line " + w.lineRow("due#1800007200000#lease#"+w.leaseOf("pending")).String()}
	}, false},
	{"a lease that has ended, and is still on its episode", func(w *world) {
		l := leaseKey(w.leaseOf("pending"))
		w.set(l, "ended_ms", num(w.now.UnixMilli()))
		w.set(l, "why_ended", str("revoked"))
	}, func(w *world) []string {
		return []string{"research-held " + media("episode", 3)(w), "research-line " + w.lineRow("pending").String(),
			"research-line " + w.lineRow("due#1800007200000#lease#"+w.leaseOf("pending")).String()}
	}, true},
	{"a live lease that is not on its episode", func(w *world) { w.set(mediaKey("episode", 3), "held", nil) },
		func(w *world) []string {
			return []string{"research-held lease:" + w.leaseOf("pending"), "research-place " + media("episode", 3)(w)}
		}, false},
	{"two live leases on a pair", func(w *world) {
		e := w.Rows.Row(mediaKey("episode", 3))
		all := e["held"].(*types.AttributeValueMemberL)
		all.Value = append(all.Value, all.Value[0])
		w.put(e)
	}, one("research-held", media("episode", 3)), false},
	{"another end of a lease", func(w *world) {
		w.set(leaseKey(w.leaseOf("pending")), "until_ms", num(1_800_007_200_001))
	}, func(w *world) []string {
		l := "lease:" + w.leaseOf("pending")
		return []string{"research-held " + l, "research-held " + media("episode", 3)(w), "research-place " + l,
			"research-line " + w.lineRow("due#1800007200000#lease#"+w.leaseOf("pending")).String()}
	}, false},
	{"an episode that is gone", func(w *world) { w.drop(mediaKey("episode", 1)) }, func(w *world) []string {
		return []string{"research-line " + w.lineRow("closed").String(), "research-counts project:songs",
			"research-result " + w.firstIn("RESULTS#songs/"+research.Key("s", "1"), "").String()}
	}, false},
	{"a result under another key", func(w *world) {
		k := w.firstIn("RESULTS#songs/"+research.Key("s", "1"), "")
		w.set(k, "report_json", str(strings.Replace(w.text(k, "report_json"), `"sequence":`, `"sequence":1`, 1)))
	}, one("research-result", func(w *world) string {
		return w.firstIn("RESULTS#songs/"+research.Key("s", "1"), "").String()
	}), false},
	{"an episode without its newest event", func(w *world) { w.set(mediaKey("episode", 1), "version", num(99)) },
		one("event-last", media("episode", 1)), false},
	{"a project without its newest event", func(w *world) {
		w.set(key("RESEARCHPROJECT#songs", "RESEARCHPROJECT"), "version", num(99))
	}, one("event-last", song), false},
	{"rows of a project that there is not", func(w *world) {
		w.insert(key("RESEARCHWALK#none", "WALK"))
		w.insert(key("RESEARCHCOUNTS#none", "places#00"))
	}, func(*world) []string {
		return []string{"research-project RESEARCHWALK#none/WALK", "research-project RESEARCHCOUNTS#none/places#00"}
	}, false},
	{"a row of the line of an unknown kind", func(w *world) { w.insert(key("RESEARCHLINE#songs", "x")) },
		one("row-kind", row("RESEARCHLINE#songs", "x")), false},
	{"nothing ends what is over", func(w *world) { w.now = w.now.Add(24 * time.Hour) }, func(w *world) (all []string) {
		for _, k := range w.rowsIn("RESEARCHLINE#songs", "due#") {
			all = append(all, "overdue "+k.String())
		}
		return all
	}, false},
}

// TestDuringResearch: a doctor that runs while clips come and go, and work is assigned and done, finds
// nothing; nor does one that runs afterwards.
func TestDuringResearch(t *testing.T) {
	w := newWorld(t)
	w.unswept = true // the relay is not part of this
	s := newStudied(w)
	ended := make(chan bool)
	go func() {
		defer close(ended)
		for i := range 60 {
			s.curate([]research.Kind{research.Clip, research.Episode}[i%2], i/2)
			s.pass()
			if len(s.sent) == 0 {
				continue
			}
			item := s.accept()
			s.sent = nil
			if i%3 > 0 { // else its lease expires
				s.report(item, &research.Problem{Of: string(research.Clip), Kind: research.Failed,
					Reason: "404 Not Found"})
			}
			w.advance(5 * time.Minute)
		}
	}()
	for runs, done := 0, false; !done; runs++ {
		select {
		case <-ended:
			done = true
			t.Logf("%d runs", runs)
		default:
		}
		found, err := w.doctor().All(t.Context(), false)
		found = slices.DeleteFunc(found, func(f queue.Finding) bool { return f.Invariant == "event-overdue" })
		if err != nil || len(found) > 0 {
			t.Fatalf("run %d: %v\n%s", runs, err, text(found))
		}
	}
}

// TestUnmarkedReview: a result that an earlier version of the program has stored in a project with
// a review has no marks. The doctor finds it, and lets its places wait for a person.
func TestUnmarkedReview(t *testing.T) {
	w := newWorld(t)
	s := newStudied(w)
	s.must(s.Apply(t.Context(), research.Project{Name: "songs", MaxClips: 3, Review: true,
		Analysis: research.Analysis{Name: "any", Version: "2"}}, research.By{Actor: "ann"}))
	s.curate(research.Episode, 0)
	s.curate(research.Clip, 0)
	s.pass()
	work := s.accept()
	_, err := s.Record(t.Context(), research.Report{Project: "songs", Lease: work.Lease.ID,
		Researcher: "r",
		Analysis:   work.Lease.Analysis, Episode: work.Episode.Key, Sequence: 1,
		Clip:  work.Clips[0].Key,
		Hits:  []research.Hit{{Offset: 1, Length: 2, Score: 1}, {Offset: 3, Length: 2, Score: 1}},
		Final: true, Count: 1})
	s.must(err)
	w.sweep()
	w.finds(false)

	pair := w.firstIn("RESEARCHOPINIONS#songs/"+work.Episode.Key, "pair#")
	for _, name := range []string{"hit_marks", "result_no", "shelf", "since"} {
		w.set(pair, name, nil)
	}
	for _, k := range w.rowsIn("RESEARCHCOUNTS#songs", "round#000002#") {
		w.set(k, "reviews_n", nil)
	}
	waiting := func(places, pairs int) {
		t.Helper()
		st, err := s.Status(t.Context(), "songs")
		s.must(err)
		all, _, err := s.Reviews(t.Context(), "songs", "")
		s.must(err)
		if st.Unreviewed != int64(places) || len(all) != pairs {
			t.Errorf("%d places wait, in %d pairs; expected %d, %d", st.Unreviewed, len(all),
				places, pairs)
		}
	}
	waiting(0, 0)
	w.finds(true, "research-reviews "+pair.String())
	waiting(2, 1)
	w.finds(false)
}

// TestResearchIsHealthy: a project in the middle of its research has no findings.
func TestResearchIsHealthy(t *testing.T) { researched(t).finds(false) }

// TestResultOfAReviewIsGone: the doctor names a result that counts, has places, and is gone. The pairs
// of which nothing was found are nearly all; their results are not read.
func TestResultOfAReviewIsGone(t *testing.T) {
	w := newWorld(t)
	s := newStudied(w)
	s.must(s.Apply(t.Context(), research.Project{Name: "songs", MaxClips: 10, Review: true,
		Analysis: research.Analysis{Name: "any", Version: "2"}}, research.By{Actor: "ann"}))
	s.curate(research.Episode, 0)
	for n := range 3 {
		s.curate(research.Clip, n)
	}
	s.pass()
	work := s.accept()
	for i, c := range work.Clips {
		r := research.Report{Project: "songs", Lease: work.Lease.ID, Researcher: "r",
			Analysis: work.Lease.Analysis, Episode: work.Episode.Key, Sequence: i + 1, Clip: c.Key}
		if i == 0 {
			r.Hits = []research.Hit{{Offset: 1, Length: 2, Score: 1}}
		}
		_, err := s.Record(t.Context(), r)
		s.must(err)
	}
	w.finds(false)

	reads := 0
	_, err := w.through(&tabletest.Client{DynamoDBAPI: w.Rows,
		Do: func(_ string, call func() error) error { return call() },
		Refuse: func(partition string) error {
			if strings.HasPrefix(partition, "RESULTS#") {
				reads++
			}
			return nil
		}}).All(t.Context(), false)
	if err != nil || reads != 1 {
		t.Errorf("%d results were read, %v", reads, err)
	}

	k := w.firstIn("RESULTS#songs/"+work.Episode.Key, "any@2#"+work.Clips[0].Key)
	w.drop(k)
	pair := table.Key{PK: "RESEARCHOPINIONS#songs/" + work.Episode.Key,
		SK: "pair#" + work.Clips[0].Key}
	w.finds(false, "research-result "+pair.String(), "research-counts project:songs")
}
