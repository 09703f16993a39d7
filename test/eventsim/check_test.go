package eventsim

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"archivist/pkg/events/envelope"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// committed is one event that was committed, and its place in the log, as the specification
// of the log has it.
type committed struct {
	row       event.Row
	event     envelope.Event
	subject   string // e.g. "OBJECT#c0-1"
	partition string
	seq       int64 // 0: it has no place yet
}

// partition is one partition of the log.
type partition struct {
	name   string
	head   int64
	closed bool
	events []*committed // those with a place, in order
}

// checker checks every committed write against the invariants of the log and the consumers.
// It keeps the first violation.
type checker struct {
	w          *world
	err        error
	clock      int // what happened first
	subjects   map[string][]*committed
	ids        map[string]*committed
	partitions map[string]*partition
	consumers  map[string]*consumed
	splits     map[string]int64 // log → its generation
	waiting    int              // committed events without a place
	said       []*committed     // whose rows the present transaction changes
}

func newChecker(w *world) *checker {
	c := &checker{w: w, subjects: map[string][]*committed{}, ids: map[string]*committed{},
		partitions: map[string]*partition{}, consumers: map[string]*consumed{}, splits: map[string]int64{}}
	for _, spec := range specs {
		if spec.name == ordered {
			spec.order = w.s.order
		}
		c.consumers[spec.name] = newConsumed(c, spec)
	}
	return c
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.Log("VIOLATION %v", c.err)
	}
}

// time is a moment in the order of what happens.
func (c *checker) time() int {
	c.clock++
	return c.clock
}

// text, number and either read rows as they are stored.
var text, number, either = adversary.Text, adversary.Number, adversary.Either

// commit is called with each write, with all of its changes.
func (c *checker) commit(changes []tabletest.Change) {
	var placed []tabletest.Change
	c.said = nil
	touched := map[*cursor]bool{}
	for _, ch := range changes {
		it := either(ch)
		pk, sk := text(it, "pk"), text(it, "sk")
		isEvent := strings.HasPrefix(sk, event.Prefix)
		written := ch.After != nil && ch.Before != nil && !isEvent // the place of an event leaves its row's revision
		if written && !c.w.mutant.revisions && number(ch.After, "rev") != number(ch.Before, "rev")+1 {
			c.fail("%s/%s: rev went from %d to %d", pk, sk, number(ch.Before, "rev"), number(ch.After, "rev"))
		}
		switch {
		case isEvent:
			c.eventRow(ch)
		case strings.HasPrefix(sk, "SEQ#"):
			placed = append(placed, ch)
		case pk == "LOGS" && strings.HasPrefix(sk, "HEAD#"):
			c.headRow(ch, strings.TrimPrefix(sk, "HEAD#"))
		case pk == "LOGS" && strings.HasPrefix(sk, "LOG#"):
			c.splitRow(ch, strings.TrimPrefix(sk, "LOG#"))
		default:
			if cur := c.consumerRow(ch, pk, sk); cur != nil {
				touched[cur] = true
			}
		}
	}
	for _, ch := range placed {
		c.place(ch)
	}
	for _, p := range c.partitions {
		if p.head != int64(len(p.events)) {
			c.fail("the head of %s is %d, and it has %d events", p.name, p.head, len(p.events))
		}
	}
	for cur := range touched {
		cur.accounts()
	}
	for _, s := range c.said {
		row := s.row
		if row.Partition != s.partition || row.Seq != s.seq || row.WorkPK != "" {
			c.fail("%s has the place %d of %s; its row says %d of %q, and is listed as unplaced: %v", row.Key(), s.seq,
				s.partition, row.Seq, row.Partition, row.WorkPK != "")
		}
	}
}

// eventRow checks the row of an event: it is written once, and gets its place once.
func (c *checker) eventRow(ch tabletest.Change) {
	if ch.After == nil {
		c.fail("%s/%s: an event was removed", text(ch.Before, "pk"), text(ch.Before, "sk"))
		return
	}
	row := adversary.Read[event.Row](ch.After)
	if ch.Before != nil {
		if number(ch.Before, "log_seq") != 0 {
			c.fail("%s: an event with a place was written again", row.Key())
		}
		s := c.ids[row.ID]
		s.row = row
		c.said = append(c.said, s)
		return
	}
	e, err := row.Envelope()
	if err != nil {
		c.fail("%s: %v", row.Key(), err)
	}
	s := &committed{row: row, event: e, subject: row.PK}
	if n := int64(len(c.subjects[s.subject])); row.Version != n+1 {
		c.fail("%s: version %d was written after version %d", s.subject, row.Version, n)
	}
	if c.ids[row.ID] != nil {
		c.fail("two events have the id %s", row.ID)
	}
	c.subjects[s.subject] = append(c.subjects[s.subject], s)
	c.ids[row.ID] = s
	c.waiting++
	c.w.Met("event of a " + row.SubjectType)
	of, err := row.Subject()
	if err != nil {
		c.fail("%v", err)
	}
	c.w.stream.Send(of)
}

// place checks one reference of the log: the next place of its partition, for the next event
// of its subject.
func (c *checker) place(ch tabletest.Change) {
	name, sk := strings.TrimPrefix(text(either(ch), "pk"), "LOG#"), text(either(ch), "sk")
	if ch.Before != nil || ch.After == nil {
		c.fail("the place %s of %s was changed or removed", sk, name)
		return
	}
	p := c.partition(name)
	seq, _ := strconv.ParseInt(strings.TrimPrefix(sk, "SEQ#"), 10, 64)
	if seq != int64(len(p.events))+1 {
		c.fail("%s: place %d was given after place %d", name, seq, len(p.events))
	}
	if p.closed || generation(name) < c.splits[logOf(name)] {
		c.fail("%s: place %d was given after the log was split", name, seq)
	}
	of, version := text(ch.After, "subject_type"), number(ch.After, "version")
	subject := strings.ToUpper(of) + "#" + text(ch.After, "subject_id")
	all := c.subjects[subject]
	if version < 1 || version > int64(len(all)) {
		c.fail("%s: place %d is of %s version %d, which was not committed", name, seq, subject, version)
		return
	}
	s := all[version-1]
	switch {
	case s.seq != 0:
		c.fail("%s version %d has the place %d of %s, and got place %d of %s", subject, version, s.seq, s.partition,
			seq, name)
	case version > 1 && all[version-2].seq == 0:
		c.fail("%s version %d was placed before version %d", subject, version, version-1)
	case logOf(name) != s.event.Log():
		c.fail("%s version %d belongs to the log %s, and was placed in %s", subject, version, s.event.Log(), name)
	}
	s.partition, s.seq = name, seq
	p.events = append(p.events, s)
	c.waiting--
	if !slices.Contains(c.said, s) {
		c.fail("%s got a place, and its row does not say so", s.row.Key())
	}
}

// logOf is the log that a partition is part of.
func logOf(partition string) string {
	log, _, _ := strings.Cut(partition, ":")
	return log
}

// generation of the log that a partition is part of.
func generation(partition string) (n int64) {
	_, rest, _ := strings.Cut(partition, ":")
	number, _, _ := strings.Cut(rest, ":")
	n, _ = strconv.ParseInt(number, 10, 64)
	return n
}

func (c *checker) partition(name string) *partition {
	if c.partitions[name] == nil {
		c.partitions[name] = &partition{name: name}
	}
	return c.partitions[name]
}

func (c *checker) sortedPartitions() []string { return slices.Sorted(maps.Keys(c.partitions)) }

// headRow checks the head of a partition: it never falls, and is closed for ever.
func (c *checker) headRow(ch tabletest.Change, name string) {
	p := c.partition(name)
	if ch.After == nil {
		c.fail("the head of %s was removed", name)
		return
	}
	if last := number(ch.After, "last_seq"); last < p.head {
		c.fail("the head of %s fell from %d to %d", name, p.head, last)
	}
	p.head = number(ch.After, "last_seq")
	if p.closed && number(ch.After, "closed_count") == 0 {
		c.fail("%s was closed, and is open", name)
	}
	p.closed = number(ch.After, "closed_count") > 0
}

// splitRow checks the generation of a log.
func (c *checker) splitRow(ch tabletest.Change, log string) {
	next := number(ch.After, "generation_no")
	if next != c.splits[log]+1 {
		c.fail("%s: generation %d came after %d", log, next, c.splits[log])
	}
	c.splits[log] = next
	c.w.Met("log split")
}
