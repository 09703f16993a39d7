package component

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"archivist/pkg/definition"
	"archivist/pkg/fault"
	"archivist/pkg/table"
)

// Counts are how many items are in each class of a component's line.
type Counts struct {
	Ready   int64 `json:"ready"`
	Later   int64 `json:"later"`
	Running int64 `json:"running"`
	Failed  int64 `json:"failed"`
	Done    int64 `json:"done"`
	// Oldest is the time of the first event of the oldest ready item, in milliseconds since 1970. 0: there
	// is none.
	Oldest int64 `json:"oldest,omitempty"`
}

// add adds items of a class.
func (c *Counts) add(class string, n int64) {
	switch class {
	case Ready:
		c.Ready += n
	case Later:
		c.Later += n
	case Running:
		c.Running += n
	case Failed:
		c.Failed += n
	case Done:
		c.Done += n
	}
}

func (c *Counts) addRow(r *countRow) {
	c.Ready += r.Ready
	c.Later += r.Later
	c.Running += r.Running
	c.Failed += r.Failed
	c.Done += r.Done
}

// active reads a component that is not deleted, with what its items are judged by.
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

// Counts counts the items of a component's line. It costs 2 to 11 calls, however many there are.
func (s *Store) Counts(ctx context.Context, name string) (all Counts, err error) {
	c, err := s.active(ctx, name)
	if err != nil {
		return all, err
	}
	var rows []countRow
	q := table.Query{PK: linePK(name), Prefix: countPrefix(c.born)}
	if _, err := s.Table.Page(ctx, q, &rows); err != nil {
		return all, err
	}
	for i := range rows {
		all.addRow(&rows[i])
	}
	if all.Ready > 0 {
		all.Oldest, err = s.oldest(ctx, name)
	}
	return all, err
}

// oldest is the time of the first event of the oldest ready item, of any priority.
func (s *Store) oldest(ctx context.Context, name string) (oldest int64, err error) {
	for rank := range 9 {
		var page []placeRow
		q := table.Query{PK: linePK(name), Prefix: fmt.Sprintf("%s#%d#", Ready, rank), Limit: 1}
		if _, err := s.Table.Page(ctx, q, &page); err != nil {
			return 0, err
		}
		if len(page) == 0 {
			continue
		}
		if p := placed(page[0].SK); oldest == 0 || p.First < oldest {
			oldest = p.First
		}
	}
	return oldest, nil
}

// Placed is an item in a component's line. Times are milliseconds since 1970.
type Placed struct {
	Item     string `json:"item"`
	Class    string `json:"class"`
	Priority int    `json:"priority,omitempty"` // of Ready
	First    int64  `json:"first,omitempty"`    // of Ready: its first event
	From     int64  `json:"from,omitempty"`     // of Later: when it is ready
	Until    int64  `json:"until,omitempty"`    // of Running: when the lease ends
}

// placed reads a place.
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
// Items that are Done have no row; an item's own page has them.
func (s *Store) Line(ctx context.Context, name, class, cursor string, limit int) (list []Placed, next string,
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

// Explanation says why a component works on an item, or does not.
type Explanation struct {
	Verdict        // of the events of the item, whether or not it is being worked on
	Item    string `json:"item"`
	Class   string `json:"class,omitempty"`  // where it is in the line; "" nowhere
	Run     string `json:"run,omitempty"`    // that is working on it, if it is Running
	Until   int64  `json:"until,omitempty"`  // the end of the run's lease, in milliseconds since 1970
	Waits   *Wait  `json:"waits,omitempty"`  // why it is worked on later: the component said so
	Paused  bool   `json:"paused,omitempty"` // the component

	// Filling: the item is not yet in the line by the present definition, because the back-fill is at work.
	Filling bool `json:"filling,omitempty"`
}

// Explain says whether a component can work on an item, and which is the first condition that does not
// hold. It reads the events that there are now.
func (s *Store) Explain(ctx context.Context, name, item string) (x Explanation, err error) {
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
	x = Explanation{Verdict: c.judge(it), Item: it.ID, Class: classOf(c.place(it)), Paused: c.Paused,
		Filling: row.Epoch < c.filled}
	if claim, ok := it.Claims[name]; ok {
		x.Run, x.Until = claim.Run, claim.Until
	}
	if w, ok := it.Waits[name]; ok {
		x.Waits = &w
	}
	return x, nil
}

// look reads an item with the events of its subject, and writes nothing. A missing one is a NotFound.
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

// DryRun lists items that a component with this definition could work on now, whether or not there is
// such a component: at most limit, of at most MaxDryRun that a call looks at. next is where the next
// call goes on, "" at the end.
func (s *Store) DryRun(ctx context.Context, d Definition, cursor string, limit int) (ready []string, next string,
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
