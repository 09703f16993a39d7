package bench

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"github.com/guregu/dynamo/v2/dynamodbiface"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/lease"
	"archivist/pkg/kernel/table"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
	"archivist/pkg/revisions/workflow"
)

var (
	pendings = flag.Int("pending", 400, "revisions that wait in the larger archive of TestReadyLatency and TestNoisy")
	rounds   = flag.Int("rounds", 20, "rounds of TestReadyLatency and TestNoisy")
)

// repository is an archive in memory: the workflows of each revision. All that it has been asked for is known before.
type repository []string

func (r *repository) Head(context.Context) (int64, error) { return int64(len(*r)), nil }

func (r *repository) Revision(_ context.Context, n int64) (archive.Revision, error) {
	return archive.Revision{Number: n, Transaction: fmt.Sprint("t", n), Time: time.Now(), Author: "anna",
		Message: "a change of the text"}, nil
}

func (r *repository) Workflows(_ context.Context, n int64) ([]workflow.File, error) {
	return []workflow.File{{Path: workflow.Folder + "/all.yaml", Data: []byte((*r)[n-1])}}, nil
}

func (r *repository) Changed(context.Context, int64, int64) ([]string, error) { return nil, nil }
func (r *repository) Checkout(_ context.Context, _ int64, folder string) error {
	return os.WriteFile(folder+"/index.txt", []byte("text"), 0o644)
}

// The workflows of the measurements.
const (
	threeTasks = `
- {name: index, command: "true", timeout: 14m}
- {name: page, command: "true", timeout: 14m, depends: [index]}
- {name: site, command: "true", timeout: 14m, lock: site}
`
	lockedTask = `[{name: site, command: "true", timeout: 14m, lock: site}]`
	freeTasks  = `
- {name: index, command: "true", timeout: 14m}
- {name: page, command: "true", timeout: 14m, depends: [index]}
`
)

// archived is an archive in a revision queue whose executions the test runs.
type archived struct {
	*revision.Store
	t       *testing.T
	name    string
	repo    *repository
	ahead   time.Duration // of its clock
	mu      sync.Mutex
	started map[string]revision.Execution // by instance
	running map[string]revision.Execution // likewise, of those that beginAll has begun
	first   int64                         // the last revision that has ended
	at      map[string]time.Time          // when something happened, see moved
}

// newArchived makes an archive without revisions; client makes the calls to the table.
func newArchived(t *testing.T, name, tableName string, client dynamodbiface.DynamoDBAPI) *archived {
	t.Helper()
	a := reopened(t, name, tableName, client)
	set := revision.Settings{Location: archive.Location{Kind: archive.Git, URL: "https://example.org/" + name},
		Baseline: 1, Reconcile: -1}
	_, err := a.Add(t.Context(), name, set, revision.By{Actor: "anna"})
	a.must(err)
	return a
}

// reopened is an archive whose rows are in the table already.
func reopened(t *testing.T, name, tableName string, client dynamodbiface.DynamoDBAPI) *archived {
	a := &archived{t: t, name: name, repo: &repository{}, started: map[string]revision.Execution{},
		running: map[string]revision.Execution{}, at: map[string]time.Time{}}
	rows := tabletest.Table(&watcher{client, a.moved})
	rows.Rows = rows.DB.Table(tableName)
	newID := func() string { return fmt.Sprintf("%s-%09d", name, ids.Add(1)) }
	// The archive's time moves by later alone: on a slow machine, a schedule would fire while revisions are planned.
	began := time.Now()
	now := func() time.Time { return began.Add(a.ahead) }
	a.Store = &revision.Store{Table: rows, Now: now, NewID: newID, Secret: newID, Times: revision.Default,
		Leases: &lease.Store{Table: rows, Now: now, NewID: newID},
		Open:   func(context.Context, archive.Location) (archive.Source, error) { return a.repo, nil },
		Start: func(_ context.Context, e revision.Execution) error {
			a.mu.Lock()
			defer a.mu.Unlock()
			a.started[e.Instance], a.at["start "+e.Instance] = e, time.Now()
			return nil
		}}
	return a
}

// ids are unique in a run.
var ids atomic.Int64

// watcher says which instances a transaction has written, and in which states they are then.
type watcher struct {
	dynamodbiface.DynamoDBAPI
	moved func(id string, state workflow.State)
}

func (w *watcher) TransactWriteItems(ctx context.Context, in *dynamodb.TransactWriteItemsInput,
	o ...func(*dynamodb.Options)) (*dynamodb.TransactWriteItemsOutput, error) {
	out, err := w.DynamoDBAPI.TransactWriteItems(ctx, in, o...)
	for _, x := range in.TransactItems {
		if err != nil || x.Put == nil {
			continue
		}
		text, is := x.Put.Item["instance_json"].(*types.AttributeValueMemberS)
		var row revision.Instance
		if is && json.Unmarshal([]byte(text.Value), &row) == nil {
			w.moved(row.ID, row.State)
		}
	}
	return out, err
}

// moved keeps when an instance was first written in a state.
func (a *archived) moved(id string, state workflow.State) {
	a.mu.Lock()
	defer a.mu.Unlock()
	key := string(state) + " " + id
	if a.at[key].IsZero() {
		a.at[key] = time.Now()
	}
}

func (a *archived) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

func (a *archived) later(d time.Duration) { a.ahead += d }

func (a *archived) id(n int64, task string) string { return fmt.Sprintf("%s/%d/%s", a.name, n, task) }

// between is the time from one moment to another, both of which have been.
func (a *archived) between(from, to string) time.Duration {
	a.t.Helper()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.at[from].IsZero() || a.at[to].IsZero() {
		a.t.Fatalf("%s: %v, %s: %v", from, a.at[from], to, a.at[to])
	}
	return a.at[to].Sub(a.at[from])
}

// commit adds a revision with these workflows, and notifies it.
func (a *archived) commit(text string) int64 {
	a.t.Helper()
	*a.repo = append(*a.repo, text)
	n := int64(len(*a.repo))
	a.notify(n)
	return n
}

func (a *archived) notify(n int64) {
	a.t.Helper()
	_, err := a.Notify(a.t.Context(), a.name, revision.Notice{Revision: n}, revision.By{Actor: "hook"})
	a.must(err)
}

func (a *archived) pass() revision.Passed {
	a.t.Helper()
	p, err := a.Pass(a.t.Context(), a.name, a.Now().Add(revision.Default.Pass-10*time.Second))
	a.must(err)
	return p
}

// rest makes passes until there is nothing more to do.
func (a *archived) rest() {
	a.t.Helper()
	for a.pass().More {
	}
}

// begin begins the execution of an instance.
func (a *archived) begin(id string) revision.Execution {
	a.t.Helper()
	a.mu.Lock()
	e, ok := a.started[id]
	delete(a.started, id)
	a.mu.Unlock()
	if !ok {
		x, err := a.Explain(a.t.Context(), id)
		a.t.Fatalf("%s was not started: %+v, %v", id, x.Root(), err)
	}
	_, _, proceed, err := a.Begin(a.t.Context(), e)
	if err != nil || !proceed {
		a.t.Fatalf("%s: %t, %v", id, proceed, err)
	}
	return e
}

// beginAll begins the executions that were started.
func (a *archived) beginAll() {
	a.t.Helper()
	for _, id := range slices.Sorted(maps.Keys(a.started)) {
		a.running[id] = a.begin(id)
	}
}

// end ends an execution with success.
func (a *archived) end(e revision.Execution) {
	a.t.Helper()
	_, recorded, err := a.End(a.t.Context(), e, runner.Result{End: runner.Succeeded})
	if err != nil || !recorded {
		a.t.Fatalf("the end of %s: %t, %v", e.Instance, recorded, err)
	}
}

// fill adds revisions and has them planned.
func (a *archived) fill(n int, text string) {
	a.t.Helper()
	began := time.Now()
	for range n {
		a.commit(text)
	}
	a.rest()
	r, err := a.Revision(a.t.Context(), a.name, int64(len(*a.repo)))
	if err != nil || r.State != revision.Committed {
		a.t.Fatalf("%+v, %v", r, err)
	}
	a.t.Logf("%d revisions planned in %s", n, time.Since(began).Round(time.Millisecond))
}

// moveTo writes all rows of a table in the process, but the events, to the DynamoDB that the test measures, and
// returns the archive there.
func (a *archived) moveTo(fake *tabletest.Fake, to *table.Table, client dynamodbiface.DynamoDBAPI) *archived {
	a.t.Helper()
	began := time.Now()
	var rows []any
	for _, item := range fake.All() {
		sk := item["sk"].(*types.AttributeValueMemberS).Value
		if !strings.HasPrefix(sk, event.Prefix) {
			rows = append(rows, item)
		}
	}
	var g errgroup.Group
	g.SetLimit(8)
	for part := range slices.Chunk(rows, 250) {
		g.Go(func() error {
			_, err := to.Rows.Batch("pk", "sk").Write().Put(part...).Run(a.t.Context())
			return err
		})
	}
	a.must(g.Wait())
	a.t.Logf("%d rows written in %s", len(rows), time.Since(began).Round(time.Second))
	return a.there(to, client)
}

// there is the archive in another table, which has its rows.
func (a *archived) there(to *table.Table, client dynamodbiface.DynamoDBAPI) *archived {
	there := reopened(a.t, a.name, to.Rows.Name(), client)
	there.repo, there.started, there.running = a.repo, a.started, a.running
	return there
}

// measured is an archive that is measured: what one round of it has taken, in each of its rounds.
type measured struct {
	*archived
	count *meter
	calls []float64
	units []float64
	took  map[string][]time.Duration
}

// pending is an archive in a table of its own in which so many revisions wait. prepare makes them, in the process.
func pending(t *testing.T, prepare func(a *archived)) *measured {
	t.Helper()
	fake := tabletest.New()
	client := &meter{DynamoDBAPI: fake}
	m := &measured{count: client, took: map[string][]time.Duration{}}
	m.archived = newArchived(t, "maps", "archivist", client)
	prepare(m.archived)
	if !tabletest.InProcess() {
		real := tabletest.Open(t, tabletest.NoStream)
		client.DynamoDBAPI = real.DB.Client()
		m.archived = m.moveTo(fake, real, client)
	}
	return m
}

// counted does one round, and counts its calls.
func (m *measured) counted(round func() map[string]time.Duration) {
	*m.count = meter{DynamoDBAPI: m.count.DynamoDBAPI}
	for what, took := range round() {
		m.took[what] = append(m.took[what], took)
	}
	m.calls, m.units = append(m.calls, m.count.calls), append(m.units, m.count.reads+m.count.writes)
}

// warm is how many rounds are not measured.
const warm = 5

func quantile(all []time.Duration, q float64) float64 {
	sorted := slices.Sorted(slices.Values(all[warm:]))
	return float64(sorted[int(q*float64(len(sorted)-1)+0.5)].Microseconds()) / 1000
}

// The two ways in which revisions wait. In both, a round commits a revision and ends one, so that as many wait
// before the next.
var waits = []struct {
	name    string
	prepare func(a *archived, n int)
	round   func(m *measured) map[string]time.Duration
}{
	// The first revision holds a lock, and a task of each other one waits for it. Other tasks go on.
	{"for a lock", func(a *archived, n int) {
		a.holdLock()
		a.fill(n-1, lockedTask)
	}, committed},
	// As many tasks run as may run at once, and all others are ready or wait for them.
	{"for their turn", func(a *archived, n int) {
		a.fill(n, freeTasks)
		a.beginAll()
	}, func(m *measured) map[string]time.Duration {
		m.commit(freeTasks)
		m.pass()
		m.first++
		m.end(m.running[m.id(m.first, "index")])
		m.pass()
		m.beginAll()
		m.end(m.running[m.id(m.first, "page")])
		m.pass()
		m.beginAll()
		began := time.Now()
		var rows []table.Head
		q := table.Query{PK: "TASKLINE#" + m.name, From: "start#", Limit: 1}
		_, err := m.Table.Page(m.t.Context(), q, &rows)
		m.must(err)
		index, page := m.id(m.first, "index"), m.id(m.first, "page")
		next := m.id(m.first+revision.MaxRunning, "index")
		return map[string]time.Duration{
			"query of one row of the line": time.Since(began), // in a partition with as many rows
			"end to ready":                 m.between("succeeded "+index, "ready "+page),
			"end to start of the next":     m.between("succeeded "+page, "start "+next),
		}
	}},
}

// holdLock lets a task run that has the lock.
func (a *archived) holdLock() {
	a.t.Helper()
	n := a.commit(lockedTask)
	a.rest()
	a.begin(a.id(n, "site"))
}

// committed is a round in which one revision is committed, and all of it is run that does not wait for a lock.
func committed(m *measured) map[string]time.Duration {
	m.t.Helper()
	began := time.Now()
	n := m.commit(threeTasks)
	m.pass()
	took := map[string]time.Duration{"notification to start": m.at["start "+m.id(n, "index")].Sub(began)}
	m.end(m.begin(m.id(n, "index")))
	m.pass()
	took["end to ready"] = m.between("succeeded "+m.id(n, "index"), "ready "+m.id(n, "page"))
	m.end(m.begin(m.id(n, "page")))
	m.pass()
	return took
}

// TestReadyLatency: what a revision takes is the same with 100 revisions that wait as with many: the calls, and
// within the noise of the machine the times. The archives are measured in turns.
func TestReadyLatency(t *testing.T) {
	for _, w := range waits {
		t.Run(w.name, func(t *testing.T) {
			sizes := []int{100, *pendings}
			var all []*measured
			for _, n := range sizes {
				all = append(all, pending(t, func(a *archived) { w.prepare(a, n) }))
			}
			for range *rounds + warm {
				for _, m := range all {
					m.counted(func() map[string]time.Duration { return w.round(m) })
				}
			}
			for i, m := range all {
				least, most := slices.Min(m.calls[warm:]), slices.Max(m.calls[warm:])
				t.Logf("%d revisions wait %s, %s: %.0f to %.0f calls, %.1f units a round", sizes[i], w.name, where(),
					least, most, slices.Max(m.units[warm:]))
				for what, took := range m.took {
					t.Logf("  %s: p50 %.2f ms, %.2fx; p99 %.2f ms, %.2fx", what, quantile(took, 0.5),
						quantile(took, 0.5)/quantile(all[0].took[what], 0.5), quantile(took, 0.99),
						quantile(took, 0.99)/quantile(all[0].took[what], 0.99))
				}
				if least != slices.Min(all[0].calls[warm:]) || most != slices.Max(all[0].calls[warm:]) {
					t.Errorf("%.0f to %.0f calls with %d revisions, %.0f to %.0f with %d", least, most, sizes[i],
						slices.Min(all[0].calls[warm:]), slices.Max(all[0].calls[warm:]), sizes[0])
				}
			}
		})
	}
}

// TestFewRounds: neither what a schedule fires, nor a pass while revisions wait for one that was not notified, nor one
// while they wait for an instance that they supersede takes more calls the more revisions wait. Rounds are a minute
// apart, so there are few.
func TestFewRounds(t *testing.T) {
	for _, w := range []struct {
		name    string
		prepare func(a *archived, n int)
		round   func(a *archived)
	}{
		{"schedule", func(a *archived, n int) {
			a.holdLock()
			a.fill(n-1, strings.Replace(lockedTask, "site}", `site, triggers: {commit: true, manual: true,
  schedule: [{cron: "* * * * *"}]}}`, 1))
		}, func(a *archived) { a.later(time.Minute); a.pass() }},
		{"a revision not notified", func(a *archived, n int) {
			a.commit(freeTasks)
			*a.repo = append(*a.repo, freeTasks)
			a.rest()
			for range n {
				a.commit(freeTasks)
			}
		}, func(a *archived) { a.commit(freeTasks); a.pass() }},
		{"a superseded instance", func(a *archived, n int) {
			a.commit(`[{name: build, command: "true", timeout: 14m, interruptible: false}]`)
			a.rest()
			a.begin(a.id(1, "build"))
			a.fill(n-1, `[{name: deploy, command: "true", cancels: [build]}, 
  {name: build, command: "true", triggers: [manual]}]`)
		}, func(a *archived) { a.later(time.Minute); a.pass() }},
	} {
		t.Run(w.name, func(t *testing.T) {
			var all [][]float64
			for _, n := range []int{100, *pendings} {
				m := pending(t, func(a *archived) { w.prepare(a, n) })
				for range 8 {
					m.counted(func() map[string]time.Duration { w.round(m.archived); return nil })
				}
				all = append(all, m.calls, m.units)
			}
			t.Log(all)
			if !slices.Equal(all[0], all[2]) || !slices.Equal(all[1], all[3]) {
				t.Errorf("%v calls and %v units with 100 revisions, %v and %v with %d", all[0], all[1], all[2], all[3],
					*pendings)
			}
		})
	}
}
