package eventsim

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/events/consumer"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// spec is what a consumer has to do, decided here and not by the code under test.
type spec struct {
	name    string
	filter  string
	selects func(*committed) bool
	order   string
	merges  bool
}

// Names of the consumers.
const (
	ordered    = "ordered"
	unordered  = "unordered"
	coalescing = "coalescing"
)

// specs are the consumers. The order key of the first is drawn for each seed.
var specs = []spec{
	{name: ordered, filter: "Object|Job+*", order: consumer.OrderSubject, selects: func(s *committed) bool {
		return (s.row.SubjectType == "Object" || s.row.SubjectType == "Job") && s.row.Cause.AskedBy() != ordered
	}},
	{name: unordered, filter: "*+*", order: consumer.OrderNone, selects: func(*committed) bool { return true }},
	{name: coalescing, filter: "Object+create|modify|delete:Batch+*",
		order: consumer.OrderSubject, merges: true,
		selects: func(s *committed) bool { return s.row.SubjectType == "Object" || s.row.SubjectType == "Batch" }},
}

// consumed is one consumer, as the specification has it.
type consumed struct {
	spec
	c        *checker
	cursors  map[string]*cursor
	effects  map[string]int    // event → how often it had its effect
	answered map[string]int    // event → when a run last knew of its success
	by       map[string]string // event → the holder of the lease of that run
	passed   map[string]int    // event → when it was last parked, or began to wait
	skipped  map[string]bool   // by an admin
	forgiven map[string]bool   // at some time
	parked   map[string]bool
	pending  map[string]bool // waits until its key is quiet
}

// keeps is the part of a row that keeps events: parked ones, or those of a key that is not
// quiet yet.
type keeps struct {
	Refs []ref `dynamo:"refs"`
}

// orders is the part of a cursor that says what an admin wants to be done with parked events.
type orders struct {
	Orders []struct {
		Discard bool `dynamo:"discard"`
	} `dynamo:"orders"`
}

type ref struct {
	ID string `dynamo:"id"`
}

func newConsumed(c *checker, s spec) *consumed {
	return &consumed{spec: s, c: c, cursors: map[string]*cursor{}, effects: map[string]int{},
		answered: map[string]int{}, by: map[string]string{}, passed: map[string]int{}, skipped: map[string]bool{},
		forgiven: map[string]bool{},
		parked:   map[string]bool{}, pending: map[string]bool{}}
}

// cursor is a consumer's place in one partition.
type cursor struct {
	of        *consumed
	partition string
	seq       int64
	holder    string
	actor     *actor // that took the lease
	discards  bool   // an admin has ordered that parked events are discarded
}

// consumerRow checks one row of a consumer, and returns the cursor that it belongs to.
func (c *checker) consumerRow(ch tabletest.Change, pk, sk string) *cursor {
	switch {
	case strings.HasPrefix(sk, "CURSOR#"):
		of := c.consumers[strings.TrimPrefix(pk, "CONSUMER#")]
		return of.cursorRow(ch, strings.TrimPrefix(sk, "CURSOR#"))
	case strings.HasPrefix(pk, "PARKED#"), strings.HasPrefix(pk, "PENDING#"):
		kind, rest, _ := strings.Cut(pk, "#")
		name, partition, _ := strings.Cut(rest, "#")
		of := c.consumers[name]
		kept := of.parked
		if kind == "PENDING" {
			kept = of.pending
		}
		cur := of.cursor(partition)
		of.keptRow(ch, kind, kept, cur.discards)
		return cur
	}
	return nil
}

// keptRow checks a change of a row that keeps events.
func (of *consumed) keptRow(ch tabletest.Change, kind string, kept map[string]bool,
	discards bool) {
	for _, r := range adversary.Read[keeps](ch.Before).Refs {
		delete(kept, r.ID)
	}
	for _, r := range adversary.Read[keeps](ch.After).Refs {
		kept[r.ID] = true
		if !slices.Contains(adversary.Read[keeps](ch.Before).Refs, r) {
			of.passed[r.ID] = of.c.time()
			of.c.w.Met(of.name + ": " + strings.ToLower(kind))
		}
	}
	if ch.After == nil && discards {
		for _, r := range adversary.Read[keeps](ch.Before).Refs {
			of.skips(r.ID, "discarded by an admin")
		}
	}
}

func (of *consumed) cursor(partition string) *cursor {
	if of.cursors[partition] == nil {
		of.cursors[partition] = &cursor{of: of, partition: partition}
	}
	return of.cursors[partition]
}

// cursorRow checks a change of a cursor: who moves it, and past what.
func (of *consumed) cursorRow(ch tabletest.Change, partition string) *cursor {
	c, cur, a := of.c, of.cursor(partition), of.c.w.acting()
	seq, held := number(ch.After, "seq"), text(ch.Before, "holder")
	admin := a != nil && a.skips || text(ch.Before, "reset_id") != text(ch.After, "reset_id")
	switch {
	case ch.After == nil:
		c.fail("%s: its cursor in %s was removed", of.name, partition)
	case seq < cur.seq && !admin:
		c.fail("%s: its cursor in %s fell from %d to %d", of.name, partition, cur.seq, seq)
	case seq > c.partition(partition).head:
		c.fail("%s: its cursor in %s is at %d, beyond the head %d", of.name, partition, seq,
			c.partition(partition).head)
	case seq != cur.seq && !admin && (held == "" || a != cur.actor):
		c.fail("%s: its cursor in %s was moved from %d to %d by a run that had lost its lease (of %q)", of.name,
			partition, cur.seq, seq, held)
	}
	of.covers(ch, held)
	for _, s := range c.partition(partition).events[min(cur.seq, seq):max(cur.seq, seq)] {
		of.passes(s, seq > cur.seq, admin, held)
	}
	if holder := text(ch.After, "holder"); holder != "" && holder != held {
		cur.actor = a
	}
	cur.seq, cur.holder = seq, text(ch.After, "holder")
	orders := adversary.Read[orders](ch.After).Orders
	cur.discards = len(orders) > 0 && orders[0].Discard
	return cur
}

// covers counts what a change of a cursor shows.
func (of *consumed) covers(ch tabletest.Change, held string) {
	holder := text(ch.After, "holder")
	if held != "" && holder != "" && holder != held {
		of.c.w.Met("lease taken from a dead or slow run")
	}
	stop, before := adversary.Read[stops](ch.After).Stop.Kind, adversary.Read[stops](ch.Before).Stop.Kind
	if stop != "" && stop != before {
		of.c.w.Met(of.name + ": stopped: " + stop)
	}
}

// stops is the part of a cursor that says why it does not move.
type stops struct {
	Stop struct {
		Kind string `dynamo:"kind"`
	} `dynamo:"stop_why"`
}

// passes is called for an event that a cursor passes, forwards or backwards.
func (of *consumed) passes(s *committed, forwards, admin bool, holder string) {
	id := s.row.ID
	switch {
	case !of.selects(s):
	case admin && forwards && of.answered[id] == 0:
		of.skips(id, "skipped by an admin")
	case admin:
		delete(of.skipped, id)
	case forwards && of.by[id] != holder && !of.parked[id] && !of.pending[id]:
		of.c.fail("%s: its cursor passed event %d of %s (%s), which its run has neither handled nor parked", of.name,
			s.seq, s.partition, s.row.Key())
	}
}

// skips is called for an event that an admin does not want to be handled. A late call may
// handle it all the same.
func (of *consumed) skips(id, how string) {
	of.skipped[id], of.forgiven[id] = true, true
	of.c.w.Met(how)
}

// accounts checks that each event that the cursor has passed was handled, or is kept.
func (cur *cursor) accounts() {
	of := cur.of
	for _, s := range of.c.partition(cur.partition).events[:cur.seq] {
		id := s.row.ID
		if !of.selects(s) || of.skipped[id] || of.parked[id] || of.pending[id] {
			continue
		}
		if of.answered[id] <= of.passed[id] {
			of.c.fail("%s: event %d of %s (%s) was passed, and is neither handled nor kept", of.name, s.seq,
				s.partition, s.row.Key())
		}
	}
}

// effect is called when a target makes the effect of an item.
func (of *consumed) effect(item consumer.Item) {
	ids := item.IDs
	if len(ids) == 0 {
		ids = []string{item.ID}
	}
	if len(ids) > 1 {
		of.c.w.Met("coalesced")
	}
	for _, id := range ids {
		s := of.c.ids[id]
		switch {
		case s == nil || s.seq == 0:
			of.c.fail("%s was called with event %s, which has no place", of.name, id)
			return
		case !of.selects(s):
			of.c.fail("%s was called with %s, which its filter does not select", of.name, s.row.Key())
		}
		if of.effects[id] == 0 && of.order != consumer.OrderNone {
			of.inOrder(s, ids)
		}
	}
	for _, id := range ids {
		of.effects[id]++
		of.c.w.Met("effects of " + of.name)
		if of.effects[id] > 1 {
			of.c.w.Met("effects of " + of.name + " again")
		}
	}
}

// inOrder checks that all earlier events of the same key had their effects before.
func (of *consumed) inOrder(s *committed, together []string) {
	for _, before := range of.earlier(s) {
		id := before.row.ID
		if of.selects(before) && of.effects[id] == 0 && !of.forgiven[id] && !slices.Contains(together, id) {
			of.c.fail("%s: %s (%d of %s) had its effect before %s (%d of %s, parked: %v)", of.name, s.row.Key(), s.seq,
				s.partition, before.row.Key(), before.seq, before.partition, of.parked[id])
			return
		}
	}
}

// earlier lists the events before s that have the same key: of its subject, or of its
// collection, as far as the log has an order between them.
func (of *consumed) earlier(s *committed) (all []*committed) {
	if of.order == consumer.OrderSubject {
		return of.c.subjects[s.subject][:s.row.Version-1]
	}
	for name, p := range of.c.partitions {
		switch {
		case name == s.partition:
			all = append(all, p.events[:s.seq-1]...)
		case logOf(name) == logOf(s.partition) && generation(name) < generation(s.partition):
			all = append(all, p.events...)
		}
	}
	return all
}

// handled is called when a run knows that the target has handled an item.
func (of *consumed) handled(a *actor, item consumer.Item) {
	ids := item.IDs
	if len(ids) == 0 {
		ids = []string{item.ID}
	}
	for _, id := range ids {
		s := of.c.ids[id]
		cur := of.cursor(s.partition)
		if cur.actor == a {
			of.answered[id], of.by[id] = of.c.time(), cur.holder
		}
	}
}

// sortedParked lists the parked events.
func (of *consumed) sortedParked() []string { return slices.Sorted(maps.Keys(of.parked)) }

// atRest names what a consumer has not done.
func (of *consumed) atRest() error {
	for _, name := range of.c.sortedPartitions() {
		for _, s := range of.c.partitions[name].events {
			id := s.row.ID
			if of.selects(s) && of.effects[id] == 0 && !of.skipped[id] {
				return fmt.Errorf("%s has not handled event %d of %s (%s); parked: %v, waits: %v, the cursor is at %d",
					of.name, s.seq, name, s.row.Key(), of.parked[id], of.pending[id], of.cursor(name).seq)
			}
		}
	}
	return nil
}
