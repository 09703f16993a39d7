package e2e

import (
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	v1 "archivist/pkg/api/v1"
)

// opinions is a project of which two researchers have to find the same.
const opinions = "opinions"

// reviewed is such a project, with one episode and one clip.
type reviewed struct{ *testing.T }

func (r reviewed) must(err error) {
	r.Helper()
	if err != nil {
		r.Fatal(err)
	}
}

// finds lets a researcher take the only work item, and report these hits.
func (r reviewed) finds(name string, hits ...v1.ResearchHit) (lease string) {
	r.Helper()
	var work *v1.ResearchWork
	until(r.T, name+" gets the work item", 3*time.Minute, func() bool {
		_, err := client.Hello(r.Context(), opinions, v1.ResearchHello{Researcher: name, Capacity: 1})
		r.must(err)
		work, err = client.NextWork(r.Context(), opinions, v1.ResearchNext{Researcher: name,
			Token: ulid.Make().String()})
		r.must(err)
		return work != nil
	})
	r.must(client.ReportWork(r.Context(), opinions, v1.ResearchReport{Project: opinions, Lease: work.Lease.ID,
		Researcher: name, Analysis: work.Lease.Analysis, Episode: work.Episode.Key, Sequence: 1,
		Clip: work.Clips[0].Key, Hits: hits, Final: true, Count: 1}))
	until(r.T, "the result of "+name+" is stored", time.Minute, func() bool {
		l, err := client.ResearchLease(r.Context(), opinions, work.Lease.ID)
		r.must(err)
		return l.Ended != ""
	})
	return work.Lease.ID
}

// TestOpinions: two researchers find something else, another one is asked, and a person decides.
func TestOpinions(t *testing.T) {
	begin(t)
	r := reviewed{t}
	ctx := t.Context()
	_, err := client.ApplyResearch(ctx, v1.ResearchDefinition{Name: opinions, Quorum: 2,
		Analysis: v1.ResearchAnalysis{Name: "correlation", Version: "1"}}, "a test")
	r.must(err)
	for _, kind := range []string{v1.Episodes, v1.Clips} {
		_, err := client.Curate(ctx, opinions, kind, []v1.ResearchRecord{{Source: "e2e", ID: "one",
			URL: "https://example.org/one.wav"}})
		r.must(err)
	}

	right := r.finds("first", v1.ResearchHit{Offset: 5e9, Length: 1e9, Score: 0.9})
	r.finds("second")
	list, err := client.ResearchDifferences(ctx, opinions, 10)
	r.must(err)
	if len(list) != 1 || len(list[0].Results) != 2 {
		t.Fatalf("%+v", list)
	}

	d := v1.ResearchDecision{Episode: list[0].Episode, Clip: list[0].Clip, Another: true, Reason: "a test"}
	_, err = client.DecidePair(ctx, opinions, d)
	r.must(err)
	r.finds("third", v1.ResearchHit{Offset: 50e9, Length: 1e9, Score: 0.9})
	d.Another, d.Lease = false, right
	x, err := client.DecidePair(ctx, opinions, d)
	r.must(err)
	st, err := client.ResearchStatus(ctx, opinions)
	r.must(err)
	if x.WaitsFor != "nothing" || st.Coverage.Researched != 1 || len(st.Differences) > 0 {
		t.Errorf("%+v, %+v", x, st)
	}

	var found []v1.ResearchOffset
	_, err = client.ResearchOffsets(ctx, opinions, "", func(o v1.ResearchOffset) error {
		found = append(found, o)
		return nil
	})
	r.must(err)
	if len(found) != 1 || found[0].Offset != 5e9 {
		t.Errorf("exported: %+v", found)
	}
}
