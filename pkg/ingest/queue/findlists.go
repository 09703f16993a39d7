package queue

import (
	"context"
	"slices"
	"strings"
	"time"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/table"
)

// Find selects jobs or batches, and a page of their list. A field that is empty selects all.
type Find struct {
	// Collections are those whose jobs or batches are listed; nil: all.
	Collections []string
	// Names lists the names of all collections. It is asked if all are listed, and the lists of all are not complete
	// yet.
	Names     func(ctx context.Context) ([]string, error)
	State     string
	Submitter string // exactly
	LocalID   string // exactly one of its local ids
	ARK       string // in canonical form
	Message   string // a part of it, in any case of letters
	// After and Before limit when it was created, in milliseconds since 1970: from After on, and before Before.
	After, Before int64
	// Oldest: the oldest first. A cursor belongs to its order.
	Oldest bool
	Cursor string
	Limit  int // items of a page, at most FindPage, which 0 stands for
	// Until is when the search ends at the latest. The page is short then, and its cursor goes on from there.
	Until time.Time
}

// entry is a row as the index "list" shows it, or one under which a job is listed, which has its place in the sort key.
type entry struct {
	table.Head
	Owner      string `dynamo:"owned_by"`
	ID         string `dynamo:"id"`
	State      string `dynamo:"job_state"`
	Said       string `dynamo:"said"`
	Collection string `dynamo:"coll"`
	Submitter  string `dynamo:"submitter"`
}

// listing is what is left of the list of a collection, or of a part of the list of all: the entries that are in all
// of its strands, which are in one order. So what has a state and a submitter is found without reading what has one
// of them.
type listing []*strand

// strand is what is left of a list: what was read of it, and the query for what follows.
type strand struct {
	query table.Query
	may   func(e entry) bool // whether an entry can be wanted; nil: each
	first int                // how many entries are read at first; 0: what a page needs
	seen  string             // the place up to which it was read
	order order
	found []entry
	last  bool // nothing follows
}

// order is that of the places of a list.
type order int

// Orders of lists.
const (
	newestFirst order = iota
	oldestFirst
)

// compare compares two places: it is negative if a is before b in the order.
func (o order) compare(a, b string) int {
	if o == oldestFirst {
		return strings.Compare(a, b)
	}
	return strings.Compare(b, a)
}

// before reports whether a is before b in the order.
func (o order) before(a, b string) bool { return o.compare(a, b) < 0 }

// How many entries are read at first of a list that has others than those that are wanted.
const (
	someOfTwo  = 100  // it is one of two lists of a collection, or has its messages
	manyOfTwo  = 500  // of all collections: what both have is rarer
	mostPassed = 5000 // all: of the states in which jobs do not rest, which have few
)

// named are the lists of a local id or an ARK, which are those of few jobs.
func (f *Find) named() (l listing) {
	if f.LocalID != "" {
		l = append(l, &strand{query: table.Query{PK: namedLocal(f.LocalID)}})
	}
	if f.ARK != "" {
		l = append(l, &strand{query: table.Query{PK: namedARK(f.ARK)}})
	}
	return l.atFirst(someOfTwo)
}

// ofCollections are the lists of collections, which have all that may be wanted, and as little else as possible. index
// begins the names of those in the index "list". Jobs that pass through a state are found in that: see passing.
func (f *Find) ofCollections(of, index string, names []string) (lists []listing) {
	for _, name := range names {
		var l listing
		switch {
		case f.State != "" && passing(of, f.State):
			l = append(l, &strand{query: table.Query{Index: "list", PK: index + name}, first: mostListed,
				may: func(e entry) bool { return e.State == f.State }})
		case f.State != "":
			l = append(l, &strand{query: table.Query{PK: namedState(of, name, f.State)}})
		}
		if f.Submitter != "" {
			l = append(l, &strand{query: table.Query{PK: namedSubmitter(of, name, f.Submitter)}})
		}
		if f.Message != "" {
			l = append(l, &strand{query: table.Query{PK: namedMessage(of, name)}, may: f.said,
				first: someOfTwo})
		}
		if len(l) == 0 {
			l = listing{{query: table.Query{Index: "list", PK: index + name}}}
		}
		lists = append(lists, l.atFirst(someOfTwo))
	}
	return lists
}

// ofAll are the parts of the lists of all collections. A page reads as few of them as it can: each entry says of which
// collection and by whom it is.
func (f *Find) ofAll(of string) (lists []listing) {
	few := passing(of, f.State)
	for part := range parts(of) {
		var l listing
		if f.State != "" {
			l = append(l, &strand{query: table.Query{PK: allState(of, part, f.State)},
				may: f.selects})
		}
		if f.Submitter != "" && !few && (f.State == "" || f.Message == "") {
			l = append(l, &strand{query: table.Query{PK: allSubmitter(of, part, f.Submitter)},
				may: f.selects})
		}
		if f.Message != "" {
			l = append(l, &strand{query: table.Query{PK: allMessage(of, part)}, first: someOfTwo,
				may: func(e entry) bool { return f.selects(e) && f.said(e) }})
		}
		switch {
		case len(l) == 0:
			l = listing{{query: table.Query{PK: namedAll(of, part)}, may: f.selects}}
		case few:
			l[0].first = mostPassed
		}
		lists = append(lists, l.atFirst(manyOfTwo))
	}
	return lists
}

// atFirst says how many entries of each of several lists are read at first.
func (l listing) atFirst(n int) listing {
	for _, p := range l {
		if len(l) > 1 && p.first == 0 {
			p.first = n
		}
	}
	return l
}

// selects reports whether an entry of the lists of all collections can be wanted.
func (f *Find) selects(e entry) bool {
	return (f.Collections == nil || slices.Contains(f.Collections, e.Collection)) &&
		(f.Submitter == "" || f.Submitter == e.Submitter)
}

// said reports whether an entry can be wanted, by its message. One that was cut may go on with what is looked for.
func (f *Find) said(e entry) bool {
	return strings.Contains(strings.ToLower(e.Said), strings.ToLower(f.Message)) ||
		strings.HasSuffix(e.Said, "…")
}

// settle drops entries that are not in all strands, until the first ones of all are the same or something has to be
// read. It reports whether there may be more.
func (l *listing) settle() bool {
	for {
		to, same := "", true // the place of the first entry that can be in all strands
		for _, p := range *l {
			if len(p.found) == 0 {
				if p.last {
					return false
				}
				continue
			}
			if head := p.found[0].ListSK; to == "" || p.order.before(to, head) {
				same = same && to == ""
				to = head
			} else {
				same = same && head == to
			}
		}
		if same {
			return true
		}
		for _, p := range *l {
			p.drop(to)
		}
	}
}

// drop drops what is before a place. What was not read of it is passed over.
func (p *strand) drop(place string) {
	n := 0
	for n < len(p.found) && p.order.before(p.found[n].ListSK, place) {
		n++
	}
	p.found = p.found[n:]
}

// ready reports whether the first entry is in all strands.
func (l *listing) ready() bool {
	return !slices.ContainsFunc(*l, func(p *strand) bool { return len(p.found) == 0 })
}

// at is the place of the first entry. If it is not known yet, all before the place was looked at.
func (l *listing) at() string {
	if l.ready() {
		return (*l)[0].found[0].ListSK
	}
	to := ""
	for _, p := range *l {
		if len(p.found) == 0 && (to == "" || p.order.before(to, p.seen)) {
			to = p.seen
		}
	}
	return to
}

// mostListed is the number of entries of a list that are read at once, unless it begins with more.
const mostListed = 1000

// first is the place of the first entry that can be in all strands, "" if nothing is known of it.
func (l *listing) first() (place string) {
	for _, p := range *l {
		if len(p.found) > 0 && (place == "" || p.order.before(place, p.found[0].ListSK)) {
			place = p.found[0].ListSK
		}
	}
	return place
}

// skip passes over what is before a place.
func (p *strand) skip(to string) {
	switch {
	case to == "" || !p.order.before(p.seen, to):
	case p.order == oldestFirst:
		p.query.From, p.query.Cursor = to, ""
	default:
		p.query.To, p.query.Cursor = to, ""
	}
}

// fill reads what follows of a strand, much more each time, and returns how many entries that were.
func (p *strand) fill(ctx context.Context, t *table.Table) (n int, err error) {
	next, err := t.Page(ctx, p.query, &p.found)
	if err != nil {
		return 0, err
	}
	p.query.Cursor, p.last = next, next == ""
	p.query.Limit = max(p.query.Limit, min(10*p.query.Limit, mostListed))
	for i := range p.found {
		if e := &p.found[i]; p.query.Index == "" {
			e.ID, e.ListSK = e.Owner, e.SK
		}
	}

	n, to := len(p.found), p.seen
	if n > 0 {
		p.seen = p.found[n-1].ListSK
	}
	// A range includes its ends.
	p.found = slices.DeleteFunc(p.found, func(e entry) bool {
		return e.ListSK == to || p.may != nil && !p.may(e)
	})
	return n, nil
}

// job reports whether a job is wanted. The index only finds it.
func (f *Find) job(j *ingest.Job) bool {
	return (f.State == "" || f.State == string(j.State)) &&
		f.common(j.Collection, j.Depositor(), j.Primary, j.LocalIDs, j.Message, j.Created)
}

// batch is job for a batch.
func (f *Find) batch(b *ingest.Batch) bool {
	return (f.State == "" || f.State == string(b.State)) &&
		f.common(b.Collection, b.Depositor(), b.Primary, b.LocalIDs, b.Message, b.Created)
}

func (f *Find) common(collection, submitter, ark string, localIDs []string, message string,
	created int64) bool {
	return (f.Collections == nil || slices.Contains(f.Collections, collection)) &&
		(f.Submitter == "" || f.Submitter == submitter) && (f.ARK == "" || f.ARK == ark) &&
		(f.LocalID == "" || slices.Contains(localIDs, f.LocalID)) &&
		strings.Contains(strings.ToLower(message), strings.ToLower(f.Message)) &&
		created >= f.After && (f.Before == 0 || created < f.Before)
}
