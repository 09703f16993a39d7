package research

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
)

// sound is how a recording of ten seconds sounds, in parts of one loudness.
func sound(peak byte) *Waveform {
	return &Waveform{Length: 10_000_000_000, Peaks: bytes.Repeat([]byte{peak}, 4)}
}

// hears lets a researcher take the next work item, and report with it how the episode sounds; the
// report names another one, if that is not "".
func (b *bench) hears(name, as string, w *Waveform) {
	b.t.Helper()
	b.present(name)
	b.pass()
	work, err := b.Next(b.t.Context(), songs, Acceptance{Researcher: name, Token: b.NewID()},
		sentBox{b})
	b.must(err)
	if work == nil {
		b.t.Fatalf("%s gets no work item", name)
	}
	r := Report{Project: songs, Lease: work.Lease.ID, Researcher: name,
		Analysis: work.Lease.Analysis, Episode: work.Lease.Episode, Sequence: 1,
		Clip: work.Clips[0].Key, Waveform: w, Final: true, Count: 1}
	if as != "" {
		r.Researcher = as
	}
	_, err = b.Record(b.t.Context(), r)
	b.must(err)
	if as != "" { // else nobody else gets the rest
		b.must(b.Revoke(b.t.Context(), work.Lease.ID, by))
	}
	all, _, err := b.Results(b.t.Context(), songs, work.Lease.Episode, "")
	b.must(err)
	for _, is := range all {
		if is.Waveform != nil {
			b.t.Error("the result has the waveform, too")
		}
	}
}

// sounds checks how the episode "e" sounds: the loudness of its parts, -1 if that is not known.
func (b *bench) sounds(peak int) {
	b.t.Helper()
	k, err := b.Get(b.t.Context(), Episode, songs, Key("s", "e"))
	b.must(err)
	is := -1
	if k.Waveform != nil {
		is = int(k.Waveform.Peaks[0])
	}
	if is != peak {
		b.t.Errorf("its loudness is %d, should be %d", is, peak)
	}
}

// TestWaveform: the first one that a researcher reports of its own work item is kept, until the
// episode has another recording. One that differs makes no other result.
func TestWaveform(t *testing.T) {
	b := compared(t, 1, 1)
	b.curate(Episode, "e", 0, 0)
	for _, id := range []string{"c0", "c1", "c2", "c3"} {
		b.curate(Clip, id, 0, 0)
	}
	b.sounds(-1)
	b.hears("one", "two", sound(7)) // of a work item that two has not accepted
	b.sounds(-1)
	b.hears("one", "", sound(1))
	b.hears("two", "", sound(2))
	b.sounds(1)

	moved := Curated{Project: songs, Kind: Episode, Source: "s", ID: "e",
		URL: "https://media.example.org/other", Curated: millis(b.clock) + 1}
	_, err := b.Curate(t.Context(), moved, by)
	b.must(err)
	b.sounds(-1)
	b.hears("two", "", sound(2))
	b.sounds(2)
	st, err := b.Status(t.Context(), songs)
	b.must(err)
	if st.Researched != 4 {
		t.Errorf("%+v", st)
	}
}

// TestWaveformQuorum: as many researchers as the quorum have to say the same, and one alone cannot
// by saying it twice.
func TestWaveformQuorum(t *testing.T) {
	b := compared(t, 2, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 0, 0)
	b.curate(Clip, "c1", 0, 0)
	b.hears("one", "", sound(1))
	b.hears("one", "", sound(1))
	b.sounds(-1)
	b.hears("two", "", sound(2))
	b.sounds(-1)
	b.hears("two", "", sound(1))
	b.sounds(1)
}

// TestHostileWaveform: one that cannot be kept refuses its report.
func TestHostileWaveform(t *testing.T) {
	good := Report{Project: songs, Lease: "l", Researcher: "r", Analysis: "any@1",
		Episode:  Key("s", "e"),
		Sequence: 1, Clip: Key("s", "c"), Waveform: sound(1)}
	if err := good.Check(); err != nil {
		t.Error(err)
	}
	for says, w := range map[string]*Waveform{
		"waveform.peaks: found 0":    {Length: 1},
		"waveform.peaks: found 1001": {Length: 1, Peaks: make([]byte, 1001)},
		"waveform.length: found 0":   {Peaks: []byte{1}},
		"waveform.length: found -1":  {Length: -1, Peaks: []byte{1}},
		"waveform.length: found 36":  {Length: maxOffset + 1, Peaks: []byte{1}},
	} {
		r := good
		r.Waveform = w
		if err := r.Check(); !fault.Is(err, fault.Invalid) || !strings.HasPrefix(err.Error(),
			says) {
			t.Errorf("%s: %v", says, err)
		}
	}
	alone := Report{Project: songs, Lease: "l", Researcher: "r", Episode: Key("s", "e"),
		Final:    true,
		Waveform: sound(1)}
	if err := alone.Check(); !fault.Is(err, fault.Invalid) {
		t.Error(err)
	}
}

// TestWaveformOfAnotherRecording: who has a work item from before the episode had this recording
// does not say how it sounds.
func TestWaveformOfAnotherRecording(t *testing.T) {
	b := compared(t, 1, 1)
	b.curate(Episode, "e", 0, 0)
	b.curate(Clip, "c0", 0, 0)
	b.curate(Clip, "c1", 0, 0)
	b.present("one")
	b.pass()
	work, err := b.Next(t.Context(), songs, Acceptance{Researcher: "one", Token: b.NewID()},
		sentBox{b})
	b.must(err)
	b.clock = b.clock.Add(time.Second)
	_, err = b.Curate(t.Context(), Curated{Project: songs, Kind: Episode, Source: "s", ID: "e",
		URL: "https://media.example.org/other", Curated: millis(b.clock)}, by)
	b.must(err)
	_, err = b.Record(t.Context(), Report{Project: songs, Lease: work.Lease.ID, Researcher: "one",
		Analysis: work.Lease.Analysis, Episode: work.Lease.Episode, Sequence: 1,
		Clip: work.Clips[0].Key, Waveform: sound(1), Final: true, Count: 1})
	b.must(err)
	b.sounds(-1)
	b.hears("one", "", sound(2))
	b.sounds(2)
}
