package research

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// Examine checks a row of research against the rows that belong to it. It writes nothing. What it
// finds holds only if the row is still the same afterwards: the transactions that change what
// belongs to it change the row, too. A row of another kind is passed over. An error means that the
// row could not be checked, or cannot be decoded.
func (s *Store) Examine(ctx context.Context, row table.Raw) ([]Wrong, error) {
	x := &exam{Store: s, ctx: ctx, row: row}
	// The kind of a row is the first part of its partition. What follows is an id, as the doctor's
	// kinds have it: of a project, of an episode or clip with its project, or of a lease.
	kind, id, _ := strings.Cut(row.PK, "#")
	of := map[string]func(id string) error{"RESEARCHPROJECT": x.catalog, "EPISODE": x.episode,
		"CLIP":          x.clip,
		"RESEARCHLEASE": x.lease, "CLIPS": x.listed, "RESEARCHLINE": x.line, "RESULTS": x.result,
		"RESEARCHOPINIONS": x.differs,
		"RESEARCHCOUNTS":   x.exists, "RESEARCHWALK": x.exists}[kind]
	if of == nil {
		return nil, nil
	}

	err := of(id)
	return x.wrong, err
}

// lease checks that a lease that has not ended is on its episode, and in the line. One that is not
// on its episode does not exclude others.
func (x *exam) lease(id string) error {
	l, err := x.leaseRow(x.ctx, id)
	if err != nil || l.Rev == 0 || l.Ended > 0 {
		return err
	}

	e, err := x.episodeRow(x.ctx, l.Project, l.Episode)
	if err != nil {
		return err
	}

	on := func(h held) bool { return h.Lease == id && h.Until == l.Until }
	// A lease of an earlier analysis excludes nothing.
	if e.Round <= l.Round && !slices.ContainsFunc(e.Held, on) {
		x.add(RuleHeld, nil, "it is not on its episode %s/%s", l.Project, l.Episode)
	}

	err = x.needs(&l.Head, l.Project, dueKey(l.Until, "lease", id), id)
	if err != nil || l.waits() == 0 {
		return err
	}
	return x.needs(&l.Head, l.Project, pendingKey(l.waits(), id), id)
}

// line checks that a row of the line is where its owner says that it is. One that nobody owns is
// removed: it would be looked at in each pass, or counted as a work item.
func (x *exam) line(project string) error {
	var row lineRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}
	places, err := x.places(project, row.Owner)
	if err != nil {
		return err
	}

	if !slices.Contains(places, x.row.SK) {
		x.add(RuleLine, x.remove(row.Head), "its owner %s is not at this place", row.Owner)
	}
	return nil
}

// places are the places of the owner of the row in the line. None is at the time 0, so an end that
// the owner does not have is no place. The kind of the owner is that which the row's own place
// says.
func (x *exam) places(project, owner string) ([]string, error) {
	part := strings.SplitN(x.row.SK, "#", 4)
	if part[0] == pending || part[0] == dueSK && part[2] == "lease" {
		l, err := x.leaseRow(x.ctx, owner)
		if err != nil || l.Project != project {
			return nil, err
		}
		return []string{pendingKey(l.waits(), owner), dueKey(l.ends(), "lease", owner)}, nil
	}

	if part[0] == dueSK && part[2] == string(Clip) {
		c, err := x.clipRow(x.ctx, project, owner)
		if err != nil {
			return nil, err
		}
		return []string{dueKey(c.media.Deferred, string(Clip), owner)}, nil
	}

	e, err := x.episodeRow(x.ctx, project, owner)
	if err != nil {
		return nil, err
	}
	return []string{e.Place, e.Further, dueKey(e.media.Deferred, string(Episode), owner)}, nil
}

// result checks that a result is of an episode that exists, and has the key that it says. Nothing
// is repaired: a result is never changed.
func (x *exam) result(id string) error {
	var row resultRow
	err := x.row.Decode(&row)
	if err != nil {
		return err
	}

	var r Report
	err = json.Unmarshal([]byte(row.Text), &r)
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}

	if k := resultKey(&r); k != x.row.Key {
		x.add(RuleResult, nil, "it says that it is %s", k)
		return nil
	}

	k := mediaSubject(event.Episode, r.Project, r.Episode).Key()
	absent, err := x.absent(k, &episodeRow{})
	if absent {
		x.add(RuleResult, nil, "its episode %s has no row", id)
	}
	return err
}
