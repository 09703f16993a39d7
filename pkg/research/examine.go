package research

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/event"
)

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

	on := func(h leasedPairs) bool { return h.Lease == id && h.Until == l.Until }
	// A lease of an earlier analysis excludes nothing.
	if e.Generation <= l.Generation && !slices.ContainsFunc(e.Leased, on) {
		x.add(ruleLeased, nil, "it is not on its episode %s/%s", l.Project, l.Episode)
	}

	return x.at(&l.Head, l.Project, id, l.places())
}

// line checks that a row of the line is where its owner says that it is. One that nobody owns is
// removed: it would be looked at in each pass, or counted as a work item.
func (x *exam) line(project string) error {
	var row lineRow
	if !x.Into(&row) {
		return nil
	}

	if due := dueOf(x.Key); x.Late(due) {
		x.Add("overdue", "look at the function pending-work: it runs each minute", nil, "it is due since %d", due)
	}

	places, err := x.placesOf(project, row.Owner)
	if err == nil && !slices.Contains(places, x.SK) {
		x.add(ruleLine, x.Removing(), "its owner %s is not at this place", row.Owner)
	}
	return err
}

// placesOf are the places of the owner of the row in the line. The kind of the owner is that which the row's own place
// says.
func (x *exam) placesOf(project, owner string) ([]string, error) {
	part := strings.SplitN(x.SK, "#", 4)
	if part[0] == pending || part[0] == dueSK && part[2] == "lease" {
		l, err := x.leaseRow(x.ctx, owner)
		if err != nil || l.Project != project {
			return nil, err
		}
		return l.places(), nil
	}

	if part[0] == dueSK && part[2] == string(Clip) {
		c, err := x.clipRow(x.ctx, project, owner)
		if err != nil {
			return nil, err
		}
		return c.places(), nil
	}

	e, err := x.episodeRow(x.ctx, project, owner)
	if err != nil {
		return nil, err
	}
	return e.places(), nil
}

// result checks that a result is of an episode that exists, and has the key that it says. Nothing is repaired: a
// result is never changed. Of the results of an episode that a page reads, the first is checked: the rule is about
// all of them.
func (x *exam) result(id string) error {
	var row resultRow
	if x.Before.PK == x.PK || !x.Into(&row) {
		return nil
	}

	var r Report
	err := json.Unmarshal([]byte(row.Text), &r)
	if err != nil {
		return fmt.Errorf("the result cannot be read: %w", err)
	}

	if k := resultKey(&r); k != x.Key {
		x.add(ruleResult, nil, "it says that it is %s", k)
		return nil
	}

	k := mediaSubject(event.Episode, r.Project, r.Episode).Key()
	absent, err := x.absent(k, &episodeRow{})
	if absent {
		x.add(ruleResult, nil, "its episode %s has no row", id)
	}
	return err
}
