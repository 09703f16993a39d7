package component

import (
	"fmt"
	"strings"

	"archivist/pkg/events/event"
	"archivist/pkg/kernel/table"
)

// Classes of the items of a component.
const (
	Ready   = "ready"   // it can be worked on now
	Later   = "later"   // likewise, from a time on
	Running = "running" // it is being worked on
	Failed  = "failed"  // the newest event of the component is a failure, and it is not ready
	Done    = "done"    // likewise, a success; it has no row in the line
)

// Classes lists the classes in the order of the work.
var Classes = []string{Ready, Later, Running, Failed, Done}

// place is where an item is in a component's line: the sort key of its row. Of a Done item it is
// the class alone, which has no row; "" is nowhere. The keys sort as the work is done: Ready by
// priority, 9 first, then by the oldest first event; Later and Running by time. It is a pure
// function of the item and the definition.
func (c *compiled) place(it *Item) string {
	if claim, ok := it.Claims[c.Name]; ok {
		return fmt.Sprintf("%s#%013d#%s", Running, claim.Until, it.ID)
	}

	v := c.judge(it)
	switch {
	case v.Ready && v.NotBefore == 0:
		return fmt.Sprintf("%s#%d#%013d#%s", Ready, 9-it.Rank(), it.First, it.ID)
	case v.Ready:
		return fmt.Sprintf("%s#%013d#%s", Later, v.NotBefore, it.ID)
	}

	m, ok := it.Marks[c.Event]
	switch {
	case it.Forgotten || !ok:
		return ""
	case m.Outcome == event.Failure:
		return Failed + "#" + it.ID
	}
	return Done
}

// classOf is the class of a place, "" for nowhere.
func classOf(place string) string {
	class, _, _ := strings.Cut(place, "#")
	return class
}

// stands reports whether a place is a row in the line. Items that are Done have none: most items
// are, and nobody asks for them in the order of a line.
func stands(place string) bool { return place != "" && place != Done }

// linePK is the partition of a component's line.
func linePK(component string) string { return "LINE#" + component }

// placeRow is an item's row in a component's line. Its owner is the item: a row of another item at
// the same key, which cannot be, would not be removed by mistake.
type placeRow struct {
	table.Head
	Item  string `dynamo:"item_id"`
	Owner string `dynamo:"owned_by"`
}

func placeKey(component,
	place string) table.Key {
	return table.Key{PK: linePK(component), SK: place}
}

// countRow has the numbers of the items of a part that are in each class. Its key has the epoch in
// which the component was made: a change that is late does not count for another of this name. The
// names of attributes are the classes with _n.
type countRow struct {
	table.Head
	Ready   int64 `dynamo:"ready_n"`
	Later   int64 `dynamo:"later_n"`
	Running int64 `dynamo:"running_n"`
	Failed  int64 `dynamo:"failed_n"`
	Done    int64 `dynamo:"done_n"`
}

// countKey is the key of the counts of a part, "count#000000000007#03".
func countKey(component string, born int64, shard uint32) table.Key {
	return table.Key{PK: linePK(component), SK: fmt.Sprintf("%s%02d", countPrefix(born), shard)}
}

func countPrefix(born int64) string { return fmt.Sprintf("count#%012d#", born) }

// Counts are how many items are in each class of a component's line. They are of rows that change
// with the items, so they are right, but not all of the same moment.
type Counts struct {
	Ready   int64 `json:"ready"`
	Later   int64 `json:"later"`
	Running int64 `json:"running"`
	Failed  int64 `json:"failed"`
	Done    int64 `json:"done"`

	// Oldest is the time of the first event of the oldest ready item, in milliseconds since 1970.
	// 0: there is none.
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

// addRow adds the counts of one part.
func (c *Counts) addRow(r *countRow) {
	c.Ready += r.Ready
	c.Later += r.Later
	c.Running += r.Running
	c.Failed += r.Failed
	c.Done += r.Done
}

// rows is the row of an item at a place of the component's line, if the place is one.
func (c *compiled) rows(item, place string) []table.Row {
	if !stands(place) {
		return nil
	}
	k := placeKey(c.Name, place)
	return []table.Row{&placeRow{Head: table.Head{PK: k.PK, SK: k.SK}, Item: item, Owner: item}}
}

// move puts into tx that an item's place in the component's line is another: at most three actions.
// The commit fails if the row of the old place is not there, or is another item's.
func (c *compiled) move(tx *table.Tx, item, from, to string) {
	if from == to {
		return
	}

	tx.Derive(item, c.rows(item, from), c.rows(item, to))
	add := map[string]int64{}
	if class := classOf(from); class != "" {
		add[class+"_n"]--
	}

	if class := classOf(to); class != "" {
		add[class+"_n"]++
	}

	// Also if the numbers stay: the rows of a component that is being deleted do not come back,
	// because its counts are removed first.
	tx.Count(countKey(c.Name, c.born, shard(item)), add)
}
