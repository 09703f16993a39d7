package filter

import (
	"fmt"
	"slices"
	"strings"

	"archivist/pkg/events/envelope"
)

// The types of the subjects of events that are presented only.
const (
	collectionType = "Collection"
	fileType       = "File"
)

// happens are the actions that events have, by the types of their subjects: those of all kinds, and of what is
// presented besides the stored events.
var happens = func() map[string][]string {
	all := map[string][]string{}
	add := func(subject, action string) {
		if action != "" && !slices.Contains(all[subject], action) {
			all[subject] = append(all[subject], action)
		}
	}

	for _, k := range envelope.Kinds {
		add(k.Subject, k.Action)
		add(k.Subject, k.First)
		if k.Deletes() {
			add(k.Subject, envelope.Delete)
		}
	}

	add(collectionType, envelope.Add) // envelope.CollectionAdd
	add(fileType, envelope.Create)    // envelope.FileCreate
	for subject := range all {
		slices.Sort(all[subject])
	}
	return all
}()

// Never names what the filter asks for in vain: types of subjects and actions of a clause that no event has with the
// others of the clause. Names of DSpace are accepted whatever happens here, so such a filter is valid; but who has
// written it waits for something.
func (f *Filter) Never() (all []string) {
	for _, c := range f.clauses {
		all = append(all, c.never()...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// never is Never of a clause.
func (c clause) never() (all []string) {
	subjects := c.subjects
	if subjects == nil {
		for subject := range happens {
			subjects = append(subjects, subject)
		}
	}

	for _, subject := range c.subjects {
		switch {
		case happens[subject] == nil:
			all = append(all, fmt.Sprintf("%s: no event is about one", subject))
		case c.actions != nil && !slices.ContainsFunc(c.actions, has(subject)):
			all = append(all, fmt.Sprintf("%s+%s: events about it have the actions %s", subject, list(c.actions),
				strings.Join(happens[subject], ", ")))
		}
	}

	if len(all) > 0 && len(all) == len(c.subjects) { // that says it all
		return all
	}

	for _, action := range c.actions {
		if !slices.ContainsFunc(subjects, func(subject string) bool { return has(subject)(action) }) {
			all = append(all, fmt.Sprintf("%s+%s: no event about it has that action", list(c.subjects), action))
		}
	}
	return all
}

// has reports whether events about a subject have an action.
func has(subject string) func(action string) bool {
	return func(action string) bool { return slices.Contains(happens[subject], action) }
}
