package bench

import (
	"context"
	"flag"
	"fmt"
	"hash/fnv"
	"maps"
	"os"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/research"
	"archivist/test/adversary"
)

var (
	episodes   = flag.Int("episodes", 2000, "episodes of the larger project of TestAssignment")
	clipsOf    = flag.Int("clips", 100, "clips of the projects of TestAssignment")
	workItems  = flag.Int("workitems", 200, "work items of TestWorkItems")
	researcher = flag.Int("researchers", 8, "researchers of TestWorkItems")
)

// songs is a project of research on a table whose calls are counted, with a queue in the process.
type songs struct {
	*research.Store
	t     *testing.T
	calls *atomic.Int64
	ids   *atomic.Int64
	queue chan research.Message
	clock func() time.Time
}

const project = "songs"

// newSongs makes a project with so many clips.
func newSongs(t *testing.T, rows *table.Table, maxClips, clips int) *songs {
	t.Helper()
	s := &songs{t: t, calls: new(atomic.Int64), ids: new(atomic.Int64), queue: make(chan research.Message, 10_000)}
	counted := &tabletest.Client{DynamoDBAPI: rows.DB.Client(), Do: func(_ string, call func() error) error {
		s.calls.Add(1)
		return call()
	}}
	tb := tabletest.Table(counted)
	tb.Rows = tb.DB.Table(rows.Rows.Name())
	s.clock = time.Now
	now := func() time.Time { return s.clock() }
	newID := func() string { return fmt.Sprintf("id-%09d", s.ids.Add(1)) }
	s.Store = &research.Store{Table: tb, Now: now, NewID: newID, Times: research.Default, Projects: []string{project},
		Leases:   &lease.Store{Table: tb, Now: now, NewID: newID},
		Analyses: map[string]func([]byte) error{"any": func([]byte) error { return nil }},
		Send:     func(_ context.Context, m research.Message) error { s.queue <- m; return nil }}
	s.must(s.Apply(t.Context(), research.Project{Name: project, MaxClips: maxClips,
		Analysis: research.Analysis{Name: "any", Version: "1"}}, research.By{Actor: "ann"}))
	for i := range clips {
		s.curate(research.Clip, fmt.Sprintf("clip-%06d", i))
	}
	return s
}

func (s *songs) must(err error) {
	s.t.Helper()
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *songs) curate(kind research.Kind, id string) (key string) {
	s.t.Helper()
	key, err := s.Curate(s.t.Context(), research.Curated{Project: project, Kind: kind, Source: "bench", ID: id,
		URL: address(id), Curated: 1_700_000_000_000}, research.By{Actor: "ann"})
	s.must(err)
	return key
}

func (s *songs) pass() research.Passed {
	s.t.Helper()
	p, err := s.Pass(s.t.Context(), project, s.clock().Add(time.Minute))
	s.must(err)
	return p
}

func (s *songs) hello(ctx context.Context, name string) error {
	return s.Heartbeat(ctx, project, research.Researcher{Name: name, Capacity: 1})
}

// complete does a work item: nothing is found in any pair.
func (s *songs) complete(ctx context.Context, m research.Message, name string) error {
	w, err := s.Accept(ctx, research.Acceptance{Lease: m.Lease, Researcher: name, Token: m.Lease})
	if err != nil {
		return err
	}
	for i, c := range w.Clips {
		r := research.Report{Project: project, Lease: m.Lease, Researcher: name, Analysis: w.Lease.Analysis,
			Episode: w.Episode.Key, Sequence: i + 1, Clip: c.Key, Millis: 1000}
		if i == len(w.Clips)-1 {
			r.Final, r.Count = true, len(w.Clips)
		}
		_, err := s.Record(ctx, r)
		for fault.Is(err, fault.Unavailable) { // its message comes again
			_, err = s.Record(ctx, r)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copies writes more episodes that are as one is: its rows, as the service has written them, under other
// ids, and their counts.
func (s *songs) copies(of string, n int) {
	s.t.Helper()
	key := research.Key("bench", of)
	k := event.Subject{Type: event.Episode, ID: project + "/" + key}.Key()
	rows := []table.Raw{s.raw(k)}
	place := rows[0].Item["place_in"].(*types.AttributeValueMemberS).Value
	rows = append(rows, s.raw(table.Key{PK: "RESEARCHLINE#" + project, SK: place}))
	ids := map[string]string{} // by their keys: in order they are appended to the line
	for i := range n {
		id := fmt.Sprintf("%s-%07d", of, i)
		ids[research.Key("bench", id)] = id
	}
	var g errgroup.Group
	g.SetLimit(8)
	var all []any
	write := func() {
		part := all
		g.Go(func() error { return s.write(part) })
		all = nil
	}
	counts := map[uint32]int{}
	for _, other := range slices.Sorted(maps.Keys(ids)) {
		counts[shard(other)]++
		renamed := strings.NewReplacer(key, other, `"id":"`+of+`"`, `"id":"`+ids[other]+`"`,
			address(of), address(ids[other]))
		for _, r := range rows {
			item := table.Item{}
			for name, v := range r.Item {
				if text, is := v.(*types.AttributeValueMemberS); is {
					v = &types.AttributeValueMemberS{Value: renamed.Replace(text.Value)}
				}
				item[name] = v
			}
			all = append(all, item)
		}
		if len(all) >= 250 {
			write()
		}
	}
	write()
	s.must(g.Wait())
	class, _, _ := strings.Cut(place, "#")
	s.counted(class, counts, adversary.Number(rows[0].Item, "counted_n"))
}

// shard is the part of the counts in which an episode is counted.
func shard(key string) uint32 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(key))
	return h.Sum32() % 16
}

// counted counts episodes of one class with so many researched pairs each, by their shards.
func (s *songs) counted(class string, episodes map[uint32]int, pairs int64) {
	s.t.Helper()
	for shard, n := range episodes {
		tx := s.Table.Begin(s.NewID())
		pk := "RESEARCHCOUNTS#" + project
		tx.Count(table.Key{PK: pk, SK: fmt.Sprintf("places#%02d", shard)}, map[string]int64{class + "_n": int64(n)})
		if all := int64(n) * pairs; all > 0 {
			tx.Count(table.Key{PK: pk, SK: fmt.Sprintf("round#%06d#%02d", 1, shard)},
				map[string]int64{"pairs_n": all, "results_n": all})
		}
		s.must(tx.Commit(s.t.Context()))
	}
}

func address(id string) string { return "https://media.example.org/" + id }

func (s *songs) raw(k table.Key) table.Raw {
	s.t.Helper()
	r, err := s.Table.Raw(s.t.Context(), k)
	s.must(err)
	return r
}

// write writes rows: the table in the process takes no batches.
func (s *songs) write(rows []any) error {
	if len(rows) > 0 && !tabletest.InProcess() {
		_, err := s.Table.Rows.Batch("pk", "sk").Write().Put(rows...).Run(s.t.Context())
		return err
	}
	for _, r := range rows {
		err := s.Table.Rows.Put(r).Run(s.t.Context())
		if err != nil {
			return err
		}
	}
	return nil
}

// TestCopies: the rows of copied episodes, their places in the line and their counts are those that the service
// writes.
func TestCopies(t *testing.T) {
	const n = 30
	rowsOf := func(more func(s *songs, of string)) map[string]table.Item {
		s := newSongs(t, tabletest.Table(tabletest.New()), research.MaxMaxClips, 7)
		for _, of := range []string{"done", "open"} {
			s.curate(research.Episode, of)
			more(s, of)
			for of == "done" && s.pass().Assigned > 0 {
				s.must(s.complete(t.Context(), <-s.queue, "r"))
			}
		}
		return s.selection()
	}
	service := rowsOf(func(s *songs, of string) {
		for i := range n {
			s.curate(research.Episode, fmt.Sprintf("%s-%07d", of, i))
		}
	})
	copied := rowsOf(func(s *songs, of string) {
		for of == "done" && s.pass().Assigned > 0 {
			s.must(s.complete(t.Context(), <-s.queue, "r"))
		}
		s.copies(of, n)
	})
	if len(service) < 4*n || len(copied) != len(service) {
		t.Fatalf("%d rows, of the service %d", len(copied), len(service))
	}
	for at, want := range service {
		if !reflect.DeepEqual(copied[at], want) {
			t.Fatalf("%s is %v; the service writes %v", at, copied[at], want)
		}
	}
}

// selection are the episodes, the line and the counts, without the ids of the transactions that wrote them and
// the revisions of counts.
func (s *songs) selection() map[string]table.Item {
	s.t.Helper()
	found := map[string]table.Item{}
	rows, next, err := s.Table.Scan(s.t.Context(), "", 100_000, "")
	s.must(err)
	if next != "" {
		s.t.Fatal("there are more rows")
	}
	for _, r := range rows {
		delete(r.Item, "wid")
		counts := strings.HasPrefix(r.PK, "RESEARCHCOUNTS#")
		if counts {
			delete(r.Item, "rev")
		}
		if counts || r.SK == "EPISODE" || strings.HasPrefix(r.PK, "RESEARCHLINE#") {
			found[r.Key.String()] = r.Item
		}
	}
	return found
}

// assignments is a project with n episodes, half of them open and half completed, whose archivist adds one work
// item in each pass.
func assignments(t *testing.T, n int) *songs {
	t.Helper()
	s := newSongs(t, tabletest.Open(t, tabletest.NoStream), research.MaxMaxClips, *clipsOf)
	now := time.Now()
	s.clock = func() time.Time { return now } // however long it takes, no sample is due, and no lease ends
	s.curate(research.Episode, "done")
	for s.pass().Assigned > 0 {
		s.must(s.complete(t.Context(), <-s.queue, "r"))
	}
	began := time.Now()
	s.copies("done", n/2-1)
	s.curate(research.Episode, "open")
	s.copies("open", n/2-1)
	t.Logf("%d episodes written in %s", n, time.Since(began).Round(time.Second))
	s.must(s.hello(t.Context(), "r"))
	if p := s.pass(); p.Assigned != 2 || p.Looked > 0 {
		t.Fatalf("%+v", p)
	}
	return s
}

// TestAssignment: a pass that adds one work item takes as many calls with many episodes as with 1000. The times
// of both are measured in turns.
func TestAssignment(t *testing.T) {
	sizes := []int{min(1000, *episodes/5), *episodes} // half of them open: enough for all passes
	var projects []*songs
	for _, n := range sizes {
		projects = append(projects, assignments(t, n))
	}
	took, calls := make([][]time.Duration, len(sizes)), make([][]int64, len(sizes))
	for range 150 {
		for i, s := range projects {
			m := <-s.queue
			_, err := s.Accept(t.Context(), research.Acceptance{Lease: m.Lease, Researcher: "r", Token: m.Lease})
			s.must(err)
			s.must(s.hello(t.Context(), "r"))
			s.calls.Store(0)
			began := time.Now()
			p := s.pass()
			took[i], calls[i] = append(took[i], time.Since(began)), append(calls[i], s.calls.Load())
			if p.Assigned != 1 {
				t.Fatalf("%d episodes: %+v", sizes[i], p)
			}
		}
	}
	p50 := func(all []time.Duration) float64 {
		return float64(slices.Sorted(slices.Values(all[20:]))[65].Microseconds()) // warm by then
	}
	for i, n := range sizes {
		least, most := slices.Min(calls[i]), slices.Max(calls[i])
		t.Logf("%d episodes x %d clips, %s: p50 %.2f ms, %.2fx; %d to %d calls", n, *clipsOf, where(),
			p50(took[i])/1000, p50(took[i])/p50(took[0]), least, most)
		if least != slices.Min(calls[0]) || most != slices.Max(calls[0]) {
			t.Errorf("%d to %d calls with %d episodes, %d to %d with %d", least, most, n, slices.Min(calls[0]),
				slices.Max(calls[0]), sizes[0])
		}
	}
}

func where() string {
	if os.Getenv(tabletest.EndpointVariable) != "" {
		return "on DynamoDB Local"
	}
	return "in the process"
}

// TestWorkItems: researchers do work items of five clips, while one archivist assigns more: each of another
// episode, and all of one, whose row then all of them write.
func TestWorkItems(t *testing.T) {
	const clips = 5
	for _, c := range []struct {
		name            string
		items, episodes int
	}{{"an episode each", *workItems, *workItems}, {"all of one episode", *workItems / 5, 1}} {
		t.Run(c.name, func(t *testing.T) {
			s := newSongs(t, tabletest.Open(t, tabletest.NoStream), clips, clips*c.items/c.episodes)
			s.curate(research.Episode, "open")
			s.copies("open", c.episodes-1)
			s.calls.Store(0)
			took := s.work(int64(c.items))
			t.Logf("%d work items of %d clips, %s, by %d researchers %s: %s, %.0f a minute, %.1f calls each", c.items,
				clips, c.name, *researcher, where(), took.Round(time.Millisecond), float64(c.items)/took.Minutes(),
				float64(s.calls.Load())/float64(c.items))
		})
	}
}

// work does all work items, n.
func (s *songs) work(n int64) time.Duration {
	s.t.Helper()
	var done atomic.Int64
	woken := make(chan bool, 1)
	s.Wake = func(context.Context, string) error {
		select {
		case woken <- true:
		default: // it is about to be
		}
		return nil
	}
	g, ctx := errgroup.WithContext(s.t.Context())
	for i := range *researcher {
		name := fmt.Sprint("r", i)
		s.must(s.hello(ctx, name))
		g.Go(func() error {
			for m := range s.queue {
				err := s.complete(ctx, m, name)
				if err != nil {
					return err
				}
				done.Add(1)
				_ = s.Wake(ctx, project)
			}
			return nil
		})
	}
	began := time.Now()
	said := began
	for done.Load() < n && ctx.Err() == nil {
		if time.Since(said) > research.Default.Renewal {
			said = time.Now()
			for i := range *researcher {
				s.must(s.hello(ctx, fmt.Sprint("r", i)))
			}
		}
		s.pass()
		select {
		case <-woken:
		case <-ctx.Done():
		}
	}
	took := time.Since(began)
	close(s.queue)
	s.must(g.Wait())
	return took
}

// TestResearchCost: a thousand pairs cost what bench/RESULTS.md says, with work items of 100 clips and of 5.
// Each result takes a message and an invocation of its own, as if they came one by one.
func TestResearchCost(t *testing.T) {
	for _, c := range []struct {
		maxClips      int
		writes, reads float64 // at most
	}{{100, 14_200, 7300}, {5, 18_000, 10_600}} {
		const episodes, clips = 4, 100
		count := &meter{DynamoDBAPI: tabletest.New()}
		s := newSongs(t, tabletest.Table(count), c.maxClips, clips)
		for i := range episodes {
			s.curate(research.Episode, fmt.Sprint("episode-", i))
		}
		s.must(s.hello(t.Context(), "r"))
		*count = meter{DynamoDBAPI: count.DynamoDBAPI}
		items := 0.0
		for s.pass(); len(s.queue) > 0; s.pass() {
			s.must(s.complete(t.Context(), <-s.queue, "r"))
			items++
		}
		if want := float64(episodes * clips / c.maxClips); items != want {
			t.Fatalf("%.0f work items, want %.0f", items, want)
		}
		per := func(n float64) float64 { return n * 1000 / (episodes * clips) }
		const pairs, gb, passes, records, requests = 1000, 0.5, 0.5, 0.2, 0.1 // seconds
		sum := bill(t, fmt.Sprintf("work items of %d clips", c.maxClips), []charge{
			{"DynamoDB write units", per(count.writes), perWrite, c.writes},
			{"DynamoDB read units", per(count.reads), perRead, c.reads},
			{"SQS requests", per(items)*3 + pairs*3, perSQS, 0},
			{"Lambda requests", per(items) + pairs, perLambda, 0},
			{"Lambda GB-seconds", (per(items)*passes + pairs*records) * gb, perGBs, 0},
		})
		api := bill(t, "through the API, in addition", []charge{
			{"API requests", per(items) + pairs, perRequest, 0},
			{"Lambda requests", per(items) + pairs, perLambda, 0},
			{"Lambda GB-seconds", (per(items) + pairs) * requests * gb, perGBs, 0},
		})
		t.Logf("%.0f calls of DynamoDB; US$ %.4f in all", per(count.calls), sum+api)
	}
}

// idleResearch is what one project costs in a month in which nothing happens: a pass each minute, and the
// long polls of three queues (for episodes, clips and results).
func idleResearch(t *testing.T, ticks, polls float64) float64 {
	t.Helper()
	count := &meter{DynamoDBAPI: tabletest.New()}
	s := newSongs(t, tabletest.Table(count), 100, 2)
	s.curate(research.Episode, "done")
	now := time.Now()
	s.clock = func() time.Time { return now }
	s.pass()
	s.must(s.complete(t.Context(), <-s.queue, "r"))
	s.pass()
	*count = meter{DynamoDBAPI: count.DynamoDBAPI}
	const hour = 60.0
	for range int(hour) {
		now = now.Add(time.Minute)
		if p := s.pass(); p != (research.Passed{}) {
			t.Errorf("an idle pass: %+v", p)
		}
	}
	const seconds, gb, logged, perLog = 0.1, 0.25, 0.5e-6, 0.50 // as of the relay
	passes := ticks * (count.writes/hour*perWrite + count.reads/hour*perRead + perLambda + seconds*gb*perGBs +
		logged*perLog)
	t.Logf("research: a pass in %.1f calls, %.1f write and %.1f read units; passes US$ %.2f, polls of queues US$ %.2f",
		count.calls/hour, count.writes/hour, count.reads/hour, passes, 3*polls*perSQS)
	return passes + 3*polls*perSQS
}
