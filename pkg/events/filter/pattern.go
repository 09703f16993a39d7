package filter

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"archivist/pkg/events/envelope"
)

// Source is the source of our events on an EventBridge bus. Their detail is the
// envelope.Event as JSON.
const Source = "archivist"

// maxPattern is the most characters of an event pattern (source: Amazon EventBridge quotas,
// "Event pattern size").
const maxPattern = 2048

// Pattern is the filter as an event pattern of Amazon EventBridge: a rule with it selects the
// events on the bus that the filter selects. An error says why there is none: EventBridge cannot
// say it, or not in so few characters. A filter of And has the pattern of its first part only.
func (f *Filter) Pattern() (string, error) {
	var all []any
	for _, c := range f.clauses {
		p, err := c.pattern()
		if err != nil {
			return "", err
		}
		all = append(all, p)
	}

	pattern := map[string]any{"source": []string{Source}}
	unconditional := slices.ContainsFunc(all, func(p any) bool { return len(p.(tree)) == 0 })
	switch {
	case unconditional:
	case len(all) == 1:
		pattern["detail"] = all[0]
	default:
		pattern["detail"] = tree{"$or": all}
	}

	b, err := json.Marshal(pattern)
	if err != nil {
		return "", err
	}

	if len(b) > maxPattern {
		return "", fmt.Errorf("filter: the pattern has %d characters; EventBridge allows %d",
			len(b), maxPattern)
	}
	return string(b), nil
}

// tree is an object of a pattern.
type tree map[string]any

// set puts the values at the path. It reports false if there are some already: both would
// have to hold, and a pattern can only say that one of the values of a field does.
func (t tree) set(path []string, values any) bool {
	for ; len(path) > 1; path = path[1:] {
		below, ok := t[path[0]].(tree)
		if !ok {
			below = tree{}
			t[path[0]] = below
		}
		t = below
	}

	_, twice := t[path[0]]
	t[path[0]] = values
	return !twice
}

// pattern is the clause as what a pattern says of the detail; an empty tree if it selects
// everything. What readers of the log see besides an event is not on the bus, so a clause about
// that has none.
func (c clause) pattern() (tree, error) {
	if slices.Contains(c.subjects, "File") {
		return nil, errors.New("filter: no pattern for File: on the bus, a version's files are one event of Version")
	}

	if slices.Contains(c.subjects, "Collection") && slices.Contains(c.actions, envelope.Add) {
		return nil, errors.New("filter: no pattern for Collection+Add: on the bus, the creation of an object names " +
			"its collection; use Object+Create")
	}

	t := tree{}
	if c.subjects != nil {
		t.set([]string{"subject", "type"}, c.subjects)
	}

	if c.actions != nil {
		t.set([]string{"action"}, c.actions)
	}

	for _, term := range c.terms {
		values, err := term.pattern()
		if err != nil {
			return nil, err
		}
		if !t.set(term.field.path, values) {
			return nil, fmt.Errorf("filter: no pattern for two terms about %s in one clause",
				term.field.name)
		}
	}
	return t, nil
}

// pattern is the list of values of the term's field, one of which must match. An event
// without the field is not selected by anything-but, but by a negated term.
func (t term) pattern() ([]any, error) {
	if t.not {
		but, err := t.anythingBut()
		if err != nil || !t.field.optional {
			return []any{but}, err
		}
		return []any{but, tree{"exists": false}}, nil
	}

	var values []any
	for _, v := range t.values {
		if v.prefix {
			values = append(values, tree{"prefix": v.text})
		} else {
			values = append(values, v.text)
		}
	}
	return values, nil
}

// anythingBut is a negated term. EventBridge takes values or prefixes in it, not both (User Guide,
// "Comparison operators for use in event patterns").
func (t term) anythingBut() (tree, error) {
	if t.field.many {
		return nil, fmt.Errorf("filter: no pattern for !%s: anything-but also selects events with one more value",
			t.field.name)
	}

	var exact, prefixes []string
	for _, v := range t.values {
		if v.prefix {
			prefixes = append(prefixes, v.text)
		} else {
			exact = append(exact, v.text)
		}
	}

	switch {
	case len(prefixes) == 0:
		return tree{"anything-but": exact}, nil
	case len(exact) == 0:
		return tree{"anything-but": tree{"prefix": prefixes}}, nil
	}
	return nil, fmt.Errorf("filter: no pattern for !%s with values with and without an asterisk",
		t.field.name)
}
