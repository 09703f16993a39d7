// Package explain has the one form in which every part of the system says what a thing waits for: since when, until
// when, who comes before it, what it waits for in the end, and what a person can do.
package explain

import (
	"archivist/pkg/kernel/fault"
)

// Wait is what kind of thing is waited for.
type Wait string

// What things wait for. Most are of several kinds of things; a lock, for example, is waited for by jobs and by tasks.
const (
	Nothing Wait = "nothing" // it has ended, or there is nothing to be done
	Person  Wait = "person"  // a person must act
	Hold    Wait = "hold"    // the end of a hold or a pause
	Turn    Wait = "turn"    // nothing is missing: the system goes on by itself, within minutes
	Lock    Wait = "lock"    // another works on the same, or comes first
	Limit   Wait = "limit"   // as many run as may run at once
	Space   Wait = "space"   // work space
	Start   Wait = "start"   // a worker begins shortly
	Worker  Wait = "worker"  // a worker works on it
	Source  Wait = "source"  // what it reads from, or sends to, does not answer, or asks to wait
	Retry   Wait = "retry"   // the time of its next try
	Time    Wait = "time"    // its next time by a schedule
	Parts   Wait = "parts"   // the parts that it consists of, such as the jobs of a batch
	Cancel  Wait = "cancel"  // the operation that ends the jobs of its cancelled batch
	Delete  Wait = "delete"  // it is being deleted

	// Of archives, revisions and tasks.
	Gap        Wait = "gap"        // a revision that was not notified
	Backfill   Wait = "backfill"   // it is before the first revision: only a back-fill plans it
	Commit     Wait = "commit"     // COMMIT of its revision
	Edge       Wait = "edge"       // another task that it depends on
	Filter     Wait = "filter"     // what changed is compared with its filter of paths
	Superseded Wait = "superseded" // a task that it supersedes, and that may still finish
	Grace      Wait = "grace"      // the end of a task that was told to end

	// Of components, consumers and research.
	Event      Wait = "event"      // an event, or another change, that its conditions need
	Log        Wait = "log"        // the events before it in the log
	Researcher Wait = "researcher" // a researcher who can take it
)

// Waits lists all of them, in the order above.
var Waits = []Wait{Nothing, Person, Hold, Turn, Lock, Limit, Space, Start, Worker, Source, Retry, Time, Parts, Cancel,
	Delete, Gap, Backfill, Commit, Edge, Filter, Superseded, Grace, Event, Log, Researcher}

// Link is a thing, and what it waits for.
type Link struct {
	Kind  string // what it is: one of the kinds below
	ID    string
	State string
	Waits Wait
	Why   string // one or two sentences for people; no program reads them
}

// Kinds of things. Most are the types of subjects of events.
const (
	Batch      = "Batch"
	Upload     = "Upload"
	Job        = "Job"
	Operation  = "Operation"
	Collection = "Collection"
	Object     = "Object"
	Version    = "Version"
	Consumer   = "Consumer"
	Component  = "Component"
	Run        = "ComponentRun"
	Item       = "ComponentItem"
	Archive    = "Archive"
	Revision   = "Revision"
	Task       = "Task"
	Project    = "ResearchProject"
	Episode    = "Episode"
	Clip       = "Clip"
	Lease      = "ResearchLease"
	Member     = "Researcher"
	Happened   = "Event"
)

// Step is something that a person can do. Command is the command line that does it, "" if there is none.
type Step struct{ What, Command string }

// Fact is something that operators want to know of a thing, e.g. {"execution", "01M…-00001-2"}.
type Fact struct{ Name, Value string }

// Part explains one thing: a Link, and what is behind it. Times are milliseconds since 1970; 0: there is none, or it is
// not known.
type Part struct {
	Link
	On    string // the id of what it waits for, and that can be explained next; "": it is the root
	Since int64  // it waits
	Until int64  // it waits at most
	Ahead *Ahead // the line that it stands in; nil: it is in none
	Do    []Step // what a person can do about it, most likely first
	Facts []Fact // without empty values
}

// Ahead is how many come before a thing, and, of some lines, who.
type Ahead struct {
	N    int
	More bool // and more: they were not counted

	Line  LineKind // what the line is before; "": who stands in it is not known
	Of    string   // the name of the gate, or what the lock is of
	Stop  string   // what keeps it from passing, in a few words without numbers
	First []Before // the first of those that come before it, in their order
}

// LineKind is what a line is before.
type LineKind string

// The kinds of lines.
const (
	AtGate  LineKind = "gate" // jobs pass it in their order, as far as what they need is free
	ForLock LineKind = "lock" // one has what the others wait for
)

// Before is one that comes before another. One whose ID is "" is nobody's business.
type Before struct {
	Kind, ID, State string
	Collection      string // "": it is not known
	Since           int64  // it is in its state
	Has             bool   // it has the lock
}

// Explanation is what a thing waits for in the end. The Part is that of the thing, but for Since, Until and Do: those
// are of the root, where something can be done.
type Explanation struct {
	Part
	Chain  []Link // from the thing to the root
	Cut    bool   // the chain is longer
	Waited int64  // the Since of the thing itself
}

// Root is the last link: what is waited for in the end.
func (x *Explanation) Root() Link { return x.Chain[len(x.Chain)-1] }

// mostLinks bounds a chain: each link costs some requests. Waits have no cycles, but what is read while things change
// can look like one.
const mostLinks = 20

// Chain follows what each part waits for to the root: the first that waits for no other, or the last of mostLinks. next
// explains a part by its id; one that is not there any more ends the chain.
func Chain(first Part, next func(id string) (Part, error)) (x Explanation, err error) {
	x.Part, x.Waited = first, first.Since
	for at := first; ; {
		x.Chain = append(x.Chain, at.Link)
		x.Since, x.Until, x.Do = at.Since, at.Until, at.Do
		x.Cut = at.On != "" && len(x.Chain) >= mostLinks
		if at.On == "" || x.Cut {
			return x, nil
		}

		at, err = next(at.On)
		if fault.Is(err, fault.NotFound) {
			return x, nil
		}
		if err != nil {
			return x, err
		}
	}
}

// Only is the explanation of a thing that waits for no other that could be explained.
func Only(p Part) Explanation {
	return Explanation{Part: p, Chain: []Link{p.Link}, Waited: p.Since}
}

// Add adds a fact, unless its value is empty.
func (p *Part) Add(name, value string) {
	if value != "" {
		p.Facts = append(p.Facts, Fact{name, value})
	}
}
