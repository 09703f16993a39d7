package revision

import (
	"context"
	"strings"

	"archivist/pkg/kernel/table"
	"archivist/pkg/revisions/workflow"
)

// locks checks that an instance has the lock with which it has run, and that it is let start when
// it is its turn. One that is parked at its turn, while something is still to be settled, is let
// start by that.
func (x *exam) locks(in *instanceRow) error {
	l, err := x.lockRow(x.ctx, in.Archive, in.Lock)
	if err != nil {
		return err
	}

	if in.Exec != "" && l.Holder != in.ID { // it keeps the lock from its first attempt to its end
		return x.unheld(in, l)
	}

	if in.State != workflow.Ready || !in.Parked {
		return nil
	}

	if in.Exec != "" { // it has the lock
		x.unparks(in)
		return nil
	}

	head, err := x.head(x.ctx, in.Archive, in.Lock)
	if err != nil || l.Holder != "" || head != in.ID {
		return err
	}

	// One of these lets it start, perhaps.
	ended, err := x.first(x.ctx, kind(archiveOf(in.Archive), toSettle))
	if err != nil || ended != "" {
		return err
	}

	x.unparks(in)
	return nil
}

// unparks adds that it is an instance's turn of its lock, and that nothing lets it start.
func (x *exam) unparks(in *instanceRow) {
	x.add(ruleLock, x.changing(in.ID, func(c *change) error { c.in().Parked = false; return nil }),
		"it is its turn of the lock %s, and nothing lets it start", in.Lock)
}

// holds reports whether an instance has run with a lock, and has not ended: then it is the holder.
func (r *instanceRow) holds(l *lockRow) bool {
	return r.Rev > 0 && !r.State.Over() && r.Exec != "" && r.Lock != "" &&
		lockKey(r.Archive, r.Lock) == l.Key()
}

// unheld is an instance that runs without its lock. It gets it, unless another one has it by right:
// then two run at once, and a person has to decide.
func (x *exam) unheld(in *instanceRow, l *lockRow) error {
	// Another instance that runs with this lock has it by right.
	held := false
	if l.Holder != "" {
		h, err := x.instanceRow(x.ctx, l.Holder)
		if err != nil {
			return err
		}
		held = h.holds(l)
	}

	var repair func(context.Context) error
	if !held {
		right := *l
		right.Holder = in.ID
		repair = x.Making(&in.Head,
			func(tx *table.Tx) { put(tx, &right, right.Rev) })
	}

	x.add(ruleLock, repair, "it has run with the lock %s, which %q has", in.Lock, l.Holder)
	return nil
}

// lock checks that who has a lock has not ended, and a row of its line.
func (x *exam) lock(id string) error {
	if x.SK != "LOCK" {
		return x.line(id)
	}

	at, name, _ := strings.Cut(id, "#")
	var l lockRow
	err := x.Decode(&l)
	if err != nil || l.Holder == "" {
		return err
	}

	in, err := x.instanceRow(x.ctx, l.Holder)
	if err != nil || in.holds(&l) {
		return err
	}

	what := "has not run with it"
	switch {
	case in.Rev == 0:
		what = "does not exist"
	case in.State.Over():
		what = "has ended: " + string(in.State)
	}

	x.add(ruleLock, func(ctx context.Context) error { return x.unlock(ctx, l.Holder, at, name) },
		"%s has the lock, and %s", l.Holder, what)
	return nil
}

// unlock takes a lock from who does not run with it, and lets the next one start. Another repair
// can have given it to who does: then it does nothing.
func (x *exam) unlock(ctx context.Context, holder, ref, name string) error {
	l, err := x.lockRow(ctx, ref, name)
	if err != nil || l.Holder != holder {
		return err
	}

	l.Holder = ""
	err = x.save(archiveOf(ref), func(tx *table.Tx) error { tx.Save(l); return nil })(ctx)
	if err != nil {
		return err
	}

	head, err := x.head(ctx, ref, name)
	if err != nil || head == "" {
		return err
	}

	_, err = x.change(ctx, head, guard{},
		func(c *change) error { c.in().Parked = false; return nil })
	return err
}
