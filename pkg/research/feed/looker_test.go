package feed

import (
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
)

// publisher is a server of a feed.
type publisher struct {
	*httptest.Server
	mu      sync.Mutex
	items   []string
	status  int // if it is not 0
	after   string
	asked   int
	during  func() // if it is not nil, is called in the middle of the answer
	version int
}

func newPublisher(t *testing.T) *publisher {
	p := &publisher{version: 1}
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.asked++
		if during := p.during; during != nil {
			p.during = nil
			during()
		}
		tag := fmt.Sprintf(`"%d"`, p.version)
		switch {
		case r.URL.Path == "/old":
			http.Redirect(w, r, "/feed", http.StatusMovedPermanently)
		case p.status != 0:
			w.Header().Set("Retry-After", p.after)
			w.WriteHeader(p.status)
		case r.Header.Get("If-None-Match") == tag:
			w.WriteHeader(http.StatusNotModified)
		default:
			w.Header().Set("ETag", tag)
			_, _ = io.WriteString(w, rss(p.items...))
		}
	}))
	t.Cleanup(p.Close)
	return p
}

// publish changes the feed.
func (p *publisher) publish(items ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.items = items
	p.version++
}

func (p *publisher) answer(status int, after string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status, p.after = status, after
}

// studio is a project with a feed, and a clock.
type studio struct {
	*Looker
	*publisher
	t     *testing.T
	clock atomic.Int64
	calls *calls
}

const songs = "songs"

func newStudio(t *testing.T) *studio {
	s := &studio{t: t, publisher: newPublisher(t), calls: &calls{}}
	s.clock.Store(today.UnixMilli())
	s.Looker = s.process(tabletest.Through(tabletest.New(), s.calls.do))
	s.apply(s.URL + "/feed")
	return s
}

// process is a Looker of a process that knows nothing yet.
func (s *studio) process(tab *table.Table) *Looker {
	var ids atomic.Int64
	id := fmt.Sprintf("%p", &ids)
	newID := func() string { return fmt.Sprint(id, "-", ids.Add(1)) }
	now := func() time.Time { return time.UnixMilli(s.clock.Load()) }
	r := reader()
	r.Now = now
	return &Looker{Reader: r, Table: tab, Now: now, NewID: newID, Log: slog.New(slog.DiscardHandler),
		Research: &research.Store{Table: tab, Leases: &lease.Store{Table: tab, Now: now, NewID: newID}, Now: now,
			NewID: newID, Times: research.Default, Projects: []string{"other", songs},
			Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }}}}
}

// apply configures the feeds of the project.
func (s *studio) apply(urls ...string) {
	s.t.Helper()
	p := research.Project{Name: songs, Analysis: research.Analysis{Name: "any", Version: "1"}}
	for _, url := range urls {
		p.Feeds = append(p.Feeds, research.Feed{URL: url, Source: "show",
			Kind: string(research.Episode), EveryMinutes: 60})
	}
	err := s.Research.Apply(s.t.Context(), p, research.By{Actor: "ann", Reason: "a test"})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *studio) pass(d time.Duration) { s.clock.Add(d.Milliseconds()) }

// tick is a tick of the schedule. It returns what is known of the only feed then.
func (s *studio) tick() State {
	s.t.Helper()
	err := s.Tick(s.t.Context(), s.Now().Add(Budget))
	if err != nil {
		s.t.Fatal(err)
	}
	return s.state()
}

func (s *studio) state() State {
	s.t.Helper()
	all, err := s.Feeds(s.t.Context(), songs)
	if err != nil || len(all) != 1 {
		s.t.Fatalf("%+v, %v", all, err)
	}
	return all[0]
}

// history are the events of an episode.
func (s *studio) history(id string) []event.Row {
	s.t.Helper()
	subject := event.Subject{Type: event.Episode, ID: songs + "/" + research.Key("show", id)}
	rows, _, err := event.Page(s.t.Context(), s.Table, subject, "")
	if err != nil {
		s.t.Fatal(err)
	}
	return rows
}

// events are the types of the events of an episode.
func (s *studio) events(id string) string {
	s.t.Helper()
	var all []string
	for _, r := range s.history(id) {
		all = append(all, r.Type)
	}
	return strings.Join(all, " ")
}

// newest is what is known of an episode now.
func (s *studio) newest(id string) string {
	s.t.Helper()
	rows := s.history(id)
	return rows[len(rows)-1].Detail
}

// TestTick: what is new or changed becomes an episode once, at the times of the schedule.
func TestTick(t *testing.T) {
	s := newStudio(t)
	one, two := item("1", "one", "1.mp3", "1 Nov 2026 10:00:00 GMT"), item("2", "two", "2.mp3", "")
	s.publish(one, two, "<item/>")
	first := s.tick()
	if first.Entries != 2 || first.Undated != 1 || len(first.Skipped) != 1 || first.Problem != "" ||
		first.Next != today.Add(time.Hour).UnixMilli() || first.Changed != today.UnixMilli() {
		t.Errorf("%+v", first)
	}
	if got := s.events("1") + ", " + s.events("2"); got != "episode.curated, episode.curated" {
		t.Fatal(got)
	}
	s.pass(59 * time.Minute)
	s.tick()
	if s.asked != 1 {
		t.Errorf("%d requests before it is due", s.asked)
	}
	s.pass(time.Minute)
	second := s.tick()
	if s.asked != 2 || second.Changed != first.Changed || second.Entries != 2 || len(second.Skipped) != 1 ||
		second.Read != today.Add(time.Hour).UnixMilli() {
		t.Errorf("unchanged: %+v", second)
	}
	// The same entries in another order, with one that has another title, and one more.
	s.publish(item("3", "three", "3.mp3", ""), item("2", "TWO", "2.mp3", ""), one)
	s.pass(time.Hour)
	if third := s.tick(); third.Entries != 3 || third.Changed != third.Looked {
		t.Errorf("changed: %+v", third)
	}
	for id, want := range map[string]string{"1": "episode.curated", "2": "episode.curated episode.curated",
		"3": "episode.curated"} {
		if got := s.events(id); got != want {
			t.Errorf("%s: %s", id, got)
		}
	}
	// The feed lists only the newest: that is no reason to withdraw the others. What it says again is new.
	s.publish(item("2", "two", "2.mp3", ""))
	s.pass(time.Hour)
	s.tick()
	if s.events("1") != "episode.curated" || strings.Count(s.events("2"), "curated") != 3 {
		t.Errorf("%s, %s", s.events("1"), s.events("2"))
	}
}

// TestFailures: a feed that fails says why, and is asked less and less often, as its server asks.
func TestFailures(t *testing.T) {
	s := newStudio(t)
	s.publish(item("1", "one", "1.mp3", ""))
	s.tick()
	var waits []time.Duration
	s.answer(500, "")
	s.pass(time.Hour)
	for range 10 {
		state := s.tick()
		waits = append(waits, time.UnixMilli(state.Next).Sub(s.Now()))
		if !strings.Contains(state.Problem, "/feed answered 500") || state.Entries != 1 {
			t.Fatalf("%+v", state)
		}
		s.clock.Store(state.Next)
	}
	if got := fmt.Sprint(waits); got != "[5m0s 10m0s 20m0s 40m0s 1h20m0s 2h40m0s 5h20m0s 10h40m0s 21h20m0s 24h0m0s]" {
		t.Error(got)
	}
	for _, c := range []struct {
		status int
		after  string
		want   time.Duration
		gone   bool
	}{{429, "172800", 48 * time.Hour, false}, {503, "100000000", goneWait, false}, {410, "", goneWait, true}} {
		s.answer(c.status, c.after)
		state := s.tick()
		if wait := time.UnixMilli(state.Next).Sub(s.Now()); wait != c.want || state.Gone != c.gone {
			t.Errorf("%d: %s, %+v", c.status, wait, state)
		}
		s.clock.Store(state.Next)
	}
	s.answer(0, "")
	if state := s.tick(); state.Problem != "" || state.Failures != 0 || state.Gone || state.Entries != 1 {
		t.Errorf("afterwards: %+v", state)
	}
	if s.events("1") != "episode.curated" {
		t.Error(s.events("1"))
	}
}

// TestMovedFeed: where a feed is now is said, and the feed is still read by its configured address.
func TestMovedFeed(t *testing.T) {
	s := newStudio(t)
	s.publish(item("1", "one", "1.mp3", ""))
	s.apply(s.URL + "/old")
	if state := s.tick(); state.Moved != s.URL+"/feed" || state.Entries != 1 {
		t.Errorf("%+v", state)
	}
	s.pass(time.Hour)
	s.apply(s.URL + "/feed")
	if state := s.tick(); state.Moved != "" || state.Entries != 1 {
		t.Errorf("%+v", state)
	}
	rows, err := s.rows(t.Context(), songs)
	if err != nil || len(rows) != 1 {
		t.Errorf("rows of feeds that are not configured any more: %d, %v", len(rows), err)
	}
}

// TestSoon: a person makes a feed due.
func TestSoon(t *testing.T) {
	s := newStudio(t)
	s.answer(410, "")
	state := s.tick()
	s.answer(0, "")
	s.publish(item("1", "one", "1.mp3", ""))
	err := s.Soon(t.Context(), songs, state.Key)
	if err != nil {
		t.Fatal(err)
	}
	state = s.tick()
	if state.Gone || state.Entries != 1 {
		t.Errorf("%+v", state)
	}
	err = s.Soon(t.Context(), songs, "none")
	if !fault.Is(err, fault.NotFound) {
		t.Error(err)
	}
}

// TestTwoLooks: of two looks at once one has the claim; the other does nothing. A claim whose process died
// ends, and what a slow process finds then does not count.
func TestTwoLooks(t *testing.T) {
	s := newStudio(t)
	s.publish(item("1", "one", "1.mp3", ""))
	other := s.process(s.Table)
	s.during = func() {
		err := other.Tick(t.Context(), s.Now().Add(Budget))
		if err != nil {
			t.Error(err)
		}
		if state := s.state(); state.LookingBy == "" {
			t.Errorf("%+v", state)
		}
		err = other.Soon(t.Context(), songs, s.state().Key)
		if !fault.Is(err, fault.Conflict) {
			t.Error(err)
		}
	}
	s.tick()
	if s.asked != 1 || s.events("1") != "episode.curated" {
		t.Errorf("%d requests, %s", s.asked, s.events("1"))
	}
	s.pass(time.Hour)
	s.publish(item("1", "two", "1.mp3", ""))
	s.during = func() { // the process is slow: another looks, and finds more
		s.pass(Claim)
		s.items, s.version = []string{item("1", "three", "1.mp3", "")}, s.version+1
		s.mu.Unlock()
		defer s.mu.Lock()
		err := other.Tick(t.Context(), s.Now().Add(Budget))
		if err != nil {
			t.Error(err)
		}
		s.items = []string{item("1", "two", "1.mp3", "")} // what the slow one gets
	}
	err := s.Tick(t.Context(), s.Now().Add(2*Claim))
	if err != nil {
		t.Fatal(err)
	}
	// The slow one curates, too, but what it read is of an earlier look.
	if got := s.newest("1"); !strings.Contains(got, `"title":"three"`) {
		t.Error(got)
	}
}

// TestLimitOfTime: what is left when the time is up is done by the next tick.
func TestLimitOfTime(t *testing.T) {
	s := newStudio(t)
	var items []string
	for i := range 10 {
		items = append(items, item(fmt.Sprint(i), "t", "a.mp3", ""))
	}
	s.publish(items...)
	s.during = func() { s.pass(Budget) } // the look begins in the last moment
	state := s.tick()
	if state.Left != 10 || state.Entries != 10 || state.Next > s.Now().UnixMilli() {
		t.Fatalf("%+v", state)
	}
	state = s.tick()
	if state.Left != 0 || s.asked != 2 || s.events("9") != "episode.curated" {
		t.Errorf("%+v", state)
	}
}

// TestRefusedEntries: an entry that cannot be kept is counted with the reason, and does not keep the others
// back.
func TestRefusedEntries(t *testing.T) {
	s := newStudio(t)
	s.publish(item("1", "one", "http://:80/1.mp3", ""), item("2", "two", "2.mp3", ""), item("3", "three", "3.mp3", ""))
	state := s.tick()
	if state.Problem != "" || state.Left != 0 || len(state.Skipped) != 1 || state.Skipped[0].First != "1" ||
		!strings.HasPrefix(state.Skipped[0].Reason, `url: found "http://:80/1.mp3"; expected`) {
		t.Errorf("%+v", state)
	}
	if s.events("2") != "episode.curated" || s.events("3") != "episode.curated" {
		t.Error(s.events("2"), s.events("3"))
	}
	var all []Skipped
	for i := range 2 * mostReasons {
		all = count(all, fmt.Sprint("reason ", i), "id")
	}
	if len(all) != mostReasons+1 || all[mostReasons].Count != mostReasons {
		t.Errorf("%+v", all)
	}
}

// TestFeedsThatFailAreCounted: from its fifth failure in a row on, or when it has ended, a feed is counted by each
// tick, whether it is due or not, until it succeeds or is removed.
func TestFeedsThatFailAreCounted(t *testing.T) {
	s := newStudio(t)
	var last float64
	s.Metric = func(name string, n float64) {
		if name != MetricFailing {
			t.Errorf("%s is counted", name)
		}
		last = n
	}
	counted := func() float64 { // by a tick at which no feed is due
		t.Helper()
		last = 0
		err := s.Tick(t.Context(), s.Now().Add(Budget))
		if err != nil {
			t.Fatal(err)
		}
		return last
	}
	look := func(status int) {
		s.answer(status, "")
		s.clock.Store(max(s.clock.Load(), s.tick().Next)) // the first is due at once
		s.tick()
	}
	s.publish(item("1", "one", "1.mp3", ""))
	look(0)
	for n := 1; n <= 6; n++ {
		look(500)
		if state := s.state(); state.Failures != n || (counted() == 1) != (n >= mostFailures) {
			t.Errorf("after %d failures: %+v, %v", n, state, last)
		}
	}
	look(0)
	if n := counted(); n != 0 {
		t.Errorf("%v feeds fail after a success", n)
	}
	look(410)
	if n := counted(); n != 1 {
		t.Errorf("%v feeds have ended", n)
	}
	s.apply()
	if n := counted(); n != 0 {
		t.Errorf("%v feeds fail that are not configured", n)
	}
}
