package researcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// TestAllResearched: two researchers with a cache in common research each pair once, whatever the order in which
// their reports are recorded; each recording is downloaded once.
func TestAllResearched(t *testing.T) {
	for _, reverse := range []bool{false, true} {
		b := newBench(t, 4, 5, 2)
		b.reverse = reverse
		one, two := b.researcher("one", nil), b.researcher("two", nil)
		if !reverse {
			one.Concurrency = 2
		} else {
			two = nil // the reversed reports are those of one
		}
		all := slices.DeleteFunc([]*Researcher{one, two}, func(r *Researcher) bool { return r == nil })
		b.runs(4, 20, all...)
		if again := b.complete(4, 5); again != 0 {
			t.Errorf("reversed %v: %d pairs were researched twice", reverse, again)
		}
		for i := range 4 { // the first result of a work item has how the episode sounds
			k, err := b.Get(t.Context(), research.Episode, songs, research.Key("s", fmt.Sprint("e",
				i)))
			b.must(err)
			if w := k.Waveform; w == nil || w.Length != 50e9 ||
				string(w.Peaks[10*(i%2):][:3]) != clipText(i % 2)[:3] {
				t.Errorf("episode %d sounds like %+v", i, w)
			}
		}
		for path, n := range b.got {
			if n != 1 {
				t.Errorf("%s was requested %d times", path, n)
			}
		}
		present, err := b.Present(t.Context(), songs)
		if present != 0 || err != nil {
			t.Errorf("%d are present after they left; %v", present, err)
		}
	}
}

// TestLost: a request or an answer that is lost, at any call, costs nothing but time: each pair is researched once, and
// no lease waits for its end.
func TestLost(t *testing.T) {
	for n := 1; n <= 12; n++ {
		for _, lost := range []string{"before", "after"} {
			b := newBench(t, 2, 3, 2)
			b.lost = map[int]string{n: lost, n + 1: lost}
			b.runs(2, 6, b.researcher("one", nil))
			if again := b.complete(2, 3); again != 0 {
				t.Errorf("call %d lost %s: %d pairs were researched twice", n, lost, again)
			}
			leases, _, err := b.ended()
			if leases != 4 || err != nil {
				t.Errorf("call %d lost %s: %d leases have ended, want 4; %v", n, lost, leases, err)
			}
		}
	}
}

// ended counts the leases that have ended, and lists why.
func (b *bench) ended() (n int, why []string, err error) {
	for id := range b.ids + 1 {
		l, failed := b.Lease(context.Background(), fmt.Sprintf("id%05d", id))
		if fault.Is(failed, fault.NotFound) {
			continue
		}
		err = errors.Join(err, failed)
		if l.Ended > 0 {
			n++
			why = append(why, l.Why)
		}
	}
	return n, why, err
}

// TestCrash: a researcher that is killed at any call, before or after it was answered, loses no result that it had
// found: another with its folder delivers it. What it had not done is done after its lease has ended.
func TestCrash(t *testing.T) {
	for n := 2; n <= 8; n++ {
		b := newBench(t, 1, 4, 4)
		ctx, kill := context.WithCancel(t.Context())
		b.events = map[int]func(){n: kill}
		err := b.researcher("one", nil).Run(ctx, ctx)
		if !errors.Is(err, context.Canceled) {
			t.Fatalf("killed at call %d: %v", n, err)
		}
		b.events = nil
		b.later(3 * time.Hour)
		b.runs(1, 4, b.researcher("two", nil))
		if again := b.complete(1, 4); again != 0 {
			t.Logf("killed at call %d: %d second opinions", n, again)
		}
		left, err := (&Reports{Dir: b.dir + "/reports", Name: "x", Now: b.now}).files("", true)
		if len(left) != 0 || err != nil {
			t.Errorf("killed at call %d: reports are left: %v %v", n, left, err)
		}
	}
}

// TestWindingDown: the clip at hand is finished, and the rest given back at once.
func TestWindingDown(t *testing.T) {
	b := newBench(t, 1, 5, 5)
	ctx := t.Context()
	stop, wind := context.WithCancel(ctx)
	b.must(b.researcher("one", func(clip string) {
		if clip == clipText(1) {
			wind()
		}
	}).Run(ctx, stop))
	n, why, err := b.ended()
	if got := b.results(1); got != 2 || n != 1 || why[0] != research.Final || err != nil {
		t.Errorf("%d results; %d leases have ended, %v; %v", got, n, why, err)
	}
	b.runs(1, 5, b.researcher("two", nil))
	if again := b.complete(1, 5); again != 0 {
		t.Errorf("%d pairs were researched twice", again)
	}
}

// knowsOfEnded reports whether an answer to a report has said that its lease has ended.
func (r *Researcher) knowsOfEnded() bool { r.mu.Lock(); defer r.mu.Unlock(); return len(r.ended) > 0 }

// TestExpired: a lease ends while its researcher hangs. What it finds afterwards is stored; the rest is left to the
// researcher that has it now.
func TestExpired(t *testing.T) {
	b := newBench(t, 1, 5, 5)
	var clips []string
	var one *Researcher
	one = b.researcher("one", func(clip string) {
		clips = append(clips, clip)
		for len(clips) == 2 && b.results(1) < 1 { // another goroutine sends the reports; nothing tells when
			time.Sleep(time.Millisecond)
		}
		if len(clips) == 2 {
			b.later(3 * time.Hour)
			_, err := b.Pass(t.Context(), songs, b.now().Add(time.Minute)) // ends the lease, and assigns the rest
			b.must(err)
		}
		for len(clips) == 3 && !one.knowsOfEnded() {
			time.Sleep(time.Millisecond) // likewise the answers to them
		}
	})
	b.runs(1, 5, one)
	if again := b.complete(1, 5); again > 2 {
		t.Errorf("%d pairs were researched twice", again)
	}
}

// problems are what is reported of the clips of the first episode, by clip, and of the episode.
func (b *bench) problems(clips int) []string {
	found := b.pairs(1)
	out := []string{}
	for k := range clips {
		out = append(out, found["e0 "+research.Key("s", fmt.Sprint("c", k))]...)
	}
	return append(out, found["e0 "]...)
}

// TestProblems: a clip that fails does not keep the others back, an episode that fails ends its work item; the reason
// is the cause.
func TestProblems(t *testing.T) {
	b := newBench(t, 1, 5, 5)
	b.files["c1"], b.files["c2"] = "bad", "panic"
	delete(b.files, "c3")
	b.runs(1, 5, b.researcher("one", nil))
	want := []string{"0 ", "clip rejected: it is bad", "clip failed: the analysis failed: out of range",
		"clip failed: " + b.media.URL + "/c3 answered 404 Not Found", "40 "}
	if got := b.problems(5); !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}

	for text, want := range map[string]string{"bad": "episode rejected: it is bad",
		"": "episode failed: " + "URL/e0 answered 404 Not Found"} {
		b := newBench(t, 1, 2, 2)
		b.files["e0"] = text
		if text == "" {
			delete(b.files, "e0")
		}
		b.runs(1, 1, b.researcher("one", nil))
		got := b.problems(2)
		n, why, err := b.ended()
		wrong := len(got) != 1 || strings.ReplaceAll(got[0], b.media.URL, "URL") != want
		if wrong || n != 1 || why[0] != research.Final {
			t.Errorf("%q, want %q; leases: %v %v", got, want, why, err)
		}
	}
}

// TestRefused: a report that is refused keeps no other back, ends the researcher with its cause, and is sent again by
// the next one. A key that is refused ends it at once.
func TestRefused(t *testing.T) {
	b := newBench(t, 1, 3, 3)
	r := b.researcher("one", nil)
	r.Once = true
	r.Server = refusing{direct{b, "one"}, fault.New(fault.Invalid, "not now")}
	err := r.Run(t.Context(), t.Context())
	if !fault.Is(err, fault.Invalid) || !strings.Contains(err.Error(), "not now") || b.results(1) != 2 {
		t.Errorf("%v; %d results", err, b.results(1))
	}
	b.runs(1, 3, b.researcher("two", nil))
	if again := b.complete(1, 3); again != 0 {
		t.Errorf("%d pairs were researched twice", again)
	}

	denied := b.researcher("three", nil)
	b.events = map[int]func(){}
	denied.Server = denying{direct{b, "three"}}
	err = denied.Run(t.Context(), t.Context())
	if !fault.Is(err, fault.Denied) {
		t.Error("a key that is refused:", err)
	}
}

// refusing refuses the second result of a lease.
type refusing struct {
	direct
	err error
}

func (a refusing) Report(ctx context.Context, r Report) (Receipt, error) {
	if r.Sequence == 2 {
		return Receipt{}, a.err
	}
	return a.direct.Report(ctx, r)
}

type denying struct{ direct }

func (denying) Heartbeat(context.Context, int) (time.Duration, error) {
	return 0, fault.New(fault.Denied, "the role is another one")
}

// TestBroken: a disk that cannot be written to is no fault of the recordings: the work item is given back, and the
// researcher ends with the cause.
func TestBroken(t *testing.T) {
	b := newBench(t, 1, 2, 2)
	r := b.researcher("one", nil)
	r.Cache.Dir = b.dir + "/file/media"
	b.must(os.WriteFile(b.dir+"/file", nil, 0o600))
	err := r.Run(t.Context(), t.Context())
	n, why, _ := b.ended()
	if !fault.Is(err, fault.Unavailable) || !strings.Contains(err.Error(), "not a directory") || n != 1 ||
		why[0] != research.Final || b.results(1) != 0 {
		t.Errorf("%v; leases: %v; %d results", err, why, b.results(1))
	}
}
