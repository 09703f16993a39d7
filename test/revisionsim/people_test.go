package revisionsim

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/revisions/archive"
	"archivist/pkg/revisions/revision"
)

// addArchive registers an archive.
func (a *actor) addArchive(ctx context.Context, name string, baseline int64) error {
	set := revision.Settings{Location: archive.Location{Kind: archive.Git, URL: name}, Baseline: baseline,
		Running: a.w.s.running}
	_, err := a.store.Add(ctx, name, set, a.by())
	return err
}

// author commits to an archive, or replaces revisions. The hook says so, at once or late.
func (a *actor) author(ctx context.Context) {
	w := a.w
	name := w.some(a.Rng)
	r := w.repos[name]
	n := int64(len(r.commits))
	if w.s.forced && n > 1 && a.Rng.IntN(6) == 0 {
		w.Met("revisions replaced")
		n = 1 + a.Rng.Int64N(n)
		if n > 1 && a.Rng.IntN(3) == 0 {
			w.Met("history shortened")
			r.longest = max(r.longest, len(r.commits))
			n--
			r.commits = r.commits[:n:n]
		} else {
			r.replace(w, a.Rng, n)
		}
	} else if n < int64(w.s.most) {
		n = r.add(w, a.Rng, "")
	}
	h := hook{archive: name, Notice: revision.Notice{Revision: n}}
	if a.Rng.IntN(2) == 0 {
		h.Transaction = r.commits[n-1].id
	}
	if a.Rng.IntN(12) == 0 {
		r.broken = 1 + a.Rng.IntN(3)
	}
	if known := w.check.archives[name]; known != nil && known.is.Newest > 0 && a.Rng.IntN(8) == 0 {
		h.Revision, h.Transaction = n+20_000, ""
		w.Met("hook: far ahead")
	}
	w.hooks.Send(h)
	a.hook(ctx)
}

// hook delivers a notice.
func (a *actor) hook(ctx context.Context) {
	h, ok := a.w.hooks.Arrive(a.Rng)
	if !ok {
		return
	}
	_, err := a.store.Notify(ctx, h.archive, h.Notice, a.by())
	if far := h.Revision > 10_000; far && err == nil && !a.Dead() {
		a.w.check.fail("a notice of %s/%d was accepted", h.archive, h.Revision)
	}
	a.w.Log("  (%s: the hook notifies %s/%d %s: %v)", a.Name, h.archive, h.Revision, h.Transaction, err)
	if err != nil {
		a.w.Met("hook: " + string(fault.Of(err)))
	}
}

// some is one of the archives.
func (w *world) some(rng *rand.Rand) string {
	all := slices.Sorted(maps.Keys(w.repos))
	return all[rng.IntN(len(all))]
}

// did counts an action that was accepted.
func (a *actor) did(what, id string, err error) {
	a.w.Log("  (%s: %s %s: %v)", a.Name, what, id, err)
	switch fault.Of(err) {
	case "":
		if err == nil {
			a.w.Met("person: " + what)
		}
	case fault.Conflict:
		a.w.Met("person: " + what + " refused")
	}
}

// act makes one action of a person.
func (a *actor) act(ctx context.Context) {
	name := a.w.some(a.Rng)
	known, err := a.store.Archive(ctx, name)
	if fault.Is(err, fault.NotFound) && a.Rng.IntN(2) == 0 {
		a.did("add again", name, a.addArchive(ctx, name, a.Rng.Int64N(3)))
		return
	}
	if a.starts(ctx, 2) {
		return
	}
	switch n := a.Rng.IntN(24); {
	case n < 6:
		a.cancels(ctx)
	case n < 13:
		a.runs(ctx, name, known)
	case n < 15:
		_, err = a.store.Pause(ctx, name, a.by())
		a.did("pause", name, err)
	case n < 19:
		_, err = a.store.Resume(ctx, name, 0, a.by())
		a.did("resume", name, err)
	case n < 20:
		a.restarts(ctx, name)
	case n < 21 && a.w.s.people:
		_, err = a.store.Delete(ctx, name, a.by())
		a.did("delete", name, err)
	case n < 22:
		next := min(known.Watermark+1+a.Rng.Int64N(2), int64(len(a.w.repos[name].commits)))
		a.did("skip", name, a.store.Skip(ctx, name, next, a.by()))
	case n < 23 && known.First > 1:
		_, err = a.store.Backfill(ctx, name, 1+a.Rng.Int64N(known.First-1), known.First-1, a.by())
		a.did("backfill", name, err)
	default:
		baseline := known.Baseline
		if a.Rng.IntN(2) == 0 {
			baseline = a.Rng.Int64N(3)
		}
		err = a.addArchive(ctx, name, baseline)
		a.did("change settings", name, err)
	}
}

// cancels cancels an instance.
func (a *actor) cancels(ctx context.Context) {
	var ids []string
	for _, id := range slices.Sorted(maps.Keys(a.w.check.instances)) { // each draws a number: in one order
		if !a.w.check.instances[id].is.State.Over() || a.Rng.IntN(10) == 0 {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return
	}
	id := ids[a.Rng.IntN(len(ids))]
	_, err := a.store.Cancel(ctx, id, a.by())
	a.did("cancel", id, err)
}

// runs starts a task by hand.
func (a *actor) runs(ctx context.Context, name string, known revision.Archive) {
	run := revision.Run{Task: names[a.Rng.IntN(len(names))], Force: a.Rng.IntN(3) == 0}
	if a.Rng.IntN(2) == 0 && known.Watermark > 0 {
		run.Revision = 1 + a.Rng.Int64N(known.Watermark)
	}
	if a.Rng.IntN(3) == 0 {
		run.Key = "key" + string('a'+rune(a.Rng.IntN(3)))
	}
	run.Dependents = a.Rng.IntN(2) == 0
	if causes := a.w.check.causes(name); len(causes) > 0 && a.Rng.IntN(3) > 0 {
		of := &a.w.check.instances[causes[a.Rng.IntN(len(causes))]].is
		run.Task, run.Revision, run.Dependents = of.Task, of.Revision, true
	}
	run.Parameters = a.w.check.values(known, run)
	var err error
	if a.Rng.IntN(4) == 0 && run.Revision > 0 {
		run.Parameters = nil
		_, _, err = a.store.RunFailed(ctx, name, run, a.by())
		a.did("run what failed", name, err)
		return
	}
	_, err = a.store.StartRun(ctx, name, run, a.by())
	what := "run"
	if run.Force {
		what = "run with force"
	}
	a.did(what, name, err)
}

// heals runs again what others were skipped for, when all has come to rest, at most three times. It reports whether it
// has started anything.
func (a *actor) heals(ctx context.Context) bool {
	for _, name := range slices.Sorted(maps.Keys(a.w.repos)) {
		causes := a.w.check.causes(name)
		if len(causes) == 0 || a.w.healed == 3 || a.w.check.archives[name].is.Mode != revision.Active {
			continue
		}
		a.w.healed++
		of := &a.w.check.instances[causes[a.Rng.IntN(len(causes))]].is
		run := revision.Run{Task: of.Task, Revision: of.Revision, Dependents: true, Force: true}
		run.Parameters = a.w.check.values(a.w.check.archives[name].is, run)
		_, err := a.store.StartRun(ctx, name, run, a.by())
		a.did("run again, at rest", name, err)
		if err == nil {
			return true
		}
	}
	return false
}

// restarts lets an archive begin anew whose revisions were replaced.
func (a *actor) restarts(ctx context.Context, name string) {
	at := 1 + a.Rng.Int64N(int64(max(1, len(a.w.repos[name].commits))))
	_, err := a.store.Resume(ctx, name, at, a.by())
	a.did("restart", name, err)
}

// helps does what a person does when the faults have stopped: archives that were paused or stopped go on.
func (a *actor) helps(ctx context.Context) {
	for a.starts(ctx, 1) {
	}
	for _, name := range slices.Sorted(maps.Keys(a.w.repos)) {
		known, err := a.store.Archive(ctx, name)
		switch {
		case fault.Is(err, fault.NotFound):
		case err != nil:
			a.w.check.fail("the archive %s cannot be read: %v", name, err)
		case known.Mode == revision.Paused:
			_, err = a.store.Resume(ctx, name, 0, a.by())
			a.did("resume", name, err)
		case known.Mode == revision.Stopped && strings.Contains(known.Why, "revision"):
			_, err = a.store.Resume(ctx, name, 1, a.by())
			a.did("restart", name, err)
		}
	}
}
