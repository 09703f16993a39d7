// Package check is how a package says which rules its rows keep: each rule is beside the code that
// writes the rows, and the doctor (package doctor) is the runner that reads all rows, asks the rules, reports what
// they find and repairs it.
//
//	func Rules(pg *check.Page, s *Store) check.Rules {
//		return check.Rules{Kinds: []check.Kind{
//			{PK: "THING", SK: "THING", Rule: s.checkThing},
//		}}
//	}
//
//	func (s *Store) checkThing(ctx context.Context, x *check.Row) error {
//		var r thing
//		if !x.Into(&r) {
//			return nil
//		}
//		if x.Subject = "thing:" + r.Name; r.Size < 0 {
//			x.Add(ruleSize, check.Restore, nil, "its size is %d", r.Size)
//		}
//		return x.History(ctx, event.Subject{…}, r.Version, "")
//	}
//
// A rule between several rows is checked with several reads, and there is no snapshot of a table. So the runner reads
// a row that seems wrong once more: what a rule has found counts only if the row is still the same. Whoever changes
// what belongs to a row therefore writes the row, too, in the same transaction. A repair is made on the condition that
// nothing of what it follows from has changed.
package check

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/guregu/dynamo/v2"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// ErrChanged is the error of a rule that has seen a row change which belongs to its row: the row is checked again.
var ErrChanged = errors.New("a row changed during the check")

// Kind is a kind of rows: the partition's name before "#", and the sort key or how it begins.
type Kind struct {
	PK, SK string
	// Expires allows a TTL. Of a row that no kind allows to expire it is a finding: what it says would be lost without
	// a trace.
	Expires bool
	// Needs are the keys of rows that the rule asks for with Paired: they are read for all rows of a page at once.
	Needs func(row table.Raw) []table.Key
	// Rule is nil for rows without a rule to others; that they can be read, and do not expire, is checked of all. It
	// returns errors of reads only; what is wrong it adds to the row.
	Rule func(ctx context.Context, x *Row) error
}

// Subjects are the own rows of subjects of a type, also those of other packages.
func Subjects(of event.Type, rule func(ctx context.Context, x *Row) error) Kind {
	k := event.Subject{Type: of}.Key()
	return Kind{PK: strings.TrimSuffix(k.PK, "#"), SK: k.SK, Rule: rule}
}

// Events are the events of subjects of a type.
func Events(of event.Type, rule func(ctx context.Context, x *Row) error) Kind {
	k := Subjects(of, rule)
	k.SK = event.Prefix
	return k
}

// WithHistory is a rule of the own rows of subjects without states: their histories are checked first. Problems are
// about name:ID.
func WithHistory(of event.Type, name string,
	rule func(ctx context.Context, x *Row) error) func(ctx context.Context, x *Row) error {
	return func(ctx context.Context, x *Row) error {
		x.Subject = name + ":" + x.ID()
		err := x.Numbered(ctx, of)
		if err != nil {
			return err
		}
		return rule(ctx, x)
	}
}

// of reports whether a row is of the kind. Events are of a kind only if its sort key says so: they are in the
// partitions of their subjects.
func (k *Kind) of(row table.Key) bool {
	name, _, _ := strings.Cut(row.PK, "#")
	events := strings.HasPrefix(row.SK, event.Prefix) && !strings.HasPrefix(k.SK, event.Prefix)
	return name == k.PK && strings.HasPrefix(row.SK, k.SK) && !events
}

// Rules are the rules of one package, for one page of a run. Of its kinds, the first that a row is of counts. Several
// packages can have rules of the same rows: what is made from an object is checked where the object is.
type Rules struct {
	// Name is that under which State is kept; "" without.
	Name  string
	Kinds []Kind
	// State is what is kept between the pages of a run, a pointer: it is stored as JSON with the run.
	State any
	// Begin is called before the first row of a run is read, Rows before the rows of each page are checked, Row after
	// each row, and End after the last one. Each may be nil.
	Begin func(ctx context.Context) error
	Rows  func(ctx context.Context, rows []table.Raw) ([]Problem, error)
	Row   func(row table.Raw)
	End   func(ctx context.Context) ([]Problem, error)
}

// kindsOf are the kinds that a row is of: at most one of each package.
func kindsOf(all []Rules, row table.Key) (kinds []*Kind) {
	for i := range all {
		for n := range all[i].Kinds {
			if k := &all[i].Kinds[n]; k.of(row) {
				kinds = append(kinds, k)
				break
			}
		}
	}
	return kinds
}

// unmoved reports whether a row is an event of a collection by an earlier release: such events are moved when the
// collection is next changed.
func unmoved(row table.Key) bool {
	return !strings.Contains(row.PK, "#") && strings.HasPrefix(row.SK, event.Prefix)
}

// Needs are the keys of rows that rules need for some rows of a page.
func Needs(all []Rules, rows []table.Raw) (keys []table.Key) {
	for _, r := range rows {
		for _, k := range kindsOf(all, r.Key) {
			if k.Needs != nil {
				keys = append(keys, k.Needs(r)...)
			}
		}
	}
	return keys
}

// Check checks the row by all rules of its kind. It returns errors of reads only; what is wrong is added to the
// problems.
func (x *Row) Check(ctx context.Context, all []Rules) error {
	kinds := kindsOf(all, x.Key)
	if len(kinds) == 0 {
		if !unmoved(x.Key) {
			x.Add("row-kind", "find out what wrote it: no part of this release reads it", nil,
				"no part of the system has rows of this kind")
		}
		return nil
	}

	var h table.Head
	if !x.Into(&h) {
		return nil
	}

	expires := slices.ContainsFunc(kinds, func(k *Kind) bool { return k.Expires })
	if h.ExpiresAt > 0 && !expires {
		// The condition refuses the repair if the row was written since: its writer decides then whether it expires.
		keep := x.Setting(h.Rev, func(u *dynamo.Update) { u.Remove("gone") })
		x.Add("row-expires", "", keep, "DynamoDB will delete the row, which must stay")
	}

	var failed error
	for _, k := range kinds {
		if k.Rule != nil && !x.spoilt() {
			x.Subject = "" // each rule names its own
			failed = errors.Join(failed, k.Rule(ctx, x))
		}
	}
	return failed
}

// spoilt reports whether the row cannot be read, or is not what its key says: then the rules of other packages mean
// nothing for it.
func (x *Row) spoilt() bool {
	return slices.ContainsFunc(x.Problems, func(p Problem) bool {
		return p.Invariant == unreadable || p.Invariant == "row-key" || p.Invariant == "state"
	})
}
