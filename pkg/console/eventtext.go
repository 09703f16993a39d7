package console

import (
	"encoding/json"
	"fmt"
	"html/template"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "archivist/pkg/api/v1"
)

// ofEvents are the functions of templates of the log and of what reads it.
var ofEvents = template.FuncMap{"eventPage": eventPage, "payloads": payloads,
	"duration": func(n int64) string { return seconds(float64(n)) }, "subjectPage": subjectPage,
	"byActor": byActor, "actPage": actPage, "clock": clock}

// eventPage is the address of the page of an event, below /console/.
func eventPage(e v1.LogEvent) string {
	return "event?" + query("subject", e.Subject.Type+":"+e.Subject.ID, "version",
		strconv.FormatInt(e.Version, 10))
}

// actPage is the address of the page of the event of an act, below /console/.
func actPage(a v1.Act) string {
	return eventPage(v1.LogEvent{Subject: a.Subject, Version: a.Version})
}

// payload is a part of what an event says, in fields.
type payload struct {
	Name, Title string
	Fields      []field
}

// payloads are the parts of what an event says that depend on its type. What was the same before and after is not among
// them: events have only what changed.
func payloads(e v1.LogEvent) (all []payload) {
	for _, p := range []struct {
		name, title string
		raw         json.RawMessage
	}{{"detail", "Details", e.Detail}, {"before", "Before", e.Before}, {"after", "After",
		e.After}} {
		if fields := fieldsOf("", p.raw); len(fields) > 0 {
			all = append(all, payload{p.name, p.title, fields})
		}
	}
	return all
}

// fieldsOf are the values of a JSON text by the names that lead to them, with a dot between names. What is no JSON is
// one field without a name.
func fieldsOf(at string, raw json.RawMessage) (all []field) {
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.UseNumber()
	var value any
	if len(raw) == 0 || d.Decode(&value) != nil {
		return nil
	}
	return flat(at, value)
}

// flat are the fields of a decoded JSON value.
func flat(at string, value any) (all []field) {
	below := func(name string) string {
		if at == "" {
			return name
		}
		return at + "." + name
	}
	switch x := value.(type) {
	case map[string]any:
		for _, name := range sortedKeys(x) {
			all = append(all, flat(below(name), x[name])...)
		}
		return all
	case []any:
		for i, one := range x {
			all = append(all, flat(below(strconv.Itoa(i+1)), one)...)
		}
		return all
	case nil:
		return []field{{at, "none"}}
	}
	return []field{{at, fmt.Sprint(value)}}
}

// sortedKeys are the names of an object, in order.
func sortedKeys(x map[string]any) []string { return slices.Sorted(maps.Keys(x)) }

// byActor is the filter of what somebody did.
func byActor(actor string) string {
	return "All+All{actor=" + strconv.Quote(actor) + "}"
}

// clock is a time of a recording for people: 1:02:03.4.
func clock(ns int64) string {
	tenths := ns / 1e8
	s := tenths / 10
	out := fmt.Sprintf("%d:%02d.%d", s/60%60, s%60, tenths%10)
	if s >= 3600 {
		out = fmt.Sprintf("%d:%02d:%02d.%d", s/3600, s/60%60, s%60, tenths%10)
	}
	return out
}
