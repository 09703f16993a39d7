package researchsim

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/research"
)

// by is who acts, and why.
func (a *actor) by() research.By { return research.By{Actor: a.Name, Reason: "the simulation"} }

// say makes records of a curator.
func (a *actor) say(context.Context) {
	for range 1 + a.Rng.IntN(3) {
		c := curated(a.Rng, time.Now())
		c.Withdrawn = c.Withdrawn && a.Rng.IntN(2) == 0
		a.w.curated.Send(c)
	}
}

// curate is one invocation of the function that curates. What it did not finish comes again.
func (a *actor) curate(ctx context.Context) {
	for range 3 {
		if c, ok := a.w.curated.arrive(a.Rng); ok {
			a.begin("curate")
			a.curateOne(ctx, c)
		}
	}
}

func (a *actor) curateOne(ctx context.Context, c research.Curated) {
	_, err := a.store.Curate(ctx, c, a.by())
	a.w.Log("  (%s curates %s: %v)", a.Name, c.ID, err)
	key := c.Key()
	switch {
	case err == nil:
		a.w.said[key] = append(a.w.said[key], c)
	case fault.Is(err, fault.Invalid):
		a.w.check.fail("the record %+v was refused: %v", c, err)
	default:
		a.w.curated.back = append(a.w.curated.back, c)
	}
}

// archive is one invocation of the assigner, by the schedule.
func (a *actor) archive(ctx context.Context) {
	since, until := time.Now().UnixMilli(), a.begin("archive")
	p, err := a.store.Pass(ctx, songs, until)
	a.w.Log("  (%s passes %+v: %v)", a.Name, p, err)
	if err != nil || p.Busy || p.More || a.Dead() {
		return
	}
	if id := a.w.check.unsent(since - skewed); id != "" {
		a.w.check.fail("the work item of the lease %s was not sent", id)
	}
}

// woken is one by a wake-up.
func (a *actor) woken(ctx context.Context) {
	if _, ok := a.w.wakes.Arrive(a.Rng); ok {
		a.archive(ctx)
	}
}

// complete is one invocation of the function that records reports.
func (a *actor) complete(ctx context.Context) {
	for range 4 {
		if r, ok := a.w.reports.arrive(a.Rng); ok {
			a.begin("complete")
			a.completeOne(ctx, r)
		}
	}
}

func (a *actor) completeOne(ctx context.Context, r research.Report) {
	done, err := a.store.Record(ctx, r)
	a.w.Log("  (%s records %s %d %q of %s, final %v: %+v %v)", a.Name, r.Lease, r.Sequence, r.Clip, r.Episode, r.Final,
		done, err)
	switch {
	case err == nil && done.Known:
		a.w.Met("report known")
	case err == nil && done.Ended:
		a.w.Met("lease ended by its last result")
	case fault.Is(err, fault.Invalid) || fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound):
		a.w.check.fail("the report %+v was refused: %v", r, err)
	case err != nil:
		a.w.reports.back = append(a.w.reports.back, r)
	}
}

// work is a work item that a researcher has accepted.
type work struct {
	research.Work
	next    int // clip
	results int
	asleep  time.Time // it hangs until then
}

// labour is a while of a researcher.
func (a *actor) labour(ctx context.Context) {
	a.doing, a.Until = "labour", time.Time{}
	err := a.store.Heartbeat(ctx, songs, research.Researcher{Name: a.Name, Capacity: 1 + a.Rng.IntN(2)})
	a.w.Log("  (%s sends a heartbeat: %v)", a.Name, err)
	if len(a.work) < 2 {
		a.take(ctx)
	}
	for _, wk := range a.work {
		a.research(ctx, wk)
	}
	a.work = slices.DeleteFunc(a.work, func(wk *work) bool { return wk.next < 0 })
	if a.Rng.IntN(15) == 0 {
		a.w.Log("  (%s leaves: %v)", a.Name, a.store.Leave(ctx, songs, a.Name))
		a.w.Met("researcher left")
		a.work = nil
	}
}

// take receives a work item and accepts it, sometimes twice.
func (a *actor) take(ctx context.Context) {
	m, ok := a.w.pending.Arrive(a.Rng)
	if !ok {
		return
	}
	acceptance := research.Acceptance{Lease: m.Lease, Researcher: a.Name, Token: a.newID()}
	w, err := a.store.Accept(ctx, acceptance)
	if a.Rng.IntN(3) == 0 || err != nil && !fault.Is(err, fault.Conflict) { // its answer was lost
		w, err = a.store.Accept(ctx, acceptance)
		a.w.Met("accepted again")
	}
	a.w.Log("  (%s accepts %s: %v)", a.Name, m.Lease, err)
	if fault.Is(err, fault.Held) {
		a.w.Met("work item for another researcher")
		a.w.pending.Send(m)
		return
	}
	if err != nil {
		a.w.Met("acceptance refused")
		return
	}
	if len(w.Clips) == 0 || w.Lease.Researcher != a.Name {
		a.w.check.fail("%s got the work %+v", a.Name, w)
	}
	wk := &work{Work: w}
	if a.Rng.IntN(6) == 0 {
		a.w.Met("researcher hangs")
		wk.asleep = time.Now().Add(time.Duration(a.Rng.Int64N(int64(90 * time.Minute))))
	}
	a.work = append(a.work, wk)
}

// research reports some clips of a work item, or its end. What it says is put into the queue in any order.
func (a *actor) research(ctx context.Context, wk *work) {
	if time.Now().Before(wk.asleep) {
		return
	}
	var said []research.Report
	for n := 1 + a.Rng.IntN(3); n > 0 && wk.next >= 0; n-- {
		switch {
		case a.Rng.IntN(25) == 0:
			a.w.Met("left without a final report")
			wk.next = -1
		case a.Rng.IntN(20) == 0:
			a.w.Met("ended early")
			said = append(said, wk.report(a.Name, true))
		default:
			said = append(said, a.result(ctx, wk))
		}
	}
	a.Rng.Shuffle(len(said), func(i, k int) { said[i], said[k] = said[k], said[i] })
	for i, r := range said {
		if r.Final && i < len(said)-1 {
			a.w.Met("final before others")
		}
		a.w.reports.Send(r)
	}
}

// result is that of the next clip: hits, none, or a problem.
func (a *actor) result(ctx context.Context, wk *work) research.Report {
	problem := (*research.Problem)(nil)
	if !a.w.Calm && a.Rng.IntN(10) == 0 {
		problem = &research.Problem{Of: string(research.Clip), Kind: research.Failed, Reason: "404 Not Found"}
		if a.Rng.IntN(3) == 0 {
			problem.Of = string(research.Episode)
		}
		if a.Rng.IntN(4) == 0 {
			problem.Kind = research.Rejected
		}
		a.w.Met("problem of " + problem.Of + " " + problem.Kind)
	}
	clip := wk.Clips[wk.next].Key
	wk.next++
	wk.results++
	r := wk.report(wk.Lease.Researcher, wk.next == len(wk.Clips))
	r.Sequence, r.Clip, r.Problem = wk.results, clip, problem
	if problem != nil && problem.Of == string(research.Episode) {
		r.Clip = ""
	}
	if problem == nil && a.Rng.IntN(2) == 0 {
		r.Hits = []research.Hit{{Offset: 1, Length: 2, Score: 1}, {Offset: 3, Length: 2, Score: 0.5}}
	}
	a.sounds(ctx, wk, &r)
	return r
}

// report is a report without a result.
func (wk *work) report(researcher string, final bool) research.Report {
	r := research.Report{Project: songs, Lease: wk.Lease.ID, Researcher: researcher, Analysis: wk.Lease.Analysis,
		Episode: wk.Lease.Episode, Final: final}
	if final {
		r.Count, wk.next = wk.results, -1
	}
	return r
}

// act is what a person does.
func (a *actor) act(ctx context.Context) {
	a.doing, a.Until = "act", time.Time{}
	var err error
	what := ""
	switch n := a.Rng.IntN(10); {
	case n < 2:
		what = "pause"
		err = a.store.Pause(ctx, songs, a.by())
	case n < 5:
		what = "resume"
		err = a.store.Resume(ctx, songs, a.by())
	case n < 6 && a.w.version < 4:
		what = "another analysis"
		a.w.version++
		err = a.store.Apply(ctx, a.w.project(1+a.Rng.IntN(3)), a.by())
	case n < 7:
		what = "decide"
		err = a.decide(ctx, false)
	case n < 8:
		what = "revoke"
		ids := slices.Sorted(maps.Keys(a.w.check.leases))
		if len(ids) > 0 {
			err = a.store.Revoke(ctx, ids[a.Rng.IntN(len(ids))], a.by())
		}
	default:
		what = "retry"
		a.retry(ctx)
	}
	a.w.Log("  (%s: %s: %v)", a.Name, what, err)
	if err == nil {
		a.w.Met("person: " + what)
	}
}

// retry makes all that is set aside researchable again. In the end, what is deferred must come back by itself.
func (a *actor) retry(ctx context.Context) {
	for _, key := range slices.Sorted(maps.Keys(a.w.check.episodes)) {
		if m := a.w.check.episodes[key].media; m.Quarantined != "" || m.Deferred > 0 && !a.w.Calm {
			a.w.Log("  (%s retries %s: %v)", a.Name, key, a.store.Retry(ctx, research.Episode, songs, key, a.by()))
		}
	}
	for _, key := range slices.Sorted(maps.Keys(a.w.check.clips)) {
		if m := a.w.check.clips[key].media; m.Quarantined != "" || m.Deferred > 0 && !a.w.Calm {
			a.w.Log("  (%s retries %s: %v)", a.Name, key, a.store.Retry(ctx, research.Clip, songs, key, a.by()))
		}
	}
}

// decide decides on the first pair of which the results differ: for one of them, or that another researcher is asked.
func (a *actor) decide(ctx context.Context, another bool) error {
	all, _, err := a.store.Differences(ctx, songs, "")
	if err != nil || len(all) == 0 {
		return cmp.Or(err, fault.New(fault.Conflict, "nothing is to be decided"))
	}
	d, way := all[0], research.Decision{Another: another || a.Rng.IntN(2) == 0}
	if !way.Another {
		way.Lease = d.Results[a.Rng.IntN(len(d.Results))].Lease
	}
	err = a.store.Decide(ctx, songs, d.Episode, d.Clip, way, a.by())
	a.w.Log("  (%s decides on %s %s, %+v: %v)", a.Name, d.Episode, d.Clip, way, err)
	if err == nil {
		a.w.Met(fmt.Sprintf("person: decides, another %t", way.Another))
	}
	return err
}

// rest makes the steps after which each pair has to be researched: one archivist, one researcher.
func (a *actor) rest(ctx context.Context) error {
	a.w.check.exact = true
	if a.w.check.project.Paused != "" {
		a.w.Log("  (resumes: %v)", a.store.Resume(ctx, songs, a.by()))
	}
	for step := range restSteps {
		for _, c := range append(a.w.curated.Take(), a.w.curated.back...) {
			a.curateOne(ctx, c)
		}
		a.w.curated.back = nil
		for _, r := range append(a.w.reports.Take(), a.w.reports.back...) {
			a.completeOne(ctx, r)
		}
		a.w.reports.back = nil
		a.retry(ctx)
		_ = a.decide(ctx, false)
		a.archive(ctx)
		if a.w.check.err != nil {
			return nil
		}
		if a.w.check.atRest() == nil && step > 3 {
			break
		}
		for i := range 1 + 2*a.w.s.quorum {
			a.toil(ctx, fmt.Sprint(a.Name, i))
		}
		a.w.Sleep(time.Duration(min(step+1, 10)) * 20 * time.Second)
	}
	return a.w.check.atRest()
}

// withdraw withdraws a clip that is live.
func (a *actor) withdraw(ctx context.Context) {
	for _, key := range slices.Sorted(maps.Keys(a.w.check.clips)) {
		if m := a.w.check.clips[key].media; live(m) {
			a.curateOne(ctx, research.Curated{Project: songs, Kind: research.Clip, Source: m.Source, ID: m.ID,
				URL: m.URL, Curated: max(time.Now().UnixMilli(), m.Latest+1), Withdrawn: true})
			return
		}
	}
}

// toil is a researcher who does all that it can.
func (a *actor) toil(ctx context.Context, name string) {
	err := a.store.Heartbeat(ctx, songs, research.Researcher{Name: name, Capacity: 2})
	a.w.Log("  (%s sends a heartbeat: %v)", name, err)
	for _, m := range a.w.pending.Take() {
		w, err := a.store.Accept(ctx, research.Acceptance{Lease: m.Lease, Researcher: name, Token: a.newID()})
		a.w.Log("  (%s accepts %s: %v)", name, m.Lease, err)
		if fault.Is(err, fault.Held) {
			a.w.pending.Send(m)
		}
		wk := &work{Work: w}
		for err == nil && wk.next >= 0 {
			a.w.reports.Send(a.result(ctx, wk))
		}
	}
}

// folds compares what is known of each episode and clip with all that curators have said.
func (w *world) folds() error {
	for key, said := range w.said {
		var is research.Media
		if e := w.check.episodes[key]; e != nil {
			is = e.media
		} else if c := w.check.clips[key]; c != nil {
			is = c.media
		}
		if want := folded(said); fmt.Sprint(plain(is)) != fmt.Sprint(want) {
			return fmt.Errorf("%s is %+v; said was %+v", key, is, want)
		}
	}
	return nil
}
