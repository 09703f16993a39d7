package componentsim

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/components/component"
	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table/tabletest"
	"archivist/test/adversary"
)

// text, number and either read rows as they are stored.
var text, number, either = adversary.Text, adversary.Number, adversary.Either

// checker checks every committed write against the invariants of components. It keeps the first
// violation.
type checker struct {
	w        *world
	err      error
	subjects map[string][]fact // by partition
	ids      map[string]bool   // of events
	items    map[string]*item
	lines    map[string]*line
	registry map[string]registered
	epoch    int64
	epochs   map[int64][]component.Definition // the definitions from that epoch on
	claims   map[string]claimed
	working  map[*work]bool // what workers have begun and not ended
	slots    map[string]slot
	runs     map[string]string             // their states
	lanes    map[string]map[string]laneRow // of runs

	deep bool   // a chain of causes has come to its end
	ran  []fact // of the present transaction
}

// item is the row of an item, before and after its newest change.
type item struct {
	id            string
	before, after itemRow
	was, is       component.Item
	written       bool // by the present transaction
}

// itemRow is the row of an item as it is stored.
type itemRow struct {
	Number int64             `dynamo:"version"`
	Text   string            `dynamo:"item_json"`
	Epoch  int64             `dynamo:"line_epoch"`
	Places map[string]string `dynamo:"places_in"`
}

// line is the partition of a component's line.
type line struct {
	places map[string]string // sort key → item
	counts map[string]counts // sort key → numbers
}

type counts struct {
	Ready   int64 `dynamo:"ready_n"`
	Later   int64 `dynamo:"later_n"`
	Running int64 `dynamo:"running_n"`
	Failed  int64 `dynamo:"failed_n"`
	Done    int64 `dynamo:"done_n"`
}

// registered is the row of a definition as it is stored.
type registered struct {
	State string `dynamo:"component_state"`
	Text  string `dynamo:"definition_json"`
	Born  int64  `dynamo:"born_epoch"`

	definition component.Definition
}

func newChecker(w *world) *checker {
	return &checker{w: w, subjects: map[string][]fact{}, ids: map[string]bool{}, items: map[string]*item{},
		lines: map[string]*line{}, registry: map[string]registered{},
		epochs: map[int64][]component.Definition{}, claims: map[string]claimed{}, working: map[*work]bool{},
		slots: map[string]slot{}, runs: map[string]string{}, lanes: map[string]map[string]laneRow{}}
}

func (c *checker) fail(format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf(format, args...)
		c.w.Log("VIOLATION %v", c.err)
	}
}

// commit is called with each write, with all of its changes.
func (c *checker) commit(changes []tabletest.Change) {
	touched := map[string]*item{}
	c.ran = nil
	for _, ch := range changes {
		row := either(ch)
		pk, sk := text(row, "pk"), text(row, "sk")
		isEvent := strings.HasPrefix(sk, event.Prefix)
		// The place of an event leaves its row's revision.
		if ch.After != nil && ch.Before != nil && !isEvent && !c.w.mutant.revisions &&
			number(ch.After, "rev") != number(ch.Before, "rev")+1 {
			c.fail("%s/%s: rev went from %d to %d", pk, sk, number(ch.Before, "rev"), number(ch.After, "rev"))
		}
		id, _ := strings.CutPrefix(pk, itemPrefix)
		switch {
		case isEvent:
			c.eventRow(ch, pk)
			if id != pk {
				touched[id] = c.item(id)
			}
		case id != pk:
			c.itemRow(ch, id)
			touched[id] = c.item(id)
		case pk == "COMPONENTS":
			c.registryRow(ch, sk)
		case pk == "COMPONENTRUNS" && strings.HasPrefix(sk, "SLOT#"):
			c.slotRow(ch, sk)
		case strings.HasPrefix(pk, "RUN#"):
			c.runRow(ch, strings.TrimPrefix(pk, "RUN#"), sk)
			defer c.closed(strings.TrimPrefix(pk, "RUN#"))
		case strings.HasPrefix(pk, "LINE#"):
			if id := c.lineRow(ch, strings.TrimPrefix(pk, "LINE#"), sk); id != "" {
				touched[id] = c.item(id)
			}
		}
	}
	if c.epochs[c.epoch] == nil {
		c.epochs[c.epoch] = c.active()
	}
	for _, id := range slices.Sorted(maps.Keys(touched)) {
		c.checkItem(touched[id])
	}
	if len(touched) > 0 {
		c.checkCounts()
	}
}

const itemPrefix = "COMPONENTITEM#"

func (c *checker) item(id string) *item {
	if c.items[id] == nil {
		c.items[id] = &item{id: id}
	}
	return c.items[id]
}

func (c *checker) line(name string) *line {
	if c.lines[name] == nil {
		c.lines[name] = &line{places: map[string]string{}, counts: map[string]counts{}}
	}
	return c.lines[name]
}

// eventRow checks the row of an event: it is written once, stays, and is the next of its subject.
func (c *checker) eventRow(ch tabletest.Change, pk string) {
	if ch.After == nil {
		c.fail("%s/%s: an event was removed", pk, text(ch.Before, "sk"))
		return
	}
	if ch.Before != nil { // it got its place in the log
		return
	}
	row := adversary.Read[event.Row](ch.After)
	f, err := factOf(row)
	if err != nil {
		c.fail("%s: %v", row.Key(), err)
	}
	if n := int64(len(c.subjects[pk])); row.Version != n+1 {
		c.fail("%s: version %d was written after version %d", pk, row.Version, n)
	}
	if c.ids[row.ID] {
		c.fail("two events have the id %s", row.ID)
	}
	c.ids[row.ID] = true
	if n := len(c.subjects[pk]); n > 0 && c.subjects[pk][n-1].Time == f.Time {
		c.w.Met("two events of a subject in one millisecond")
	}
	c.subjects[pk] = append(c.subjects[pk], f)
	c.w.Met("event " + f.Type)
	of, err := row.Subject()
	if err != nil {
		c.fail("%v", err)
	}
	c.w.stream.Send(of)
	if f.Type == "component.ran" {
		c.ran = append(c.ran, f)
	}
}

// itemRow reads the row of an item.
func (c *checker) itemRow(ch tabletest.Change, id string) {
	if ch.After == nil {
		c.fail("the row of %s was removed", id)
		return
	}
	it := c.item(id)
	it.before, it.was, it.written = it.after, it.is, true
	it.after, it.is = adversary.Read[itemRow](ch.After), component.Item{}
	if err := json.Unmarshal([]byte(it.after.Text), &it.is); err != nil {
		c.fail("%s: %v", id, err)
	}
	if it.is.Version < it.was.Version || it.is.Applied < it.was.Applied {
		c.fail("%s: its versions fell from %d and %d to %d and %d", id, it.was.Version, it.was.Applied, it.is.Version,
			it.is.Applied)
	}
}

// registryRow reads a definition, or the head of all.
func (c *checker) registryRow(ch tabletest.Change, sk string) {
	switch {
	case sk == "#HEAD":
		epoch := number(ch.After, "line_epoch")
		if epoch <= c.epoch {
			c.fail("the epoch of the definitions went from %d to %d", c.epoch, epoch)
		}
		c.epoch = epoch
	case strings.HasPrefix(sk, "#"): // the back-fill
	default:
		r := adversary.Read[registered](ch.After)
		if err := json.Unmarshal([]byte(r.Text), &r.definition); err != nil && ch.After != nil {
			c.fail("the definition of %s: %v", sk, err)
		}
		c.registry[sk] = r
	}
}

// active are the definitions of all components that are not deleted.
func (c *checker) active() (all []component.Definition) {
	for _, name := range slices.Sorted(maps.Keys(c.registry)) {
		if c.registry[name].State == "active" {
			all = append(all, c.registry[name].definition)
		}
	}
	return all
}

// lineRow reads a row of a line, and returns the item whose place it is.
func (c *checker) lineRow(ch tabletest.Change, name, sk string) string {
	l := c.line(name)
	if strings.HasPrefix(sk, "count#") {
		delete(l.counts, sk)
		if ch.After != nil {
			l.counts[sk] = adversary.Read[counts](ch.After)
		}
		return ""
	}
	if !strings.Contains(sk, "#") { // of a run, not of a place
		return ""
	}
	delete(l.places, sk)
	if ch.After != nil {
		l.places[sk] = text(ch.After, "item_id")
	}
	return text(either(ch), "item_id")
}

// checkItem checks that an item's row, its events and its places in the lines agree.
func (c *checker) checkItem(it *item) {
	applied := int64(len(c.subjects[subjectPK(it.id)]))
	switch own := int64(len(c.subjects[itemPrefix+it.id])); {
	case it.is.Version != own || it.after.Number != own:
		c.fail("%s has %d own events, and its row says %d and %d", it.id, own, it.is.Version, it.after.Number)
		return
	case it.is.Applied > applied:
		c.fail("%s: its row knows %d events of its subject, which has %d", it.id, it.is.Applied, applied)
		return
	}
	h := c.historyOf(it.id, it.is.Applied, it.is.Version)
	c.checkMarks(it, h)
	c.checkPlaces(it, h)
	c.checkClaims(it, h)
}

// subjectPK is the partition of the subject of an item.
func subjectPK(id string) string {
	kind, subject, _ := strings.Cut(id, ":")
	return strings.ToUpper(kind) + "#" + subject
}

// checkMarks checks that the row names the newest events, and no revoked one.
func (c *checker) checkMarks(it *item, h history) {
	names := map[string]bool{}
	for _, f := range h.facts {
		if f.name != "" {
			names[f.name] = true
		}
	}
	for name := range it.is.Marks {
		names[name] = true
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		m, f := it.is.Marks[name], h.newest(name)
		switch {
		case f == nil && m.ID != "":
			c.fail("%s: event %s (%s) counts, and was revoked", it.id, name, m.ID)
		case f != nil && (m.ID != f.ID || m.Version != f.Version || m.Outcome != f.Outcome || m.At != f.Time ||
			m.Failures != h.failures(name) || m.BasedOn != f.detail.BasedOn):
			c.fail("%s: its newest event %s is %s (%d, %s, failures %d); its row says %+v", it.id, name, f.ID,
				f.Version, f.Outcome, h.failures(name), m)
		}
	}
}

// checkPlaces checks that the item is in the lines where the definitions of its epoch want it, and
// nowhere else.
func (c *checker) checkPlaces(it *item, h history) {
	if differ := placed(it, h, c.epochs[it.after.Epoch]); differ != "" {
		c.fail("%s", differ)
	}
	for _, d := range c.active() {
		var stand []string
		for sk, id := range c.line(d.Name).places {
			if id == it.id {
				stand = append(stand, sk)
			}
		}
		want := c.placeIn(it, d.Name)
		if want == "done" {
			want = ""
		}
		if strings.Join(stand, " ") != want {
			c.fail("%s is in the line of %s at %v, and its row says %q", it.id, d.Name, stand, want)
		}
	}
}

// placeIn is where an item is in a component's line. What was decided before the component was made
// is of a deleted one of this name.
func (c *checker) placeIn(it *item, name string) string {
	if it.after.Epoch < c.registry[name].Born {
		return ""
	}
	return it.after.Places[name]
}

// placed says how the places of an item differ from what definitions want; "" if they do not.
func placed(it *item, h history, all []component.Definition) string {
	known := 0
	for i := range all {
		want := h.place(&all[i], &it.is)
		if got := it.after.Places[all[i].Name]; got != want {
			return fmt.Sprintf("%s is at %q for %s; it should be at %q", it.id, got, all[i].Name, want)
		}
		if want != "" {
			known++
		}
	}
	if known != len(it.after.Places) {
		return fmt.Sprintf("%s has the places %v, of components that there are not", it.id, it.after.Places)
	}
	return ""
}

// checkCounts checks that the counts of each component are those of its items.
func (c *checker) checkCounts() {
	for _, d := range c.active() {
		var is, want counts
		for sk, n := range c.line(d.Name).counts {
			if strings.HasPrefix(sk, fmt.Sprintf("count#%012d#", c.registry[d.Name].Born)) {
				is.add(n)
			}
		}
		for _, it := range c.items {
			want.add(countOf(c.placeIn(it, d.Name)))
		}
		if is != want {
			c.fail("the counts of %s are %+v; there are %+v", d.Name, is, want)
		}
	}
}

func (n *counts) add(m counts) {
	n.Ready += m.Ready
	n.Later += m.Later
	n.Running += m.Running
	n.Failed += m.Failed
	n.Done += m.Done
}

// countOf is the count of one item.
func countOf(place string) (n counts) {
	class, _, _ := strings.Cut(place, "#")
	switch class {
	case "ready":
		n.Ready++
	case "later":
		n.Later++
	case "running":
		n.Running++
	case "failed":
		n.Failed++
	case "done":
		n.Done++
	}
	return n
}
