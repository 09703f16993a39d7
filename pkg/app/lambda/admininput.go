package lambda

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"archivist/pkg/ingest"
	"archivist/pkg/kernel/fault"
)

// adminInput is the input of an execution of admin-action. It has one of four forms: an
// action on a target, an action on all jobs that a filter selects, a check by the doctor, or,
// from the system itself, the pages of an operation. What is not given has its zero value.
type adminInput struct {
	Action  ingest.ActionName
	Target  string
	Filter  json.RawMessage
	Reason  string
	Confirm bool
	DryRun  bool

	// Priority is nil if it is not given, since 0 is a priority.
	Priority *int
	Until    string // ISO 8601

	Repair bool // of the doctor

	Operation string // the operation whose pages are to be done
	Exec      int64  // the number of its execution
}

// forms are the fields of each form of the input. A field of another form is refused, so that
// no part of the input is silently ignored.
var forms = struct{ action, bulk, doctor, pages []string }{
	action: []string{"action", "target", "reason", "confirm", "dryRun", "priority", "until"},
	bulk:   []string{"action", "filter", "reason", "confirm", "dryRun", "priority", "until"},
	doctor: []string{"action", "reason", "repair"},
	pages:  []string{"operation", "exec"},
}

// readInput reads the input of an execution. An Invalid names the first field that is wrong.
// What the values mean is checked by the queue.
func readInput(data []byte) (in adminInput, err error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(data, &given) != nil {
		return in, fault.New(fault.Invalid,
			`the input is not a JSON object; expected e.g. {"action": "requeue", `+
				`"target": "job:01M…-00001", "reason": "the source is corrected"}`)
	}

	// The form is told by the fields that only it has; without one of those it is an action
	// on a target.
	allowed := forms.action
	switch {
	case given["operation"] != nil:
		allowed = forms.pages
	case string(given["action"]) == `"`+string(ingest.ActDoctor)+`"`:
		allowed = forms.doctor
	case given["filter"] != nil && given["target"] != nil:
		return in, fault.New(fault.Invalid,
			"filter: expected either a target or a filter, not both")
	case given["filter"] != nil:
		allowed = forms.bulk
	}

	err = readFields("", given, allowed, map[string]field{
		"action": {&in.Action, "a string"}, "target": {&in.Target, "a string"},
		"filter": {&in.Filter, "an object"},
		"reason": {&in.Reason, "a string"}, "confirm": {&in.Confirm, "true or false"},
		"dryRun": {&in.DryRun, "true or false"}, "priority": {&in.Priority, "a whole number"},
		"until": {&in.Until, "a string"}, "repair": {&in.Repair, "true or false"},
		"operation": {&in.Operation, "a string"}, "exec": {&in.Exec, "a whole number"}})
	return in, err
}

// field is where a value goes, and what it has to be.
type field struct {
	into     any
	expected string
}

// readFields reads an object whose fields are in a list. prefix is put before their names in
// messages. An empty text or null is refused: in a filter it would select everything. They
// are read in the order of their names, so that the same input has the same message. What is
// repeated of the input is cut to 100 bytes.
func readFields(prefix string, given map[string]json.RawMessage, allowed []string,
	fields map[string]field) error {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		shown := prefix + ingest.Cut(name, 100)
		if !slices.Contains(allowed, name) {
			return fault.New(fault.Invalid, "%s: unknown field; expected %s%s", shown, prefix,
				strings.Join(allowed, ", "+prefix))
		}
		empty := slices.Contains([]string{`""`, "null"}, string(given[name]))
		if empty || json.Unmarshal(given[name], fields[name].into) != nil {
			return fault.New(fault.Invalid, "%s: found %s; expected %s", shown,
				ingest.Cut(string(given[name]), 100), fields[name].expected)
		}
	}
	return nil
}

// bulk is the input as an action on all jobs that a filter selects. An error is an Invalid.
func (in adminInput) bulk() (b ingest.Bulk, err error) {
	b = ingest.Bulk{Name: in.Action, Priority: in.Priority, Confirm: in.Confirm}
	if b.Filter, err = readFilter(in.Filter); err != nil {
		return b, err
	}

	for _, s := range ingest.BulkActions[b.Name] { // as the API, in any case of letters
		if strings.EqualFold(string(s), string(b.Filter.State)) {
			b.Filter.State = s
		}
	}

	b.Until, err = ingest.ReadTime("until", in.Until)
	return b, err
}

// readFilter reads the filter of the input. Which fields an action needs is checked by the
// queue.
func readFilter(data json.RawMessage) (f ingest.Filter, err error) {
	var given map[string]json.RawMessage
	if json.Unmarshal(data, &given) != nil {
		return f, fault.New(fault.Invalid,
			`filter: found %s; expected an object, e.g. {"batch": "01M…"}`,
			ingest.Cut(string(data), 100))
	}

	before := ""
	fields := map[string]field{
		"batch": {&f.Batch, "a string"}, "collection": {&f.Collection, "a string"},
		"state":  {&f.State, "a string"},
		"before": {&before, "a string"}, "message": {&f.Message, "a string"},
		"keepOwnHolds": {&f.KeepOwnHolds, "true or false"}}

	err = readFields("filter.", given, slices.Sorted(maps.Keys(fields)), fields)
	if err != nil {
		return f, err
	}
	f.Before, err = ingest.ReadTime("filter.before", before)
	return f, err
}

// action is the input as an action on a target. The target of an action without one is
// refused by its own check. An error is an Invalid.
func (in adminInput) action() (a ingest.Action, err error) {
	if in.Action == "" {
		return a, fault.New(fault.Invalid, "action: none is given; expected e.g. requeue")
	}

	if in.Target == "" {
		return a, fault.New(fault.Invalid,
			"target: none is given; expected job:ID, batch:ID, collection:NAME, queue "+
				"or storage, or a filter")
	}

	a = ingest.Action{
		Name:     in.Action,
		Reason:   in.Reason,
		Confirm:  in.Confirm,
		DryRun:   in.DryRun,
		Priority: in.Priority,
	}

	if a.Target, err = ingest.ParseTarget(in.Target); err != nil {
		return a, err
	}

	a.Until, err = ingest.ReadTime("until", in.Until)
	return a, err
}
