package formatcounts

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"archivist/pkg/events/check"
	"archivist/pkg/events/consumer"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
	"archivist/pkg/objects/inventory"
)

// recount is the sum of what was counted of the objects of a collection, as far as rows were
// read, and the revision that the row of the collection had when the run began. It is stored in
// cursors.
type recount struct {
	Rev int64  `json:"rev"`
	Sum Counts `json:"sum"`
}

// mostRecounted bounds the recounts of a run, in bytes of their formats, to the first
// collections by name: all are in one cursor.
const mostRecounted = 150_000

// size is how large counts are in a cursor, about.
func (c Counts) size() (n int) {
	for _, f := range c.Formats {
		n += 100 + len(f.ID) + len(f.MediaType) + len(f.Name)
	}
	return n
}

// Rules are the rules of the counts of formats: what was counted of an object is that of its
// newest version, and the counts of a collection are the sum of those of its objects.
func Rules(pg *check.Page, consumers *consumer.Checked) check.Rules {
	r := &recounts{Store: Store{Table: pg.Table, NewID: pg.NewID}, pg: pg, consumers: consumers}
	return check.Rules{
		Name: Name,
		Kinds: []check.Kind{
			check.Subjects(event.Object, r.checkObject),
			{PK: "OBJECT", SK: totals},
			{PK: totals},
		},
		State: &r.state,
		Begin: r.begin,
		Row:   r.add,
		End:   r.compare,
	}
}

// recounts are the recounts of collections by name.
type recounts struct {
	Store
	pg        *check.Page
	consumers *consumer.Checked
	state     struct {
		All map[string]*recount `json:"all"`
		Cut bool                `json:"cut,omitempty"` // there are collections that are not recounted
	}
}

// checkObject checks that the newest version of an object was counted, once the consumer has
// passed its newest event. What is counted is read from the storage, so a rebuild of the
// consumer counts what is missing.
func (r *recounts) checkObject(ctx context.Context, x *check.Row) error {
	var o inventory.Object
	if !x.Into(&o) {
		return nil
	}

	of := event.Subject{Type: event.Object, ID: o.ARK}
	passed, err := r.consumers.PassedNewest(ctx, x, Name, of, o.Number)
	if err != nil || !passed {
		return err
	}

	var s Share
	if _, err := x.Read(ctx, shareKey(o.ARK), &s); err != nil {
		return err
	}
	if s.Version == o.HeadOf+1 && s.Collection == o.Collection {
		return nil // the object has a version more since its row was read
	}
	if s.Version != o.HeadOf || s.Collection != o.Collection {
		x.Subject = o.ARK
		x.Add("format-counts", "archivist consumer rebuild "+Name+` --reason "format counts"`, nil,
			"version %d is counted in the formats of %q; the newest is version %d, in %q", s.Version, s.Collection,
			o.HeadOf, o.Collection)
	}
	return nil
}

// begin begins to recount the collections that have counts.
func (r *recounts) begin(ctx context.Context) error {
	all, cut, err := r.totals(ctx, MaxCollections)
	r.state.All, r.state.Cut = map[string]*recount{}, cut
	n := 0
	for _, t := range all {
		n += t.size()
		if n > mostRecounted {
			r.state.Cut = true
			break
		}
		r.state.All[t.Collection()] = &recount{Rev: t.Rev}
	}
	return err
}

// add adds what was counted of an object, if a row has that.
func (r *recounts) add(row table.Raw) {
	if row.SK != totals || !strings.HasPrefix(row.PK, "OBJECT#") {
		return
	}
	var s Share
	if row.Decode(&s) != nil {
		return
	}
	if r.state.All[s.Collection] == nil {
		if r.state.Cut {
			return
		}
		r.state.All[s.Collection] = &recount{} // its row is lost, or newer than the run
	}
	r.state.All[s.Collection].Sum.Add(s.Counts)
}

// compare compares the rows of collections with their recounts, at the end of all rows. A
// collection in which anything was counted meanwhile is left out: the rows of its objects were
// not read at one moment.
func (r *recounts) compare(ctx context.Context) (wrong []check.Problem, err error) {
	for _, name := range slices.Sorted(maps.Keys(r.state.All)) {
		t, err := r.Total(ctx, name)
		if err != nil {
			return nil, err
		}
		should := r.state.All[name]
		if t.Rev != should.Rev || t.alike(should.Sum) {
			continue
		}
		wrong = append(wrong, check.Problem{
			Invariant: "format-counts", Subject: "collection:" + name, Command: check.Repair,
			Evidence: fmt.Sprintf("%s are counted; the rows of its objects have %s", t.text(), should.Sum.text()),
			Repair: func(ctx context.Context) error {
				return r.pg.Commit(ctx, func(tx *table.Tx) error {
					t.Counts = should.Sum
					tx.InsertOrSave(&t)
					return nil
				})
			},
		})
	}
	return wrong, nil
}

// alike reports whether counts are the same, in whatever order and by whatever names in words.
func (c Counts) alike(other Counts) bool {
	return reflect.DeepEqual(c.plain(), other.plain())
}

// plain are the counts in one order, without names in words.
func (c Counts) plain() Counts {
	c.Formats = c.Sorted()
	for i := range c.Formats {
		c.Formats[i].Name = ""
	}
	return c
}

// text are the sums, in words.
func (c Counts) text() string {
	return fmt.Sprintf("%d objects, %d files and %d bytes in %d formats",
		c.Objects, c.Files, c.Bytes, len(c.Formats))
}
