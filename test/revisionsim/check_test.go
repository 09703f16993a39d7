package revisionsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/pkg/revisions/revision"
	"archivist/test/adversary"
)

// text, number and either read rows as they are stored.
var text, number, either = adversary.Text, adversary.Number, adversary.Either

// checker checks every committed write against the rules of the revision queue. It keeps the first violation.
type checker struct {
	w     *world
	err   error
	final bool // the faults have stopped

	commits   map[string]*commit // by transaction
	instances map[string]*instance
	late      bool                   // half of the steps were not enough for all to come to rest
	revisions map[string]*revisionOf // by id
	archives  map[string]*archiveOfRow
	lines     map[string]map[string]string // the rows of lines: partition → sort key → owner
	owned     map[string]map[string]bool   // likewise: owner → keys
	waiters   map[string]map[string]bool   // awaited → dependents
	locks     map[string]string            // the holders of locks
	names     map[string]tabletest.Item    // what is known of tasks, by ref and name
	wakes     map[string]wake
	execs     map[string]bool     // that have recorded an end
	succeeded map[string]int64    // by ref and task, the highest revision in which it has
	committed map[string]int      // events revision.committed of revisions
	members   map[string][]string // the instances of revisions
	planned   map[string]bool     // revisions whose plans were compared
}

// instance is an instance before and after its newest change.
type instance struct {
	was, is    revision.Instance
	version    int64
	over       int64
	fold       fold
	supersedes []string // when it began to await them
	kept       bool     // its row was removed
}

// fold is what the events of an instance say.
type fold struct {
	events  int64
	state   string
	attempt int
	exec    string
	told    string
	ends    int
}

// revisionOf is a revision.
type revisionOf struct {
	is        revision.Revision
	all, over int64
}

// archiveOfRow is an archive.
type archiveOfRow struct{ was, is revision.Archive }

// wake is when an archive is to be looked at.
type wake struct {
	listed bool
	at     int64
}

func newChecker(w *world) *checker {
	return &checker{w: w, commits: map[string]*commit{}, instances: map[string]*instance{},
		revisions: map[string]*revisionOf{}, archives: map[string]*archiveOfRow{},
		lines: map[string]map[string]string{}, owned: map[string]map[string]bool{},
		waiters: map[string]map[string]bool{}, locks: map[string]string{}, names: map[string]tabletest.Item{},
		wakes: map[string]wake{}, execs: map[string]bool{}, succeeded: map[string]int64{}, committed: map[string]int{},
		members: map[string][]string{}, planned: map[string]bool{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.Log("VIOLATION %v", c.err)
	}
}

// commit is called with each write, with all of its changes.
func (c *checker) commit(changes []tabletest.Change) {
	t := touched{instances: map[string]bool{}, moved: map[string]bool{}, revisions: map[string]bool{},
		archives: map[string]bool{}}
	for _, ch := range changes {
		c.row(ch, &t)
	}
	for _, id := range slices.Sorted(maps.Keys(t.revisions)) {
		c.checkRevision(id)
	}
	for _, id := range slices.Sorted(maps.Keys(t.moved)) {
		c.moved(c.instances[id])
	}
	for _, id := range slices.Sorted(maps.Keys(t.instances)) {
		c.checkInstance(id)
	}
	for _, name := range slices.Sorted(maps.Keys(t.archives)) {
		c.checkWake(name)
	}
	for id := range t.moved {
		c.instances[id].was = c.instances[id].is
	}
}

// touched is what a transaction has changed.
type touched struct{ instances, moved, revisions, archives map[string]bool }

// row reads one changed row.
func (c *checker) row(ch tabletest.Change, t *touched) {
	row := either(ch)
	pk, sk := text(row, "pk"), text(row, "sk")
	kind, id, _ := strings.Cut(pk, "#")
	c.checkRev(ch, pk, sk)
	switch {
	case strings.HasPrefix(sk, event.Prefix):
		c.eventRow(ch, kind, id, t)
	case kind == "TASK" && strings.HasPrefix(sk, "WAITER#"):
		c.waiterRow(ch, id, strings.TrimPrefix(sk, "WAITER#"), t)
	case kind == "TASK":
		c.instanceRow(ch, id, t)
	case kind == "REVISION":
		c.revisionRow(ch, id, t)
	case kind == "ARCHIVE" && sk == "WAKE":
		at, _, _ := strings.Cut(text(ch.After, "ranking"), "#")
		ms, _ := strconv.ParseInt(at, 10, 64)
		c.wakes[id] = wake{text(ch.After, "place") != "", ms}
		t.archives[id] = true
	case kind == "ARCHIVE":
		c.archiveRow(ch, id)
		t.archives[id] = true
	case kind == "TASKLOCK" && sk == "LOCK":
		c.locks[pk] = text(ch.After, "holder_id")
	case kind == "TASKNAMES":
		c.names[id+" "+sk] = ch.After
	case slices.Contains([]string{"TASKLINE", "TASKLIVE", "TASKTIMED", "TASKCANCEL", "TASKLOCK"}, kind):
		c.lineRow(ch, pk, sk, t)
		if kind == "TASKLINE" {
			t.archives[id] = true
		}
	}
}

// checkRev checks that no write of a row was lost: its revision rises by one.
func (c *checker) checkRev(ch tabletest.Change, pk, sk string) {
	if ch.After == nil || ch.Before == nil || strings.HasPrefix(sk, event.Prefix) || sk == "WAKE" {
		return
	}
	if was, is := number(ch.Before, "rev"), number(ch.After, "rev"); is != was+1 {
		c.fail("%s/%s: rev went from %d to %d", pk, sk, was, is)
	}
}

// lineRow reads a row of a line.
func (c *checker) lineRow(ch tabletest.Change, pk, sk string, t *touched) {
	if c.lines[pk] == nil {
		c.lines[pk] = map[string]string{}
	}
	key := pk + " " + sk
	owner := text(either(ch), "owned_by")
	if c.owned[owner] == nil {
		c.owned[owner] = map[string]bool{}
	}
	if ch.After == nil {
		delete(c.lines[pk], sk)
		delete(c.owned[owner], key)
	} else {
		c.lines[pk][sk] = owner
	}
	if strings.HasPrefix(sk, "plan#") || strings.HasPrefix(sk, "keep#") {
		return
	}
	if ch.After != nil {
		c.owned[owner][key] = true
	}
	t.instances[owner] = true
}

// waiterRow reads the row of an instance that waits for another.
func (c *checker) waiterRow(ch tabletest.Change, awaited, dependent string, t *touched) {
	if c.waiters[awaited] == nil {
		c.waiters[awaited] = map[string]bool{}
	}
	delete(c.waiters[awaited], dependent)
	if ch.After != nil {
		c.waiters[awaited][dependent] = true
	}
	t.instances[dependent] = true
}

// instance is one that is known or not.
func (c *checker) instance(id string) *instance {
	if c.instances[id] == nil {
		c.instances[id] = &instance{}
	}
	return c.instances[id]
}

// instanceRow reads the row of an instance.
func (c *checker) instanceRow(ch tabletest.Change, id string, t *touched) {
	if ch.After == nil {
		c.removed(id)
		return
	}
	in := c.instance(id)
	if in.kept {
		c.fail("%s is in the bucket, and has a row again", id)
	}
	known := in.is.ID != ""
	in.is = revision.Instance{}
	err := json.Unmarshal([]byte(text(ch.After, "instance_json")), &in.is)
	if err != nil {
		c.fail("the row of %s: %v", id, err)
	}
	in.version, in.over = number(ch.After, "version"), number(ch.After, "over_ms")
	rev := revisionID(&in.is)
	if !known {
		c.members[rev] = append(c.members[rev], id)
	}
	t.instances[id], t.moved[id], t.revisions[rev] = true, true, true
	t.archives[archiveOf(id)] = true
}

// revisionRow reads the row of a revision.
func (c *checker) revisionRow(ch tabletest.Change, id string, t *touched) {
	r := &revisionOf{all: number(ch.After, "all_n"), over: number(ch.After, "over_n")}
	err := json.Unmarshal([]byte(text(ch.After, "revision_json")), &r.is)
	if err != nil {
		c.fail("the row of revision %s: %v", id, err)
	}
	if old := c.revisions[id]; old != nil && old.is.Planned > 0 {
		if old.is.Planned != r.is.Planned || old.is.State != r.is.State || old.is.Definition != r.is.Definition ||
			old.is.Transaction != r.is.Transaction {
			c.fail("revision %s was planned, and changes from %+v to %+v", id, old.is, r.is)
		}
	}
	c.revisions[id] = r
	t.revisions[id] = true
}

// archiveRow reads the row of an archive.
func (c *checker) archiveRow(ch tabletest.Change, name string) {
	if c.archives[name] == nil {
		c.archives[name] = &archiveOfRow{}
	}
	a := c.archives[name]
	a.was, a.is = a.is, revision.Archive{}
	err := json.Unmarshal([]byte(text(ch.After, "archive_json")), &a.is)
	if err != nil {
		c.fail("the row of the archive %s: %v", name, err)
	}
	switch {
	case a.is.Epoch < a.was.Epoch:
		c.fail("the epoch of %s fell from %d to %d", name, a.was.Epoch, a.is.Epoch)
	case a.is.Epoch == a.was.Epoch && a.is.Watermark < a.was.Watermark && a.was.Watermark >= a.was.First:
		c.fail("the watermark of %s fell from %d to %d", name, a.was.Watermark, a.is.Watermark)
	}
	for n := a.is.First; n <= a.is.Watermark && a.is.First > 0; n++ {
		id := fmt.Sprintf("%s/%d", a.is.Ref(), n)
		if r := c.revisions[id]; r == nil || r.is.Planned == 0 {
			c.fail("the watermark of %s is %d, and revision %s is not planned", name, a.is.Watermark, id)
		}
	}
	if a.is.Mode != a.was.Mode {
		c.w.Met("archive: " + string(a.is.Mode))
	}
}

// eventRow checks the row of an event: it is written once, stays, and is the next of its subject.
func (c *checker) eventRow(ch tabletest.Change, kind, id string, t *touched) {
	if ch.After == nil || ch.Before != nil {
		c.fail("an event of %s %s was changed", kind, id)
		return
	}
	row := adversary.Read[event.Row](ch.After)
	if kind == "REVISION" && row.Type == "revision.committed" {
		c.committed[id]++
		c.w.Met("revision: planned")
		if c.committed[id] > 1 {
			c.fail("revision %s was planned twice", id)
		}
	}
	if kind != "TASK" {
		return
	}
	t.instances[id] = true
	f := &c.instance(id).fold
	f.events++
	if row.Version != f.events {
		c.fail("%s: event %d was written after event %d", id, row.Version, f.events-1)
	}
	var d struct {
		revision.Moved
		State string `json:"state"` // of task.planned
		End   string `json:"end"`   // of task.told
	}
	err := json.Unmarshal([]byte(row.Detail), &d)
	if err != nil {
		c.fail("%s: event %d: %v", id, row.Version, err)
	}
	if d.Tried != nil && d.Tried.Unstarted && d.To == "retry-wait" {
		d.Attempt-- // it was none
	}
	f.add(row.Type, string(d.From), string(d.To), d.State, d.End, d.Attempt, d.Exec, func(what string) {
		c.fail("%s: event %d (%s): %s", id, row.Version, row.Detail, what)
	})
}

// ends are the ends of instances.
var ends = []string{"succeeded", "failed", "cancelled", "superseded", "skipped"}

func over(state string) bool { return slices.Contains(ends, state) }

// add adds an event.
func (f *fold) add(eventType, from, to, state, end string, attempt int, exec string, fail func(string)) {
	switch eventType {
	case "task.planned":
		f.state = state
		if f.events != 1 {
			fail("it is not the first")
		}
	case "task.told":
		if f.told != "" || over(f.state) {
			fail("it was told before, or has ended")
		}
		f.told = end
	case "task.state":
		if from != f.state {
			fail("it was " + f.state)
		}
		f.state, f.attempt = to, attempt
		if attempt > 0 {
			f.exec = exec
		}
	default:
		fail("an unknown type")
	}
	if over(f.state) && eventType != "task.told" {
		f.ends++
		f.told = ""
		if f.ends > 1 {
			fail("it has ended before")
		}
	}
}

// nextWake is the time to the next one at which the schedule starts a pass.
func (c *checker) nextWake() time.Duration {
	least := time.Hour
	for _, w := range c.wakes {
		if w.listed {
			least = min(least, time.Until(time.UnixMilli(w.at)))
		}
	}
	return max(least, 0) + 5*time.Second // of clocks that differ
}
