package revision

import (
	"cmp"
	"context"
	"fmt"

	"archivist/pkg/kernel/explain"
)

// Explain names the one thing that an archive ("maps"), a revision ("maps/12") or an instance
// ("maps/12/index") waits for, by following what each waits for to the root. "maps/12" is in the
// present epoch of the archive if its first part has no epoch and there is such a revision; an
// instance is named by its exact id.
//
// What is no id is an Invalid; an archive or an instance that does not exist a NotFound. A revision
// that nobody knows is explained: it waits for its notice.
func (s *Store) Explain(ctx context.Context, text string) (x explain.Explanation, err error) {
	id, err := ParseID(text)
	if err != nil {
		return x, err
	}

	a, at, err := s.locate(ctx, id.Ref)
	if err != nil {
		return x, err
	}

	e := &explainer{Store: s, ctx: ctx, a: a, ref: at}
	var first explain.Part
	switch {
	case id.Task != "":
		e.ref = id.Ref
		first, err = e.instance(text)
	case id.N > 0:
		first, err = e.revision(id.N)
	default:
		first, err = e.archive()
	}

	if err != nil {
		return x, err
	}
	return explain.Chain(first, e.instance)
}

// skip is how a person skips a revision.
func (e *explainer) skip(what string, n int64) explain.Step {
	return explain.Step{What: what, Command: fmt.Sprintf("archivist archive skip %s %d --reason TEXT", e.a.Name, n)}
}

// archive explains an archive: who holds it, why its next revision is not planned, or what runs.
func (e *explainer) archive() (explain.Part, error) {
	a := e.a.Archive
	st := explain.Part{Link: explain.Link{Kind: explain.Archive, ID: a.Name, State: string(a.Mode)}}
	if e.held(&st) {
		return st, nil
	}

	next, err := e.planning()
	if err != nil || next.Waits != "" {
		next.Kind, next.ID, next.State = st.Kind, st.ID, st.State
		return next, err
	}

	busy, err := e.first(e.ctx, kind(a.Name, running))
	if err != nil {
		return st, err
	}

	st.Waits, st.Why = explain.Nothing, "no revision was notified yet"
	if a.First > 0 {
		st.Why = fmt.Sprintf("all revisions that are known are planned, up to %d", a.Watermark)
	}

	if busy != "" {
		st.Waits, st.Why, st.On = explain.Worker, st.Why+"; tasks run, the first is "+busy, busy
	}
	return st, nil
}

// planning says why the next revision is not planned; nothing (no Waits) if no revision waits.
// Trouble comes first: a gap behind it does not matter yet.
func (e *explainer) planning() (st explain.Part, err error) {
	a := &e.a.Archive
	if t := a.Trouble; t != nil {
		return explain.Part{
			Link: explain.Link{Waits: explain.Source,
				Why: fmt.Sprintf("revision %d cannot be read: %s. It was tried %d "+
					"times, and is tried again at %s", t.Revision, t.Reason, t.Tries, clock(t.Next))},
			Since: t.Since,
			Until: t.Next,
			Do:    []explain.Step{e.skip("If it can never be read, skip it", t.Revision)},
		}, nil
	}

	g, err := e.gapOf(e.ctx, e.a)
	if err != nil {
		return st, err
	}

	if g != nil {
		why := fmt.Sprintf("revision %d was not notified, but revision %d was, at %s", g.Missing,
			g.Behind,
			clock(g.Since))
		if g.Looks > 0 {
			why += fmt.Sprintf(". The archive is asked for it at %s", clock(g.Looks))
		}
		return explain.Part{Link: explain.Link{Waits: explain.Gap, Why: why}, Since: g.Since, Until: g.Looks,
			Do: []explain.Step{
				{What: "Notify it", Command: fmt.Sprintf("archivist archive revision notify %s/%d", a.Name, g.Missing)},
				e.skip("If there is none, skip it", g.Missing)}}, nil
	}

	if a.First == 0 {
		return st, nil
	}

	r, err := e.revisionRow(e.ctx, a.Ref(), a.Watermark+1)
	if err != nil || r.Rev == 0 {
		return st, err
	}

	st.Waits, st.Why = explain.Turn,
		fmt.Sprintf("revision %d is planned next, within seconds", a.Watermark+1)
	st.Since = r.Notified
	return st, nil
}

// revision explains a revision: by its instances, if it is planned, else by why it is not.
func (e *explainer) revision(n int64) (explain.Part, error) {
	r, err := e.revisionRow(e.ctx, e.ref, n)
	st := explain.Part{Link: explain.Link{Kind: explain.Revision, ID: revisionID(e.ref, n),
		State: cmp.Or(r.State, "not known")}}
	if err != nil {
		return st, err
	}

	if r.Planned > 0 {
		return e.planned(st, r)
	}

	if e.ref != e.a.Ref() {
		st.Waits, st.Why = explain.Nothing, "the archive has begun anew since: it is never planned"
		return st, nil
	}

	// Nothing will ever plan it in its turn.
	if r.Rev > 0 && n < e.a.First {
		st.Waits, st.Why = explain.Backfill,
			fmt.Sprintf("the archive begins at revision %d; a back-fill plans earlier ones",
				e.a.First)
		st.Do = []explain.Step{{What: "Plan it, too",
			Command: fmt.Sprintf("archivist archive backfill %s %d %d --reason TEXT", e.a.Name, n, n)}}
		return st, nil
	}

	if e.held(&st) {
		return st, nil
	}

	why, err := e.planning()
	// What keeps the next revision from being planned does not matter to one that nobody knows.
	if err == nil && (r.Rev == 0 && why.Waits != explain.Gap || e.a.First == 0) {
		why = explain.Part{Link: explain.Link{Waits: explain.Gap,
			Why: fmt.Sprintf("nobody has notified revision %d", n)}}
	}

	why.Kind, why.ID, why.State = st.Kind, st.ID, st.State
	return why, err
}

// planned explains a revision that is planned, by the first of its instances that has not ended; if
// all have, by how it was planned.
func (e *explainer) planned(st explain.Part, r *revisionRow) (explain.Part, error) {
	st.Waits = explain.Nothing
	if r.Over < r.All {
		p, err := e.Plan(e.ctx, e.ref, r.Revision.Number)
		if err != nil {
			return st, err
		}
		for _, in := range p.Tasks {
			if !in.State.Over() {
				st.Waits, st.On = explain.Edge, in.ID
				st.Why = fmt.Sprintf(
					"%d of its %d tasks have ended; the first that has not is %s",
					r.Over, r.All,
					in.ID)
				return st, nil
			}
		}
	}

	switch {
	case r.State == Invalid:
		st.Why = "its definition is invalid, so that it has no tasks"
		if len(r.Problems) > 0 {
			st.Why += fmt.Sprintf(": %s:%d: %s", r.Problems[0].File, r.Problems[0].Line,
				r.Problems[0].Message)
		}
	case r.State == SkippedBy:
		st.Why = "it was skipped: " + r.Reason
	default:
		st.Why = fmt.Sprintf("all of its %d tasks have ended", r.All)
	}
	return st, nil
}
