package event

import (
	"encoding/json"
	"fmt"

	"archivist/pkg/events/envelope"
)

// form is a schema of a type of events.
type form struct {
	eventType string
	schema    int
}

// upcasters bring an event of a type from one schema to the next. One is never removed: rows of the
// schema stay. testdata/rows has a stored row of each schema of each type. Types whose second
// schema is not that of an object got before and after with it.
var upcasters = func() map[form]func(*envelope.Event) error {
	all := map[form]func(*envelope.Event) error{
		{"object.create", 1}: recordedVersion,
		{"object.modify", 1}: recordedVersion,
	}
	for _, k := range envelope.Kinds {
		if first := (form{k.Type, 1}); all[first] == nil && k.Schema > 1 {
			all[first] = changedState
		}
	}
	return all
}()

// upcast brings an event to the next schema of its type, in memory: stored rows are not rewritten.
func upcast(e *envelope.Event) error {
	up, known := upcasters[form{e.Type, e.Schema}]
	if !known {
		return fmt.Errorf("there is no upcaster to schema %d", e.Schema+1)
	}
	return up(e)
}

// changedState brings an event of a job, a batch or an operation to schema 2, which has before and
// after: schema 1 had only the state there was before and after, in its detail.
func changedState(e *envelope.Event) error {
	var detail struct {
		From  string `json:"from"`
		To    string `json:"to"`
		State string `json:"state"` // of an operation
	}

	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return err
	}

	before, after := stateOf(detail.From), stateOf(detail.To+detail.State)
	was, isNow, err := changed(before, after)
	if err != nil {
		return err
	}
	e.Before, e.After = payload(was), payload(isNow)
	return nil
}

// stateOf are the properties of a subject whose state is all that is known, nil for none.
func stateOf(state string) any {
	if state == "" {
		return nil
	}
	return map[string]string{"state": state}
}

// recordedVersion brings an event of an object to schema 2, which has before and after: schema 1
// had only the version there was after, in its detail.
func recordedVersion(e *envelope.Event) error {
	var detail struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(e.Detail, &detail); err != nil {
		return err
	}
	_, isNow, err := changed(nil, map[string]int{"version": detail.Version})
	if err != nil {
		return err
	}
	e.After = payload(isNow)
	return nil
}
