package research

import (
	"context"
	"fmt"

	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// Rule is a rule between the rows of research. The names are parts of the doctor's findings.
type Rule string

// The rules. They hold after each transaction of research.
const (
	RuleProject Rule = "project" // a row is of a project that exists
	RuleLine    Rule = "line"    // a row of the line is where its owner says that it is
	RulePlace   Rule = "place"   // an episode, clip or lease has its rows in the line
	RuleCatalog Rule = "catalog" // a clip has its row in the catalog, and a number of its own
	RuleHeld    Rule = "held"    // the leases on an episode are those that are live
	RuleNumbers Rule = "numbers" // researched are only numbers that clips have
	RuleResult  Rule = "result"  // a result is of an episode that exists
	RuleDiffers Rule = "differs" // pairs whose results differ are listed for a person
	RuleCounts  Rule = "counts"  // the counts are what the rows add up to
)

// Wrong is a rule that does not hold. Repair corrects what follows from other rows; nil: a person
// has to act. A Stale of Repair means that something has changed since: the row is to be examined
// again.
type Wrong struct {
	Rule   Rule
	What   string // in words, of the row that was examined
	Repair func(ctx context.Context) error
}

// exam is the examination of one row.
type exam struct {
	*Store
	ctx   context.Context
	row   table.Raw
	wrong []Wrong // what was found so far
}

// add adds what is wrong; repair may be nil.
func (x *exam) add(r Rule, repair func(ctx context.Context) error, what string, args ...any) {
	x.wrong = append(x.wrong, Wrong{r, fmt.Sprintf(what, args...), repair})
}

// project reads the project of the row; nil: there is none, which is wrong.
func (x *exam) project(name string) (*projectRow, error) {
	p, err := x.projectRow(x.ctx, name)
	if fault.Is(err, fault.NotFound) {
		x.add(RuleProject, nil, "there is no project %s", name)
		return nil, nil
	}
	return p, err
}

// exists checks a row of which only the project is known.
func (x *exam) exists(name string) error {
	_, err := x.project(name)
	return err
}

// absent reports whether there is no row, and reads it otherwise.
func (x *exam) absent(k table.Key, row table.Row) (bool, error) {
	err := x.Table.Get(x.ctx, k, row)
	if fault.Is(err, fault.NotFound) {
		return true, nil
	}
	return false, err
}

// commit makes a repair on the condition that the row that was examined is the same: it was derived
// from that.
func (x *exam) commit(of *table.Head, put func(tx *table.Tx)) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		put(tx)
		tx.Require(of.Key(), "rev = ?", of.Rev)
		return tx.Commit(ctx)
	}
}

// needs checks that an owner has its row in the line. One that is missing is made; one of another
// owner makes that repair fail, and the doctor examines that row, too.
func (x *exam) needs(of *table.Head, project, sk, owner string) error {
	k := lineKey(project, sk)
	var there lineRow
	absent, err := x.absent(k, &there)
	if err != nil || there.Owner == owner {
		return err
	}

	what := "its row in the line, %s, is missing"
	if !absent {
		what = "its row in the line, %s, is of another"
	}

	x.add(RulePlace, x.commit(of, func(tx *table.Tx) {
		tx.Insert(&lineRow{Head: newHead(k), Owner: owner})
	}), what, sk)

	return nil
}

// remove is the repair that removes a row which nothing owns, if it is still the same.
func (x *exam) remove(head table.Head) func(context.Context) error {
	return func(ctx context.Context) error {
		tx := x.Table.Begin(x.NewID())
		tx.Remove(&head)
		return tx.Commit(ctx)
	}
}

// away checks that what is withdrawn, set aside or deferred is listed, and nothing else is. The
// repair is a change that does nothing: to save derives the list.
func (x *exam) away(is table.Head, w want, m *Media) {
	should, kind := is, Episode
	if w.clip != "" {
		kind = Clip
	}

	setAway(&should, kind, w.project, w.episode+w.clip, m)
	if is == should {
		return
	}

	x.add(RulePlace, func(ctx context.Context) error {
		return x.change(ctx, w, By{}, func(*change) error { return nil })
	}, "it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK,
		should.ListPK, should.ListSK)
}
