package component

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sync/errgroup"

	"archivist/pkg/kernel/definition"
	"archivist/pkg/kernel/fault"
	"archivist/pkg/kernel/table"
)

// active reads a component that is not deleted, with what its items are judged by. Otherwise it is
// a NotFound.
func (s *Store) active(ctx context.Context, name string) (*compiled, error) {
	r, err := s.definitionRow(ctx, name)
	if err != nil {
		return nil, err
	}
	if r.State != active {
		return nil, missing(name)
	}
	c, err := r.compiled()
	return &c, err
}

// Counts counts the items of a component's line: CountsOf, by its name. A NotFound means that there is no such
// component.
func (s *Store) Counts(ctx context.Context, name string) (all Counts, err error) {
	c, err := s.active(ctx, name)
	if err != nil {
		return all, err
	}
	return s.CountsOf(ctx, Component{Definition: c.Definition, born: c.born})
}

// CountsOf counts the items of a component that was read. It costs one call, and if items are ready those of Oldest.
func (s *Store) CountsOf(ctx context.Context, c Component) (all Counts, err error) {
	all, err = s.counts(ctx, c.Name, c.born)
	if err == nil && all.Ready > 0 {
		all.Oldest, err = s.Oldest(ctx, c.Name)
	}
	return all, err
}

// counts adds up the rows of counts. The oldest item is not in them.
func (s *Store) counts(ctx context.Context, name string, born int64) (all Counts, err error) {
	var rows []countRow
	q := table.Query{PK: linePK(name), Prefix: countPrefix(born)}
	_, err = s.Table.Page(ctx, q, &rows)
	for i := range rows {
		all.addRow(&rows[i])
	}
	return all, err
}

// Counted is a component with its counts, but the time of its oldest item: see Store.Oldest.
type Counted struct {
	Name   string
	Paused bool
	Counts Counts
}

// Tally counts the items of all components, by name. It costs one call, and one for each component.
func (s *Store) Tally(ctx context.Context) ([]Counted, error) {
	rows, err := s.definitionRows(ctx)
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(r definitionRow) bool { return r.State != active })

	all := make([]Counted, len(rows))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(talliers)
	for i := range rows {
		g.Go(func() error {
			c, err := rows[i].compiled()
			if err != nil {
				return err
			}
			all[i] = Counted{Name: c.Name, Paused: c.Paused}
			all[i].Counts, err = s.counts(ctx, c.Name, c.born)
			return err
		})
	}
	return all, g.Wait()
}

// talliers is how many components are counted at once.
const talliers = 8

// Oldest is the time of the first event of the oldest ready item, of any priority, in milliseconds since 1970; 0:
// none is ready. It costs one call for each priority that items have, and one more.
func (s *Store) Oldest(ctx context.Context, name string) (oldest int64, err error) {
	for rank := 0; rank < 9; rank++ {
		var page []placeRow
		q := table.Query{PK: linePK(name), From: fmt.Sprintf("%s#%d#", Ready, rank), To: Ready + "#~", Limit: 1}
		if _, err := s.Table.Page(ctx, q, &page); err != nil {
			return 0, err
		}

		if len(page) == 0 {
			break
		}

		p := placed(page[0].SK)
		if oldest == 0 || p.First < oldest {
			oldest = p.First
		}
		rank = 9 - p.Priority
	}
	return oldest, nil
}

// Placed is an item in a component's line. Times are milliseconds since 1970.
type Placed struct {
	Item  string `json:"item"`
	Class string `json:"class"`

	// Priority and First, the time of the first event, are of Ready.
	Priority int   `json:"priority,omitempty"`
	First    int64 `json:"first,omitempty"`

	// From is of Later: when it is ready.
	From int64 `json:"from,omitempty"`

	// Until is of Running: when the lease ends.
	Until int64 `json:"until,omitempty"`
}

// placed reads a place. Ids of items can have a # themselves: they are the rest of the key.
func placed(place string) Placed {
	class, rest, _ := strings.Cut(place, "#")
	p := Placed{Class: class, Item: rest}
	if class == Failed {
		return p
	}

	number, rest, _ := strings.Cut(rest, "#")
	n, _ := strconv.ParseInt(number, 10, 64)
	switch p.Item = rest; class {
	case Ready:
		first, item, _ := strings.Cut(rest, "#")
		p.First, _ = strconv.ParseInt(first, 10, 64)
		p.Item, p.Priority = item, 9-int(n)
	case Later:
		p.From = n
	case Running:
		p.Until = n
	}
	return p
}

// Line lists a page of the items of a class in a component's line, the first to be worked on first.
// Items that are Done have no row; an item's own page has them. An Invalid means that there is no
// such class, a NotFound that there is no such component. next is "" at the end.
func (s *Store) Line(ctx context.Context, name, class, cursor string,
	limit int) (list []Placed, next string,
	err error) {
	if err := definition.Choice("class", class, Ready, Later, Running, Failed); err != nil {
		return nil, "", err
	}

	if _, err := s.active(ctx, name); err != nil {
		return nil, "", err
	}

	var page []placeRow
	q := table.Query{PK: linePK(name), Prefix: class + "#", Cursor: cursor, Limit: limit}
	next, err = s.Table.Page(ctx, q, &page)
	for i := range page {
		list = append(list, placed(page[i].SK))
	}
	return list, next, err
}

// Standing is where an item stands in a component's line: the verdict of its conditions, and what
// else holds it up.
type Standing struct {
	// Verdict is that of the events of the item, whether or not it is being worked on.
	Verdict
	Item string `json:"item"`

	// Class is where it is in the line; "" nowhere.
	Class string `json:"class,omitempty"`

	// Run is the one that is working on it, if it is Running, and Until the end of its lease, in
	// milliseconds since 1970.
	Run   string `json:"run,omitempty"`
	Until int64  `json:"until,omitempty"`

	// Waits is why it is worked on later: the component said so.
	Waits *Wait `json:"waits,omitempty"`

	// Paused is the component.
	Paused bool `json:"paused,omitempty"`

	// Filling: the item is not yet in the line by the present definition, because the back-fill is
	// at work.
	Filling bool `json:"filling,omitempty"`
}

// Standing says whether a component can work on an item, and which is the first condition that does
// not hold. It reads the events that there are now. It judges by the present definition, which the
// line may not follow yet (Filling). An Invalid means that the id is not one, a NotFound that there
// is no such item or component.
func (s *Store) Standing(ctx context.Context, name, item string) (x Standing, err error) {
	kind, subject, err := ParseID(item)
	if err != nil {
		return x, err
	}

	it, row, err := s.look(ctx, kind+":"+subject)
	if err != nil {
		return x, err
	}

	c, err := s.active(ctx, name)
	if err != nil {
		return x, err
	}

	return c.standing(it, row.Epoch), nil
}

// standing is where an item stands. epoch is that by which its row was placed.
func (c *compiled) standing(it *Item, epoch int64) Standing {
	x := Standing{
		Verdict: c.judge(it),
		Item:    it.ID,
		Class:   classOf(c.place(it)),
		Paused:  c.Paused,
		Filling: epoch < c.backfilled,
	}

	if claim, ok := it.Claims[c.Name]; ok {
		x.Run, x.Until = claim.Run, claim.Until
	}

	if w, ok := it.Waits[c.Name]; ok {
		x.Waits = &w
	}
	return x
}

// look reads an item with the events of its subject, and writes nothing. A missing one is a
// NotFound. The row has the same item, and the places as they are stored.
func (s *Store) look(ctx context.Context, id string) (*Item, *itemRow, error) {
	row, err := s.row(ctx, id)
	if err != nil {
		return nil, nil, err
	}

	if err := s.follow(ctx, row); err != nil {
		return nil, nil, err
	}

	if row.it.Version == 0 && row.it.Applied == 0 {
		return nil, nil, fault.New(fault.NotFound, "there is no item %s", definition.Clip(id, 100))
	}
	return &row.it, row, nil
}

// MaxDryRun is how many items one call of DryRun looks at.
const MaxDryRun = 500

// DryRun lists items that a component with this definition could work on now, whether or not there
// is such a component: at most limit, of at most MaxDryRun that a call looks at. next is where the
// next call goes on, "" at the end. An Invalid means that the definition or the cursor is not
// accepted. Items that are damaged, or behind their subject, are judged as their rows say, or left
// out.
func (s *Store) DryRun(ctx context.Context, d Definition, cursor string,
	limit int) (ready []string, next string,
	err error) {
	if err := s.check(&d); err != nil {
		return nil, "", err
	}

	c, err := compile(d)
	if err != nil {
		return nil, "", err
	}

	at, err := parseWalk(cursor)
	if err != nil {
		return nil, "", err
	}

	for looked := 0; looked < MaxDryRun && len(ready) < limit && at.Shard < shards; {
		ids, after, err := s.items(ctx, uint32(at.Shard), at.Cursor, min(100, limit-len(ready)))
		if err != nil {
			return nil, "", err
		}

		rows, err := s.rows(ctx, ids)
		if err != nil {
			return nil, "", err
		}

		for _, r := range rows {
			if r.damaged {
				continue
			}
			if v := c.judge(&r.it); v.Ready && v.NotBefore <= millis(s.Now()) {
				ready = append(ready, r.id)
			}
		}

		looked += max(1, len(ids))
		at.advance(after)
	}
	return ready, at.String(), nil
}
