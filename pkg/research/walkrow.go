package research

import (
	"context"

	"archivist/pkg/kernel/table"
)

// walkRow says how far the closed episodes have been looked at since the catalog grew. A pass that
// dies loses its last steps of the walk, which the next one repeats: to look at an episode twice
// changes nothing.
//
// Places are sort keys of the line. A place ends with "#" before the first episode of its class,
// and is "ended" or "counted" behind the last one.
type walkRow struct {
	table.Head
	Catalog int64  `dynamo:"catalog_no"` // of the project when it began
	After   string `dynamo:"after_sk"`   // the last closed episode that was looked at

	// After a clip was withdrawn, quarantined or brought back, the pairs of all episodes are counted
	// again: of the closed ones, then of those that are ready. The closed ones are left out if they
	// were looked at since.
	Recount int64  `dynamo:"recount_ms"`     // that of the project when it began
	Counted string `dynamo:"count_after_sk"` // the last that was counted

	// By which form the pairs of all episodes were counted: an earlier version of the program counted
	// only those that are researched.
	Form int64 `dynamo:"count_form,omitempty"`

	// The last episode at which a pass has looked for pairs that need results of others; "": none.
	Further string `dynamo:"further_after_sk,omitempty"`
}

// walkKey is the key of the walk of a project.
func walkKey(project string) table.Key {
	return table.Key{PK: "RESEARCHWALK#" + project,
		SK: "WALK"}
}

// walk is the walk of a project. One that does not exist yet has looked at nothing.
func (all rowSet) walk(project string) (*walkRow, error) {
	k := walkKey(project)
	r := &walkRow{Head: newHead(k)}
	err := all.decode(k, r)
	if r.Rev == 0 {
		r.Form = countForm
	}
	return r, err
}

// countForm is the present form of the counts of pairs.
const countForm = 1

// former reports whether the pairs of a project are still to be counted by the present form, which
// has more only of a project with a quorum.
func (w *walkRow) former(p *projectRow) bool { return w.Form < countForm && p.def.quorum() > 1 }

// walk reads how far the assigner has looked at episodes.
func (s *Store) walk(ctx context.Context, project string) (*walkRow, error) {
	all, err := s.read(ctx, walkKey(project))
	if err != nil {
		return nil, err
	}
	return all.walk(project)
}

// passed reports whether the assigner has looked at an episode, which is closed because nothing
// was due. One with MaxLeases leases is closed although something may be due.
func (w *walkRow) passed(e *episodeRow) bool {
	return class(e.Place) == closed && e.Place <= w.After && len(e.Leased) < MaxLeases
}

// counts reports whether the pairs of an episode were counted again since the clips have changed:
// the walk that looks at closed episodes and the one that counts have both ended, and none is asked
// for since.
func (w *walkRow) counts(e *episodeRow, p *projectRow) bool {
	over := w.After >= ended && (w.Counted == "" || w.Counted >= counted)
	return over && w.Recount >= p.Recount && !w.former(p) && e.media.live()
}
