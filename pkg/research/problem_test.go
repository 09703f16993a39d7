package research

import (
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// problem reports that the first clip of a work item, or its episode, could not be researched.
func (b *bench) problem(w Work, sequence int, of Kind, kind string) {
	b.t.Helper()
	r := Report{Project: songs, Lease: w.Lease.ID, Researcher: w.Lease.Researcher, Analysis: w.Lease.Analysis,
		Episode: w.Lease.Episode, Sequence: sequence, Final: true, Count: sequence,
		Problem: &Problem{Of: string(of), Kind: kind, Reason: "404 Not Found"}}
	if of == Clip {
		r.Clip = w.Clips[0].Key
	}
	_, err := b.Record(b.t.Context(), r)
	b.must(err)
}

// TestProblems: what fails is deferred, and quarantined with the reason once two researchers agree; a person can end
// that. Nothing is assigned meanwhile, nor of what is withdrawn. One researcher alone quarantines nothing, whatever it
// says, and however often.
func TestProblems(t *testing.T) {
	for _, of := range []Kind{Episode, Clip} {
		t.Run(string(of), func(t *testing.T) {
			b := newBench(t)
			key := map[Kind]string{Episode: b.curate(Episode, "e", 0, 0), Clip: b.curate(Clip, "c", 0, 0)}[of]
			says := func(name, kind string) {
				t.Helper()
				b.pass()
				b.problem(b.accept(name), 1, of, kind)
				b.pass()
				if len(b.sent) != 0 {
					t.Fatalf("assigned at once after a problem of %s", name)
				}
			}
			for range 6 {
				says("r", Rejected)
				b.clock = b.clock.Add(25 * time.Hour)
			}
			for range 5 {
				says("r", Failed)
				b.clock = b.clock.Add(11 * time.Hour)
			}
			b.clock = b.clock.Add(24 * time.Hour)
			for _, end := range [][]string{{"r " + Failed, "r " + Failed, "other " + Failed},
				{"r " + Rejected, "other " + Rejected}} {
				for _, said := range end {
					name, kind, _ := strings.Cut(said, " ")
					says(name, kind)
					b.clock = b.clock.Add(41 * time.Minute)
				}
				b.clock = b.clock.Add(30 * 24 * time.Hour)
				b.pass()
				if len(b.sent) != 0 {
					t.Fatalf("assigned although it is set aside: %s", end)
				}
				b.must(b.Retry(t.Context(), of, songs, key, by))
				if err := b.Retry(t.Context(), of, songs, key, by); !fault.Is(err, fault.Conflict) {
					t.Error("a second retry:", err)
				}
			}
			_, err := b.Curate(t.Context(), Curated{Project: songs, Kind: of, Source: "s", ID: string(of[0]),
				Withdrawn: true, URL: "https://media.example.org/" + string(of[0]), Curated: millis(b.clock)}, by)
			b.must(err)
			b.pass()
			if len(b.sent) != 0 {
				t.Error("assigned although it is withdrawn")
			}
		})
	}
}
