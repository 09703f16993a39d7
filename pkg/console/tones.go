package console

import "strings"

// tones are the classes of states of things that are not ingested, one of four each.
var tones = func() map[string]string {
	out := map[string]string{}
	for class, states := range map[string]string{
		"good": "ACTIVE succeeded committed active live researched ended done confirmed delivered",
		"bad":  "failed given-up invalid stopped differs deleted failing gone",
		"warn": "CREATING UPDATING paused cancelled Cancelled superseded skipped set-aside " +
			"deferred blocked manual parked interrupted",
		"rest": "awaiting ready retry-wait before later closed withdrawn waits open looking",
	} {
		for state := range strings.FieldsSeq(states) {
			out[state] = class
		}
	}
	return out
}()
