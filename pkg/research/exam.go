package research

import (
	"context"

	"archivist/pkg/events/check"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// The rules between the rows of research, by the names of the doctor's findings. They hold after each transaction of
// research.
const (
	ruleProject = "research-project" // a row is of a project that exists
	ruleLine    = "research-line"    // a row of the line is where its owner says that it is
	rulePlace   = "research-place"   // an episode, clip or lease has its rows in the line
	ruleCatalog = "research-catalog" // a clip has its row in the catalog, and a number of its own
	ruleLeased  = "research-held"    // the leases on an episode are those that are live
	ruleNumbers = "research-numbers" // researched are only numbers that clips have
	ruleResult  = "research-result"  // of an episode that exists; one that counts is there
	ruleDiffers = "research-differs" // pairs whose results differ are listed for a person
	ruleReviews = "research-reviews" // places that wait for a person are listed
	ruleCounts  = "research-counts"  // the counts are what the rows add up to
)

// Rules are the rules of research.
func Rules(pg *check.Page) check.Rules {
	s := &Store{Table: pg.Table, Now: pg.Now, NewID: pg.NewID}
	r := &recounts{Store: s}
	// A rule of the rows of a kind; id is that of their partition.
	rule := func(f func(x *exam, id string) error) func(context.Context, *check.Row) error {
		return func(ctx context.Context, row *check.Row) error {
			return f(&exam{Store: s, Row: row, ctx: ctx}, row.ID())
		}
	}

	// A rule of the rows of subjects.
	of := func(t event.Type, name string, f func(x *exam, id string) error) func(context.Context, *check.Row) error {
		return check.WithHistory(t, name, rule(f))
	}

	return check.Rules{
		Name:  "research",
		State: &r.all,
		Begin: r.begin,
		Row:   r.add,
		End:   r.compare,
		Kinds: []check.Kind{
			{PK: "RESEARCHPROJECT", SK: "RESEARCHPROJECT", Rule: of(event.ResearchProject, "project", (*exam).catalog)},
			{PK: "EPISODE", SK: "EPISODE", Rule: of(event.Episode, "episode", (*exam).episode)},
			{PK: "CLIP", SK: "CLIP", Rule: of(event.Clip, "clip", (*exam).clip)},
			{PK: "RESEARCHLEASE", SK: "RESEARCHLEASE", Expires: true,
				Rule: of(event.ResearchLease, "lease", (*exam).lease)},
			{PK: "CLIPS", Rule: rule((*exam).listed)},
			{PK: "RESEARCHLINE", SK: ready + "#", Rule: rule((*exam).line)},
			{PK: "RESEARCHLINE", SK: closed + "#", Rule: rule((*exam).line)},
			{PK: "RESEARCHLINE", SK: further + "#", Rule: rule((*exam).line)},
			{PK: "RESEARCHLINE", SK: pending + "#", Rule: rule((*exam).line)},
			{PK: "RESEARCHLINE", SK: dueSK + "#", Rule: rule((*exam).line)},
			{PK: "RESEARCHCOUNTS", SK: "places#", Rule: rule((*exam).exists)},
			{PK: "RESEARCHCOUNTS", SK: "round#", Rule: rule((*exam).exists)},
			{PK: "RESEARCHWALK", SK: "WALK", Rule: rule((*exam).exists)},
			{PK: "RESEARCHWALK", SK: "SAMPLES", Rule: rule((*exam).exists)},
			{PK: "RESEARCHOPINIONS", SK: "by#", Rule: rule((*exam).said)},
			{PK: "RESEARCHOPINIONS", SK: "waveform", Rule: rule((*exam).said)},
			{PK: "RESEARCHOPINIONS", SK: ofPair, Rule: rule((*exam).differs)},
			{PK: "RESEARCHFEEDS"},
			{PK: "RESEARCHERS", Expires: true},
			{PK: "RESEARCHTAKEN", Expires: true},
			{PK: "RESEARCHCONDUCT", Expires: true},
			{PK: "RESULTS", Rule: rule((*exam).result)},
		},
	}
}

// exam is the examination of one row.
type exam struct {
	*Store
	*check.Row
	ctx context.Context
}

// add adds what is wrong; repair may be nil.
func (x *exam) add(rule string, repair func(ctx context.Context) error, what string, args ...any) {
	command := check.Restore
	switch {
	case repair != nil:
		command = check.Repair
	case rule == ruleLeased:
		command = "revoke the leases; their pairs without results are then assigned again"
	}
	x.Add(rule, command, repair, what, args...)
}

// project reads the project of the row; nil: there is none, which is wrong.
func (x *exam) project(name string) (*projectRow, error) {
	p, err := x.projectRow(x.ctx, name)
	if fault.Is(err, fault.NotFound) {
		x.add(ruleProject, nil, "there is no project %s", name)
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
	found, err := x.Read(x.ctx, k, row)
	return !found && err == nil, err
}

// at checks that an owner has its rows in the line.
func (x *exam) at(of *table.Head, project, owner string, places []string) error {
	for _, sk := range places {
		err := x.Owns(x.ctx, rulePlace, of, owner, lineKey(project, sk), nil)
		if err != nil {
			return err
		}
	}
	return nil
}

// away checks that what is withdrawn, quarantined or deferred is listed, and nothing else is. The
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

	x.add(rulePlace, func(ctx context.Context) error {
		return x.change(ctx, w, By{}, func(*change) error { return nil })
	}, "it is at %q %q of the index list, and should be at %q %q", is.ListPK, is.ListSK,
		should.ListPK, should.ListSK)
}
