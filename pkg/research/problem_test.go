package research

import (
	"fmt"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// problem reports that the first clip of a work item, or its episode, could not be researched.
func (b *bench) problem(w Work, sequence int, of Kind, kind string) {
	b.t.Helper()
	r := Report{Project: songs, Lease: w.Lease.ID, Researcher: "r", Analysis: w.Lease.Analysis,
		Episode: w.Lease.Episode, Sequence: sequence, Final: true, Count: sequence,
		Problem: &Problem{Of: of, Kind: kind, Reason: "404 Not Found"}}
	if of == Clip {
		r.Clip = w.Clips[0].Key
	}
	_, err := b.Record(b.t.Context(), r)
	b.must(err)
}

// TestProblems: what fails is deferred, then set aside with the reason, and retried by a person; what is
// rejected is set aside at once. Nothing is assigned meanwhile.
func TestProblems(t *testing.T) {
	for _, of := range []Kind{Episode, Clip} {
		t.Run(string(of), func(t *testing.T) {
			b := newBench(t)
			key := map[Kind]string{Episode: b.curate(Episode, "e", 0, 0), Clip: b.curate(Clip, "c", 0, 0)}[of]
			for n := range failuresADay {
				b.pass()
				w := b.accept("r")
				b.problem(w, 1, of, Failed)
				b.pass()
				if len(b.sent) != 0 {
					t.Fatalf("assigned at once after failure %d", n+1)
				}
				b.clock = b.clock.Add(41 * time.Minute)
			}
			b.pass()
			if len(b.sent) != 0 {
				t.Fatal("assigned although it is set aside")
			}
			b.must(b.Retry(t.Context(), of, songs, key, by))
			err := b.Retry(t.Context(), of, songs, key, by)
			if !fault.Is(err, fault.Conflict) {
				t.Error("a second retry:", err)
			}
			b.pass()
			b.problem(b.accept("r"), 1, of, Rejected)
			b.pass()
			if len(b.sent) != 0 {
				t.Fatal("assigned although it is rejected")
			}
		})
	}
}

// TestExpiry: the pairs of a lost researcher come back; what it reports afterwards is stored, and does not
// touch the lease of another.
func TestExpiry(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 2, 0)
	b.curate(Clip, "c1", 1, 0)
	b.pass()
	lost := b.accept("r")
	b.clock = b.clock.Add(119 * time.Minute)
	b.report(lost, 0, false) // extends it to 30 minutes from now
	b.clock = b.clock.Add(29 * time.Minute)
	b.pass()
	if len(b.sent) != 0 {
		t.Fatal("assigned during the extension")
	}
	b.clock = b.clock.Add(2 * time.Minute)
	b.pass()
	other := b.accept("other")
	if len(other.Clips) != 1 || other.Clips[0].ID != "c1" {
		t.Fatalf("the clip without a result was not assigned: %+v", other.Clips)
	}
	b.report(lost, 1, true)
	l, err := b.Lease(t.Context(), other.Lease.ID)
	b.must(err)
	if l.Ended != 0 || l.Until != other.Lease.Until {
		t.Errorf("the lease of another was touched: %+v", l)
	}
	b.must(b.Revoke(t.Context(), other.Lease.ID, by))
	b.pass()
	if len(b.sent) != 0 {
		t.Error("researched pairs were assigned")
	}
	b.must(b.Pause(t.Context(), songs, by))
	b.must(b.Resume(t.Context(), songs, by))
	_, err = b.Curate(t.Context(), Curated{Project: songs, Kind: Clip, Source: "s", ID: "c0", Withdrawn: true,
		URL: "https://media.example.org/c0", Curated: millis(b.clock)}, by)
	b.must(err)
	_, err = b.Curate(t.Context(), Curated{Project: songs, Kind: Episode, Source: "s", ID: "e", Withdrawn: true,
		URL: "https://media.example.org/e", Curated: millis(b.clock)}, by)
	b.must(err)
}

// TestNewAnalysis: another version of the analysis makes all pairs due again; the leases and the results of
// the version before exclude none of them, and an earlier version does not come back.
func TestNewAnalysis(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 2, 0)
	b.curate(Clip, "c1", 1, 0)
	b.pass()
	old := b.accept("r")
	b.report(old, 0, false)
	apply := func(version string) error {
		return b.Apply(t.Context(), Project{Name: songs, Analysis: Analysis{Name: "any", Version: version}}, by)
	}
	b.must(apply("2"))
	b.pass()
	w := b.accept("other")
	if len(w.Clips) != 2 || w.Lease.Analysis != "any@2" {
		t.Fatalf("assigned: %+v", w)
	}
	b.report(old, 1, true) // of the version before: it is stored, and marks nothing
	l, err := b.Lease(t.Context(), old.Lease.ID)
	b.must(err)
	row, err := b.episodeRow(t.Context(), songs, old.Lease.Episode)
	b.must(err)
	if l.Why != Final || !row.researched.IsEmpty() || len(row.Held) != 1 {
		t.Errorf("the lease before: %+v; the episode: %+v %v", l, row.Held, row.researched)
	}
	err = apply("1")
	if !fault.Is(err, fault.Invalid) {
		t.Error("the first version again:", err)
	}
}

// TestOtherClip: a result of a clip that is not of the lease is stored, and does not count for the lease.
func TestOtherClip(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	for i := range 3 {
		b.curate(Clip, fmt.Sprint("c", i), 3-i, 0)
	}
	b.pass()
	w := b.accept("r")
	w.Clips[1].Key = Key("s", "c2")
	b.report(w, 0, false)
	if b.report(w, 1, true).Ended {
		t.Error("the lease ended although one of its clips has no result")
	}
	l, err := b.Lease(t.Context(), w.Lease.ID)
	b.must(err)
	if l.Stored != 1 || l.Ended != 0 {
		t.Errorf("the lease: %+v", l)
	}
}

// TestForeignReport: a report of another researcher than the one who accepted the lease is stored, and does
// not touch the lease.
func TestForeignReport(t *testing.T) {
	b := newBench(t)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c", 0, 0)
	b.pass()
	w := b.accept("other")
	if b.report(w, 0, true).Ended {
		t.Error("the lease of another was ended")
	}
	l, err := b.Lease(t.Context(), w.Lease.ID)
	b.must(err)
	if l.Stored != 0 || l.Ended != 0 {
		t.Errorf("the lease of another was touched: %+v", l)
	}
}
