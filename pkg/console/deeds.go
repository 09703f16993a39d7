package console

import (
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// deeds are what can be done to each kind of thing, beside acts.
var deeds = map[string]deedKind{
	"object":    onObjects,
	"consumer":  onConsumers,
	"replay":    onReplays,
	"archive":   onArchives,
	"revision":  onRevisions,
	"task":      onTasks,
	"component": onComponents,
	"item":      onItems,
	"project":   onProjects,
	"lease":     onLeases,
	"episode":   onEpisodes,
	"clip":      onClips,
	"doctor":    onDoctor,
}

// deedOffer is a deed that a page offers.
type deedOffer struct {
	deed
	Kind string
	IDs  []string
}

// deedsOn are the deeds on a thing that a page offers to its visitor: those of one of its states.
func (v *visit) deedsOn(kind string, states []string, ids ...string) (all []deedOffer) {
	for _, d := range deeds[kind].Deeds {
		fits := d.States == nil || slices.ContainsFunc(d.States,
			func(s string) bool { return slices.Contains(states, s) })
		if v.may(d.Role) && !d.Row && fits {
			all = append(all, deedOffer{d, kind, ids})
		}
	}
	return all
}

// deedAt is the address of the form of a deed on a part of a thing, below /console/, with values of its fields; "" if
// the visitor may not do it.
func (v *visit) deedAt(kind, name string, ids []string, values ...string) string {
	d, known := deedOf(kind, name)
	if !known || !v.may(d.Role) {
		return ""
	}
	q := url.Values{"kind": {kind}, "deed": {name}, "id": ids}
	for i := 0; i+1 < len(values); i += 2 {
		q.Set(values[i], values[i+1])
	}
	return "deed?" + q.Encode()
}

// deedOf is a deed by its kind and name.
func deedOf(kind, name string) (deed, bool) {
	all := deeds[kind].Deeds
	i := slices.IndexFunc(all, func(d deed) bool { return d.Name == name })
	if i < 0 {
		return deed{}, false
	}
	return all[i], true
}

// doneOf is what a page says after a deed, by what its address says: the kind, a dot and the name.
func doneOf(text string) string {
	kind, name, _ := strings.Cut(text, ".")
	d, _ := deedOf(kind, name)
	return d.Done
}

// placeOfID is a part of the id of a thing in a pattern.
var placeOfID = regexp.MustCompile(`\{\d\}`)

// filledIn is a pattern with the parts of an id, each escaped by f.
func filledIn(pattern string, ids []string, f func(string) string) string {
	return placeOfID.ReplaceAllStringFunc(pattern, func(at string) string {
		n, _ := strconv.Atoi(strings.Trim(at, "{}"))
		if n >= len(ids) {
			return ""
		}
		return f(ids[n])
	})
}

// addressOf is a path with a query, of a pattern and the parts of an id.
func addressOf(pattern string, ids []string) string {
	path, query, has := strings.Cut(pattern, "?")
	out := filledIn(path, ids, url.PathEscape)
	if has {
		out += "?" + filledIn(query, ids, url.QueryEscape)
	}
	return out
}
