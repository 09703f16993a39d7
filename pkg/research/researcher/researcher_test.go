package researcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"archivist/pkg/kernel/backoff"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/fetch"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/pkg/research/analysis"
)

const songs = "songs"

// bytewise is an analysis of bytes: a clip is where its bytes are. Clips and episodes that begin with "bad" are
// rejected, "panic" panics.
type bytewise struct {
	during func(clip string) // is called in the middle of a search
}

func (bytewise) Check([]byte) error { return nil }

func (a bytewise) Open(_ context.Context, path string, _ []byte) (analysis.Session, error) {
	data, err := os.ReadFile(path)
	if bytes.HasPrefix(data, []byte("bad")) {
		return nil, &analysis.Rejected{Of: analysis.Episode, Reason: "it is\nbad"}
	}
	return &bytesOf{a, data}, err
}

type bytesOf struct {
	bytewise
	data []byte
}

func (*bytesOf) Close() error { return nil }

// long is a session of a recording of some length.
type long struct {
	bytesOf
	is time.Duration
}

func (s long) Duration() time.Duration { return s.is }

// TestWaveformOfLongRecording: what a report cannot have is left out, so that its result is stored.
func TestWaveformOfLongRecording(t *testing.T) {
	for is, sent := range map[time.Duration]bool{100 * time.Hour: true, 100*time.Hour + 1: false, 0: false} {
		w := new(item).waveform(&long{bytesOf{data: []byte("abc")}, is})
		if (w != nil) != sent {
			t.Errorf("of %s: %+v", is, w)
		}
	}
}

// Duration and Loudness are a second for each byte, and the bytes.
func (s *bytesOf) Duration() time.Duration { return time.Duration(len(s.data)) * time.Second }

func (s *bytesOf) Loudness() []byte { return s.data }

func (s *bytesOf) Clip(ctx context.Context, path string, progress func(float64)) (r analysis.Result, err error) {
	clip, err := os.ReadFile(path)
	switch {
	case err != nil:
		return r, err
	case bytes.HasPrefix(clip, []byte("bad")):
		return r, &analysis.Rejected{Of: analysis.Clip, Reason: "it is bad"}
	case bytes.HasPrefix(clip, []byte("panic")):
		panic("out of range")
	}
	progress(0.5)
	if s.during != nil {
		s.during(string(clip))
	}
	for from := 0; ; {
		n := bytes.Index(s.data[from:], clip)
		if n < 0 || ctx.Err() != nil {
			return r, ctx.Err()
		}
		r.Hits = append(r.Hits, analysis.Hit{Offset: int64(from + n), Length: int64(len(clip)), Score: 1})
		from += n + 1
	}
}

// bench is an Archivist in the process, and a server of recordings.
type bench struct {
	*research.Store
	t     *testing.T
	media *httptest.Server
	dir   string

	mu      sync.Mutex
	clock   time.Time
	ids     int
	queue   []research.Message
	reports []research.Report // that the server has taken and not yet recorded
	reverse bool              // they are recorded in the reverse order, when the final one is there
	files   map[string]string
	calls   int
	lost    map[int]string    // by the number of a call: "before" or "after" it was answered
	events  map[int]func()    // by the number of a call, before it
	taken   map[string]string // leases, by token
	got     map[string]int    // requests for recordings
}

// newBench makes a project with episodes and clips: episode i has clip k at the byte 10·k if i+k is even.
func newBench(t *testing.T, episodes, clips, maxClips int) *bench {
	b := &bench{t: t, clock: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), files: map[string]string{}, dir: t.TempDir(),
		got: map[string]int{}, taken: map[string]string{}}
	b.media = httptest.NewServer(http.HandlerFunc(b.serve))
	t.Cleanup(b.media.Close)
	tab := tabletest.Open(t)
	b.Store = &research.Store{Table: tab, Leases: &lease.Store{Table: tab, Now: b.now, NewID: b.newID}, Now: b.now,
		NewID: b.newID, Times: research.Default, Projects: []string{songs},
		Analyses: map[string]func([]byte) error{"bytewise": func([]byte) error { return nil }},
		Send: func(_ context.Context, m research.Message) error {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.queue = append(b.queue, m)
			return nil
		}}
	b.must(b.Apply(t.Context(), research.Project{Name: songs, MaxClips: maxClips,
		Analysis: research.Analysis{Name: "bytewise", Version: "1"}}, by))
	for i := range episodes {
		text := []byte(strings.Repeat(".", 10*clips))
		for k := range clips {
			if (i+k)%2 == 0 {
				copy(text[10*k:], clipText(k))
			}
		}
		b.curate(research.Episode, fmt.Sprint("e", i), string(text))
	}
	for k := range clips {
		b.curate(research.Clip, fmt.Sprint("c", k), clipText(k))
	}
	return b
}

func clipText(k int) string { return fmt.Sprintf("<%04d>", k) }

var by = research.By{Actor: "ann", Reason: "a test"}

func (b *bench) must(err error) {
	b.t.Helper()
	if err != nil {
		b.t.Fatal(err)
	}
}

func (b *bench) now() time.Time { b.mu.Lock(); defer b.mu.Unlock(); return b.clock }

func (b *bench) newID() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.ids++
	return fmt.Sprintf("id%05d", b.ids)
}

// later moves the clock.
func (b *bench) later(d time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.clock = b.clock.Add(d)
}

func (b *bench) serve(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	text, ok := b.files[strings.TrimPrefix(r.URL.Path, "/")]
	b.got[r.URL.Path]++
	b.mu.Unlock()
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("ETag", fmt.Sprintf("%q", text))
	http.ServeContent(w, r, "", time.Time{}, strings.NewReader(text))
}

// curate adds an episode or clip with its recording.
func (b *bench) curate(kind research.Kind, id, text string) {
	b.t.Helper()
	b.files[id] = text
	priority := 1000 - len(b.files)
	_, err := b.Curate(b.t.Context(), research.Curated{Project: songs, Kind: kind, Source: "s", ID: id, Title: id,
		Priority: &priority, URL: b.media.URL + "/" + id, Curated: b.now().UnixMilli()}, by)
	b.must(err)
}

// direct is the server of one researcher, by calls.
type direct struct {
	*bench
	name string
}

// call makes a call, or loses the request or the answer.
func (d direct) call(f func() error) error {
	d.mu.Lock()
	d.calls++
	lost, happens := d.lost[d.calls], d.events[d.calls]
	d.mu.Unlock()
	if happens != nil {
		happens()
	}
	if lost == "before" {
		return fault.New(fault.Unavailable, "the request was lost")
	}
	err := f()
	if lost == "after" {
		return fault.New(fault.Unavailable, "the answer was lost")
	}
	return err
}

func (d direct) Heartbeat(ctx context.Context, capacity int) (time.Duration, error) {
	return d.Times.Renewal, d.call(func() error {
		return d.bench.Heartbeat(ctx, songs, research.Researcher{Name: d.name, Capacity: capacity})
	})
}

func (d direct) Leave(ctx context.Context) error {
	return d.call(func() error { return d.bench.Leave(ctx, songs, d.name) })
}

// Next makes a pass, and receives a message. The same token is given the same lease.
func (d direct) Next(ctx context.Context, token string) (w *Work, err error) {
	err = d.call(func() error {
		_, err := d.Pass(ctx, songs, d.now().Add(time.Minute))
		for err == nil && w == nil {
			d.mu.Lock()
			id, again := d.taken[token]
			if !again && len(d.queue) > 0 {
				id, d.queue = d.queue[0].Lease, d.queue[1:]
				d.taken[token] = id
			}
			d.mu.Unlock()
			if id == "" {
				return nil
			}
			w, err = d.accept(ctx, id, token)
			if fault.Is(err, fault.Conflict) && !again {
				err = nil
				delete(d.taken, token)
			}
		}
		return err
	})
	if err != nil {
		w = nil
	}
	return w, err
}

func (d direct) accept(ctx context.Context, lease, token string) (*Work, error) {
	w, err := d.bench.Accept(ctx, research.Acceptance{Lease: lease, Researcher: d.name, Token: token})
	if err != nil {
		return nil, err
	}
	of := func(s research.Subject) Subject { return Subject{s.Key, s.Title, Media{s.URL, s.Size, s.SHA256}} }
	out := &Work{Lease: w.Lease.ID, Project: w.Lease.Project, Analysis: w.Lease.Analysis, Method: w.Analysis.Name,
		Episode: of(w.Episode)}
	for _, c := range w.Clips {
		out.Clips = append(out.Clips, of(c))
	}
	return out, nil
}

func (d direct) Accept(ctx context.Context, lease, token string) (w *Work, err error) {
	err = d.call(func() error {
		w, err = d.accept(ctx, lease, token)
		return err
	})
	return w, err
}

func (d direct) Report(ctx context.Context, r Report) (receipt Receipt, err error) {
	err = d.call(func() error {
		stored := research.Report(r)
		l, err := d.Lease(ctx, r.Lease)
		receipt.Ended = err == nil && l.Ended > 0
		return errors.Join(stored.Check(), d.record(ctx, stored))
	})
	return receipt, err
}

// record is the queue of completed work.
func (d direct) record(ctx context.Context, r research.Report) error {
	if !d.reverse {
		_, err := d.Record(ctx, r)
		return err
	}
	d.mu.Lock()
	d.reports = append(d.reports, r)
	all := d.reports
	if r.Final {
		d.reports = nil
	}
	d.mu.Unlock()
	for i := len(all) - 1; r.Final && i >= 0; i-- {
		_, err := d.Record(ctx, all[i])
		if err != nil {
			return err
		}
	}
	return nil
}

// researcher is a program with that name. Its folder is that of all.
func (b *bench) researcher(name string, during func(string)) *Researcher {
	d := direct{b, name}
	client := fetch.New(fetch.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
		func() float64 { return 0 })
	b.t.Cleanup(client.HTTP.CloseIdleConnections)
	return &Researcher{Name: name, Concurrency: 1, Server: d, Source: Next{d},
		Cache:    &Cache{Dir: b.dir + "/media", Limit: 1 << 20, Client: client, Now: b.now},
		Reports:  &Reports{Dir: b.dir + "/reports", Name: name, Now: b.now},
		Analyses: map[string]analysis.Analysis{"bytewise": bytewise{during}}, Now: b.now, NewID: b.newID,
		Jitter: func() float64 { return 0 }, Log: slog.New(slog.DiscardHandler),
		Wait: func(ctx context.Context, d time.Duration) error {
			if d >= idle/3 {
				<-ctx.Done() // the presence needs no renewal while the clock stands
				return ctx.Err()
			}
			return backoff.Sleep(ctx, time.Millisecond)
		}}
}

// pairs are the hits that are stored of each pair, as text, by episode and clip.
func (b *bench) pairs(episodes int) map[string][]string {
	out := map[string][]string{}
	for i := range episodes {
		key := research.Key("s", fmt.Sprint("e", i))
		results, _, err := b.Results(context.Background(), songs, key, "")
		b.must(err)
		for _, r := range results {
			text := ""
			for _, h := range r.Hits {
				text += fmt.Sprint(h.Offset, " ")
			}
			if r.Problem != nil {
				text = fmt.Sprintf("%s %s: %s", r.Problem.Of, r.Problem.Kind, r.Problem.Reason)
			}
			pair := fmt.Sprintf("e%d %s", i, r.Clip)
			out[pair] = append(out[pair], text)
		}
	}
	return out
}

// complete checks that each pair is researched, and right. It returns how many were researched again.
func (b *bench) complete(episodes, clips int) (again int) {
	b.t.Helper()
	found := b.pairs(episodes)
	for i := range episodes {
		for k := range clips {
			want := ""
			if (i+k)%2 == 0 {
				want = fmt.Sprint(10*k, " ")
			}
			got := found[fmt.Sprintf("e%d %s", i, research.Key("s", fmt.Sprint("c", k)))]
			again += len(got) - 1
			wrong := func(text string) bool { return text != want }
			if len(got) == 0 || slices.ContainsFunc(got, wrong) {
				b.t.Errorf("episode %d, clip %d: %q, want %q", i, k, got, want)
			}
		}
	}
	return again
}

// results is how many pairs have a result.
func (b *bench) results(episodes int) int { return len(b.pairs(episodes)) }

// runs runs researchers until so many results are stored, and winds them down.
func (b *bench) runs(episodes, results int, all ...*Researcher) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	stop, wind := context.WithCancel(ctx)
	var group sync.WaitGroup
	for _, r := range all {
		group.Go(func() {
			err := r.Run(ctx, stop)
			if err != nil {
				b.t.Errorf("%s: %v", r.Name, err)
			}
		})
	}
	for ctx.Err() == nil && b.results(episodes) < results {
		_ = backoff.Sleep(ctx, 2*time.Millisecond)
	}
	wind()
	group.Wait()
	if ctx.Err() != nil {
		b.t.Fatalf("there are %d results, want %d", b.results(episodes), results)
	}
}
