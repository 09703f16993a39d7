package component

import (
	"fmt"
	"slices"

	"archivist/pkg/events/filter"
	"archivist/pkg/kernel/nearest"
)

// Doubts names what a definition asks for in vain, as far as is known: events that no component records, and that are
// spelt almost like one that is recorded; and what its filter asks for that no event has. People can record events of
// any name, so neither is refused. all are the definitions that there are.
func Doubts(d Definition, all []Definition) (doubts []string) {
	recorded := []string{d.Event}
	for _, other := range all {
		recorded = append(recorded, other.Event)
	}

	for _, l := range d.lists() {
		for _, name := range l.names {
			near := nearest.To(name, recorded)
			if near != "" && !slices.Contains(recorded, name) {
				doubts = append(doubts, fmt.Sprintf("%s: no component records %s; did you mean %s?", l.how, name, near))
			}
		}
	}

	if d.Items == nil || d.Items.Filter == "" {
		return doubts
	}

	f, err := filter.Compile(d.Items.Filter)
	if err != nil { // it was refused
		return doubts
	}

	for _, never := range f.Never() {
		doubts = append(doubts, "items.filter: "+never)
	}
	return doubts
}
