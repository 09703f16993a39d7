package bench

import (
	"context"
	"flag"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/guregu/dynamo/v2/dynamodbiface"
	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/pkg/revisions/runner"
)

// counting counts the calls of several at once.
func counting(client dynamodbiface.DynamoDBAPI, calls *atomic.Int64) *tabletest.Client {
	return &tabletest.Client{DynamoDBAPI: client, Do: func(_ string, call func() error) error {
		calls.Add(1)
		return call()
	}}
}

var noticesOf = flag.Int("notices", 400, "notices of TestNotices")

// TestNotices: how many revisions are notified in a second, by one hook, by eight in one archive, and by eight in an
// archive each.
func TestNotices(t *testing.T) {
	for _, c := range []struct{ hooks, archives int }{{1, 1}, {8, 1}, {8, 8}} {
		var calls atomic.Int64
		rows := tabletest.Open(t, tabletest.NoStream)
		client := counting(rows.DB.Client(), &calls)
		var all []*archived
		for i := range c.archives {
			all = append(all, newArchived(t, fmt.Sprint("maps-", i), rows.Rows.Name(), client))
		}
		calls.Store(0)
		var next atomic.Int64
		began := time.Now()
		var g errgroup.Group
		for hook := range c.hooks {
			g.Go(func() error {
				a := all[hook%c.archives]
				for {
					n := next.Add(1)
					if n > int64(*noticesOf) {
						return nil
					}
					_, err := a.Notify(t.Context(), a.name, revision.Notice{Revision: n}, revision.By{Actor: "hook"})
					if err != nil {
						return err
					}
				}
			})
		}
		err := g.Wait()
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		t.Logf("%d hooks in %d archives, %s: %.0f notices/s, %.1f calls each", c.hooks, c.archives, where(),
			float64(*noticesOf)/took.Seconds(), float64(calls.Load())/float64(*noticesOf))
	}
}

// TestPlans: how many revisions with ten tasks are planned in a second, and become visible. Their first tasks start, as
// many as may run at once.
func TestPlans(t *testing.T) {
	var text strings.Builder
	for i := range 10 {
		needs := ""
		if i%2 == 1 {
			needs = fmt.Sprintf(", depends: [task-%d]", i-1)
		}
		fmt.Fprintf(&text, "- {name: task-%d, command: \"true\"%s}\n", i, needs)
	}
	var calls atomic.Int64
	rows := tabletest.Open(t, tabletest.NoStream)
	a := newArchived(t, "maps", rows.Rows.Name(), counting(rows.DB.Client(), &calls))
	a.commit(text.String())
	a.rest()
	for range *plansOf {
		a.commit(text.String())
	}
	calls.Store(0)
	began := time.Now()
	planned := 0
	for more := true; more; {
		p := a.pass()
		planned, more = planned+p.Planned, p.More
	}
	took := time.Since(began)
	if planned != *plansOf {
		t.Fatalf("%d revisions planned, want %d", planned, *plansOf)
	}
	t.Logf("%d revisions of ten tasks, %s: %.1f plans/s, %.1f calls each", planned, where(),
		float64(planned)/took.Seconds(), float64(calls.Load())/float64(planned))
}

var plansOf = flag.Int("plans", 50, "revisions of TestPlans")

// busy is an archive in which revisions are committed and done, as long as it is asked to, with always as many that
// wait.
type busy struct {
	*archived
	on   atomic.Bool
	done sync.WaitGroup
	did  int // revisions
	err  error
}

// start begins the work. stop ends it, and waits until it has ended.
func (b *busy) start(ctx context.Context) {
	b.on.Store(true)
	b.done.Go(func() {
		for b.on.Load() && b.err == nil {
			b.err = b.turn(ctx)
		}
	})
}

func (b *busy) stop(t *testing.T) {
	t.Helper()
	b.on.Store(false)
	b.done.Wait()
	b.must(b.err)
}

// turn lets end what runs, and commits as many revisions as end.
func (b *busy) turn(ctx context.Context) error {
	for range revision.MaxRunning {
		e, ok := b.take()
		if !ok || !b.on.Load() {
			break
		}
		_, _, _, err := b.Begin(ctx, e)
		if err == nil {
			_, _, err = b.End(ctx, e, runner.Result{End: runner.Succeeded})
		}
		if err == nil && strings.HasSuffix(e.Instance, "/page") {
			*b.repo = append(*b.repo, freeTasks)
			_, err = b.Notify(ctx, b.name, revision.Notice{Revision: int64(len(*b.repo))}, revision.By{Actor: "hook"})
			b.did++
		}
		if err != nil {
			return err
		}
	}
	_, err := b.Pass(ctx, b.name, time.Now().Add(time.Minute))
	return err
}

// take takes an execution that was started.
func (b *busy) take() (e revision.Execution, ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, e := range b.started {
		delete(b.started, e.Instance)
		return e, true
	}
	return e, false
}

// noise is another archive of TestNoisy, and whether it is worked on between the rounds that are measured, or while
// they are: then it also takes of the machine.
type noise struct {
	name   string
	other  *busy
	atOnce bool
	*measured
}

// rounds does rounds of the archive that is measured.
func (x *noise) rounds(n int) {
	x.t.Helper()
	if x.atOnce {
		x.other.start(x.t.Context())
		defer x.other.stop(x.t)
	}
	for range n {
		if x.other != nil && !x.atOnce {
			x.other.on.Store(true)
			x.must(x.other.turn(x.t.Context()))
		}
		x.counted(func() map[string]time.Duration { return committed(x.measured) })
	}
}

// noises are the turns of TestNoisy, with an archive in which 100 revisions wait and one in which many do.
func noises(t *testing.T) (turns []*noise) {
	t.Helper()
	fake := tabletest.New()
	one := &meter{DynamoDBAPI: fake}
	m := &measured{archived: newArchived(t, "maps", "archivist", one), count: one}
	m.holdLock()
	var others []*busy
	for i, n := range []int{100, *pendings} {
		b := &busy{archived: newArchived(t, fmt.Sprint("other-", i), "archivist", fake)}
		b.fill(n, freeTasks)
		others = append(others, b)
	}
	if !tabletest.InProcess() {
		real := tabletest.Open(t, tabletest.NoStream)
		one.DynamoDBAPI = real.DB.Client()
		m.archived = m.moveTo(fake, real, one)
		for _, b := range others {
			b.archived = b.there(real, real.DB.Client())
		}
	}
	many := fmt.Sprint(*pendings, " revisions")
	for _, x := range []noise{{"alone", nil, false, m}, {"between turns of 100 revisions", others[0], false, m},
		{"between turns of " + many, others[1], false, m}, {"beside 100 revisions", others[0], true, m},
		{"beside " + many, others[1], true, m}} {
		x.measured = &measured{archived: m.archived, count: m.count, took: map[string][]time.Duration{}}
		turns = append(turns, &x)
	}
	return turns
}

// TestNoisy: what a revision takes does not depend on another archive in which many revisions wait, and are worked on.
// The archive is measured in turns: alone, with an archive in which 100 revisions wait, and with one in which many do.
func TestNoisy(t *testing.T) {
	turns := noises(t)
	for range *rounds/10 + 1 {
		for _, x := range turns {
			x.rounds(10)
		}
	}
	alone := turns[0]
	for _, x := range turns {
		least, most := slices.Min(x.calls[warm:]), slices.Max(x.calls[warm:])
		t.Logf("%s, %s: %.0f to %.0f calls a round", x.name, where(), least, most)
		for what, took := range x.took {
			first := alone.took[what]
			t.Logf("  %s: p50 %.2f ms, %.2fx; p95 %.2f ms, %.2fx", what, quantile(took, 0.5),
				quantile(took, 0.5)/quantile(first, 0.5), quantile(took, 0.95),
				quantile(took, 0.95)/quantile(first, 0.95))
		}
		if least != slices.Min(alone.calls[warm:]) || most != slices.Max(alone.calls[warm:]) {
			t.Errorf("%s: %.0f to %.0f calls, alone %.0f to %.0f", x.name, least, most, slices.Min(alone.calls[warm:]),
				slices.Max(alone.calls[warm:]))
		}
		if x.other != nil && x.other.did < *rounds/10 {
			t.Errorf("%s: only %d revisions of the other archive ended", x.name, x.other.did)
		}
	}
}
